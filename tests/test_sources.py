"""Every number of every file of parts and machines says where it is from, and by which reference."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwsim.origins import SOURCES
from hwsim.spec import Origin, Tree, library_root, read, read_text, sources
from hwsim.units import Quantity, UnitError, parse
from tests.each import each

KINDS = set(SOURCES)
READ = KINDS - {
    "fitted",
    "guess",
    "twin",
    "elsewhere",
}  # read off a document, or a recorded measurement: the reference alone says it all
MEMORY = re.compile(r"\bfrom memory\b")
WORDS = {"source", "ref", "name", "notes", "kind", "use", "hwsim", "between", "of", "topology", "hub"}  # hold no numbers
LIBRARY = library_root() / "machines"
PATHS = sorted(path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*.yaml"))
OWN = ("classes/", "failures/", "prices/")  # with spreads, rates, dates: test_classes, test_failures, test_library_machines
FILES = [path for path in PATHS if not path.startswith(OWN)]


def numbers(tree: Tree, path: str = "") -> list[str]:
    """Paths of all numbers, called as `sources` calls them."""
    if tree.is_mapping:
        if tree.get("value") is not None:
            return numbers(tree.get("value") or tree, path)
        inside = [(f"{path}.{key}" if path else key, child) for key, child in tree.items() if key not in WORDS]
    elif tree.is_list:
        inside = [(f"{path}.{element.text('name') or index}", element) for index, element in enumerate(tree.elements())]
    else:
        return [path] if is_number(tree) else []
    return [found for key, child in inside for found in numbers(child, key)]


def is_number(tree: Tree) -> bool:
    if isinstance(tree.value, str) and tree.value[:1].isdigit():
        try:
            parse(tree.value)
        except UnitError:
            return False
        return True
    return isinstance(tree.value, int | float | Quantity) and not isinstance(tree.value, bool)


def wrong(tree: Tree) -> list[str]:
    """What is said of no number's source, or badly, one line each."""
    known, whole = sources(tree), tree.text("ref") or ""
    said = tree.text("source") or ""
    return [f"{path}: {why}" for path in numbers(tree) if (why := fault(known.get(path), whole, said))]


def fault(origin: Origin | None, whole: str, said: str) -> str:
    """`whole`: the reference of the whole file, which holds for a number that has a source but none of its own."""
    if origin is None:
        return "no source"
    if origin.kind in READ and MEMORY.search(f"{origin.ref} {whole}"):
        return f"{origin.kind}, but quoted from memory: it is recalled"
    if origin.kind in KINDS:
        return "" if origin.ref or whole or said.startswith("d2l ") else f"{origin.kind}, but no reference"
    return "" if origin.ref.startswith("d2l ") else f"'{origin!s}' is no kind of source"


def test_every_number_has_a_source_and_a_reference() -> None:
    assert {name: found for name in FILES if (found := wrong(read(LIBRARY / name)))} == {}


def test_what_is_quoted_from_memory_says_so_by_its_kind() -> None:
    assert [name for name in FILES if MEMORY.search(" ".join((read(LIBRARY / name).text("notes") or "").split()))] == []


@each("name", [name for name in FILES if Path(name).name.startswith("d2l-")])
def test_profiles_of_the_text_cite_it(name: str) -> None:
    assert "d2l 13." in (LIBRARY / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("source: datasheet\nref: paper\na: 3\nb: {c: 4 GB/s}", []),
        ("a: 3\nb: {value: 4 GB/s, source: measured, ref: somewhere}", ["a: no source"]),
        ("b: {c: 16 GiB}", ["b.c: no source"]),
        ("b: {value: 16 GiB, source: hearsay, ref: x}", ["b: 'hearsay, x' is no kind of source"]),
        ("b: {value: 16 GiB, source: datasheet}", ["b: datasheet, but no reference"]),
        ("source: datasheet\nref: paper\nb: {ref: another paper, c: 3}", []),
        ("ref: paper\nb: {value: 16 GiB, source: datasheet}", []),
        ("b: {value: 16 GiB, source: recalled, ref: its datasheet}", []),
        ("b: {value: 16 GiB, source: recalled}", ["b: recalled, but no reference"]),
        (
            "b: {value: 2 s, source: datasheet, ref: 'paper, quoted from memory'}",
            ["b: datasheet, but quoted from memory: it is recalled"],
        ),
        ("b: {value: 2 s, source: guess, ref: 'as a paper, quoted from memory'}", []),
        ("source: d2l 13.4\nb: 16 GiB\nc: {value: 2, source: guess}", []),
        ("curve: [1 ms, {value: 2 ms, source: measured, ref: x}]", ["curve.0: no source"]),
        ("name: 4 GB\nnotes: 17\nfast: true\nof: gpu3", []),
    ],
)
def test_what_is_unsourced_is_found(text: str, faults: list[str]) -> None:
    assert wrong(read_text(text)) == faults
