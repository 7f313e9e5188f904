"""Sentences and names that have to be read twice: how many there are, by rule, and where.

python scripts/plain_words.py                 a count for each rule of docs/style.md
python scripts/plain_words.py --list of-first where a rule is broken

Prose is docstrings, comments, texts of errors, and pages; names are those that a function of more than five lines binds.
"""

from __future__ import annotations

import argparse
import ast
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent

PATTERNS: Final = {
    "of-first": r"(?m)^(Of|Whose|As it|What it|That) ",
    "told": r"\btold\b",
    "manieth": r"manieth",
    "of-which": r",? of which\b",
    "that-of": r"\b(that|those) of\b",
    "so-many": r"\bso (many|much|few|often)\b",
    "nobody": r"\b(nobody|somebody|whoever|everybody|anybody)\b",
    "beside": r"(?<!on: )\bbeside\b",
    "kin": r"\b(its|and) kin\b",
    "copy-of-the-model": r"\bcop(y|ies) of the model\b",
    "argument-of": r"(?m)^\s*[a-z_]+(, [a-z_]+)*: of ",
    "hangs-together": r"\bhangs? together\b",
    "two-spaces": r"[.;:]  [A-Z]",
    "inverted": r"\b(is|are|was) (what|who|how|where) (is|are|it|they)\b",
    "question-first": r"(?m)^(What|Where|Who|How|Whose) (?![^.]*\?)",
    "goes-off": r"\b(go|goes|gone) (off|over)\b",
}
READ: Final = ("hwsim/**/*.py", "calibrate/hwsim_calibrate/**/*.py", "docs/*.md", "README.md", "calibrate/README.md")
# doctests, tables, formulas and lines of YAML
NO_SENTENCE: Final = r"(?m)>>>.*(\n.*)?|^\|.*$|^    \S.*(  | = |: \{).*$"
LONGEST: Final = 40  # words of a sentence
VAGUE: Final = frozenset(
    {"found", "said", "told", "here", "there", "one", "other", "each", "known", "what", "asked", "whole", "own", "now"}
)
SHORT: Final = 5  # lines of a function that may bind any name


class Place(NamedTuple):
    """Where a rule is broken, and the words that break it."""

    rule: str
    path: str
    line: int
    text: str


def places(root: Path = ROOT) -> Iterator[Place]:
    """Every place at which a rule is broken."""
    for path in sorted(path for pattern in READ for path in root.glob(pattern)):
        name = path.relative_to(root).as_posix()
        for line, text in _prose(path):
            for rule, pattern in PATTERNS.items():
                for match in re.finditer(pattern, text):
                    yield Place(rule, name, line + text.count("\n", 0, match.start()), _around(text, match))
            prose = re.sub(NO_SENTENCE, "", text)
            for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", prose):
                if len(sentence.split()) > LONGEST:
                    yield Place("long-sentence", name, line, " ".join(sentence.split())[:100])
        if path.suffix == ".py":
            for function, bound in _names(path):
                yield from (Place("vague-name", name, function.lineno, f"{each} in {function.name}") for each in sorted(bound))


def counts(root: Path = ROOT) -> Counter[str]:
    """How often each rule is broken."""
    return Counter(dict.fromkeys((*PATTERNS, "long-sentence", "vague-name"), 0)) + Counter(each.rule for each in places(root))


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of what is written for readers; of a page, paragraph by paragraph, without code and tables."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        blanked = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
        blanked = re.sub(r"(?m)^\|.*$", "", blanked)
        at = 0
        for paragraph in re.split(r"(\n\s*\n)", blanked):
            yield blanked.count("\n", 0, at) + 1, paragraph
            at += len(paragraph)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (docstring := ast.get_docstring(node)):
            yield node.body[0].lineno, docstring
        if isinstance(node, ast.Raise):
            yield from ((each.lineno, each.value) for each in ast.walk(node) if _is_text(each))  # type: ignore[attr-defined]
    with path.open("rb") as file:
        yield from ((each.start[0], each.string) for each in tokenize.tokenize(file.readline) if each.type == tokenize.COMMENT)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names(path: Path) -> Iterator[tuple[ast.FunctionDef, set[str]]]:
    """Functions, and the vague names that each binds."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > SHORT:
            inner = {
                each.target.id
                for each in ast.walk(node)
                if isinstance(each, ast.comprehension) and isinstance(each.target, ast.Name)
            }
            bound = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)} - inner
            if vague := (bound | {each.arg for each in node.args.args}) & VAGUE:
                yield node, vague


def _around(text: str, match: re.Match[str]) -> str:
    return " ".join(text[max(0, match.start() - 30) : match.end() + 60].split())


def main() -> int:
    """Print the counts, or the places of one rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", metavar="RULE", choices=[*PATTERNS, "long-sentence", "vague-name"])
    rule = parser.parse_args().list
    if rule:
        for place in places():
            if place.rule == rule:
                print(f"{place.path}:{place.line}: {place.text}")
        return 0
    for name, count in counts().items():
        print(f"{name:20}{count:6}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
