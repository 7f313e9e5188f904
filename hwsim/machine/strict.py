"""Check that a machine consists only of library parts: their choice, number and wiring are free, their properties are not.

The options `hwsim check --strict-library` and `strict_library: true` of a plan use it to reject parts that cannot be bought, for
exercises.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hwsim.machine.schema import LINK_KEYS
from hwsim.records import dataclass
from hwsim.spec import Mistake, Tree
from hwsim.spec.library import library_root
from hwsim.units import Quantity, UnitError, parse

_CHOSEN: Final = frozenset(
    {"use", "kind", "count", "name", "notes", "class", "source", "ref", "let", "hwsim", "fidelity", "place"}
)


@dataclass(frozen=True, slots=True)
class _Own:
    """A value from outside the library: path in the part, and node."""

    path: str
    node: Tree


def values_outside_library(machine: Tree) -> Iterator[Mistake]:
    """Yield a mistake for each part and link of a resolved machine that is not in the library, or has other values there."""
    if machine.text("class") == "ideal" and not _in_library(machine.get("class")):
        yield Mistake(machine.key_place("class"), "`class: ideal` makes every part as fast as its peak", "omit it")
    for name, part in (machine.get("parts") or Tree({})).items():
        if part.text("kind") == "machine" or part.get("parts") is not None:
            yield from values_outside_library(part)
        elif part.get("use") is None and not _in_library(part):
            yield Mistake(part.place, f"'{name}' is not a part of the library", "state a part of the library with `use: NAME`")
        else:
            yield from _changed(f"'{name}'", part, _CHOSEN)
    for link in (machine.get("links") or Tree([])).elements():
        called = f"link '{link.text('name') or link.text('kind')}'"
        if link.get("use") is None and not _in_library(link):
            yield Mistake(link.place, f"{called} is not a link of the library", "state a link of the library with `use: NAME`")
        else:
            yield from _changed(called, link, _CHOSEN | LINK_KEYS, counts=True)


def _changed(called: str, part: Tree, free: frozenset[str], *, counts: bool = False) -> Iterator[Mistake]:
    if part.text("class") == "ideal" and not _in_library(part.get("class")):
        yield Mistake(part.key_place("class"), f"{called} is ideal: it is as fast as its peak", "omit `class`")
    for number in _own(part, "", free):
        if not (counts and _is_count(number.node)):
            used = part.text("use") or "its part"
            yield Mistake(
                number.node.place,
                f"{called} changes `{number.path}` of the library",
                f"omit it, to use the value of '{used}'",
            )


def _own(node: Tree, path: str, free: frozenset[str]) -> Iterator[_Own]:
    """Yield values (numbers, booleans, list elements) from files outside the library."""
    if node.is_mapping:
        for key, child in node.items():
            if key not in free:
                yield from _own(child, f"{path}.{key}" if path else key, _CHOSEN)
    elif node.is_list:
        for child in node.elements():
            yield from _own(child, path, free)
    elif not _in_library(node) and node.value is not None:
        yield _Own(path, node)


def _is_count(node: Tree) -> bool:
    """Return whether a value is a number without a unit, or a word: number of lanes, topology."""
    if isinstance(node.value, Quantity):
        return node.value.dimension.plain
    if not isinstance(node.value, str):
        return True
    try:
        return parse(node.value).dimension.plain
    except UnitError:
        return True


def _in_library(node: Tree | None) -> bool:
    return node is not None and bool(node.place.file) and Path(node.place.file).resolve().is_relative_to(library_root())
