"""Every page of docs/ is in the site's sidebar, and every anchor that a link names is a heading: without building the site."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Final

from hwsim.spec import plan
from hwsim.spec.use import FORMATS
from scripts.reference_sections import HEAD, headings
from tests.keys.schemas import ROOTS
from tests.test_docs import FENCE, PAGES, ROOT

DOCS: Final = ROOT / "docs"
TOCTREE: Final = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING: Final = re.compile(r"^(#{1,6}) (.+?)\s*$", re.MULTILINE)
TARGET: Final = re.compile(r"\[[^\]]*\]\((?P<page>[^)\s#]*)#(?P<anchor>[^)\s]+)\)")
LEVELS: Final = 3  # headings with an anchor: docs/conf.py


def below(page: Path) -> list[Path]:
    """Pages that the toctrees of a page name."""
    found: list[Path] = []
    for tree in TOCTREE.findall(page.read_text(encoding="utf-8")):
        lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
        for line in lines:
            if ":glob:" in tree:
                found += sorted(page.parent.glob(f"{line}.md"))
            else:
                found.append(page.parent / f"{line}.md")
    return found


def reached(page: Path) -> list[Path]:
    """A page and all pages below it, each as often as it is named."""
    return [page, *(descendant for child in below(page) for descendant in reached(child))]


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub and the site make them: small letters, no signs, hyphens for blanks, -1 for a second one."""
    found: set[str] = set()
    for marks, heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        again = next(number for number in range(len(found) + 1) if (f"{slug}-{number}" if number else slug) not in found)
        if len(marks) <= LEVELS:
            found.add(f"{slug}-{again}" if again else slug)
    return found


def test_every_page_is_in_the_sidebar_once() -> None:
    pages = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    assert sorted(reached(DOCS / "index.md")) == pages


def test_every_anchor_is_a_heading() -> None:
    known = {}
    lost = []
    for name in PAGES:
        page = ROOT / name
        for link in TARGET.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if "://" in link["page"]:
                continue
            to = (page.parent / link["page"]).resolve() if link["page"] else page
            if to not in known:
                known[to] = anchors(to) if to.suffix == ".md" and to.is_file() else set()
            if link["anchor"] not in known[to]:
                lost.append(f"{name}: {link[0]}")
    assert lost == []


def test_no_page_links_to_a_page_beside_the_site() -> None:
    """As `docs/conf.py` hands it to the site, which refuses such a link."""
    made = runpy.run_path(str(DOCS / "conf.py"))["without_ways_out"]
    lost, seen = [], 0
    for page in sorted(reached(DOCS / "index.md")):
        text = [page.read_text(encoding="utf-8")]
        made(None, page.relative_to(DOCS).with_suffix("").as_posix(), text)
        for target in re.findall(r"\]\(([^)\s#:]+\.md)", FENCE.sub("", text[0])):
            to, seen = (page.parent / target).resolve(), seen + 1
            if not to.is_file() or DOCS not in to.parents:
                lost.append(f"{page.name}: {target}")
    assert lost == []
    assert seen > 200


def test_the_reference_has_every_schema_and_every_kind_of_file() -> None:
    shown = {cls for cls, _ in headings()}
    assert {name for name, cls in ROOTS.items() if cls not in shown} == set()
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert {f"{name}.{row.key}" for name, cls in ROOTS.items() for row in plan(cls) if f"`{row.key}`" not in page} == set()
    assert [format_ for format_ in FORMATS.values() if f"`hwsim: {format_}`" not in HEAD] == []
