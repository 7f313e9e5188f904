"""Every label and column that a command prints is explained on the page of terms."""

from __future__ import annotations

import ast
import re

from hwsim.results.bound import TERMS
from tests.test_docs import PAGES, ROOT, blocks

LABELLED_LINE = re.compile(r"  (?=.{13}  \S)(?=[a-zA-Z]|  ).{15}\S")
SERVICES = {"store", "users"}  # of workloads on the pages
LABELLED = {"ReportColumn", "SummaryLine", "OptionColumn", "_fact"}  # calls whose first argument is a label


def printed() -> set[str]:
    """Labels and headings that the source writes as they are."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "hwsim").rglob("*.py"))
    calls = (
        node
        for text in texts
        if any(word in text for word in LABELLED)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in LABELLED and node.args
    )
    return {
        node.args[0].value for node in calls if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    }


def on_pages() -> set[str]:
    """Labels of the outputs on all pages: paragraphs whose every line has a label and a text from column 17 on."""
    texts = [
        block.text for page in PAGES for block in blocks((ROOT / page).read_text(encoding="utf-8")) if block.kind == "console"
    ]
    paragraphs = [part.splitlines() for text in texts for part in re.split(r"\n\n|^(?:\$ .*|\.\.\.)\n", text, flags=re.MULTILINE)]
    lines = [line for part in paragraphs if all(LABELLED_LINE.match(line) for line in part) for line in part]
    found = {line[2:17].strip() for line in lines}
    found = {label for label in found - SERVICES if label and not label.startswith("step ")}
    return {re.sub(r"epochs? \d+(-\d+)?", "epoch", label) for label in found}


def explained() -> set[str]:
    rows = re.findall(r"(?m)^\| ([^|]+) \|", (ROOT / "docs" / "terms.md").read_text(encoding="utf-8"))
    return {*rows, *(term for row in rows for term in row.split(", "))}


def test_each_label_is_explained() -> None:
    assert printed() - explained() - {""} == set()


def test_each_label_on_a_page_is_explained() -> None:
    assert len(on_pages()) > 40
    assert on_pages() - explained() == set()


def test_each_bound_is_explained() -> None:
    named = {term.partition(" NAME")[0].removesuffix(" of") for term in explained()}
    assert TERMS - named == set()


def test_the_explorer_hides_and_sorts_labels_that_exist() -> None:
    page = (ROOT / "hwsim" / "explorer" / "page" / "answer.js").read_text(encoding="utf-8")
    labels = [label for names in re.findall(r"new Set\(\[(.*?)\]\)", page) for label in re.findall(r'"([^"]+)"', names)]
    assert len(labels) > 5
    assert set(labels) - explained() == set()
