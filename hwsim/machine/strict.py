"""A machine of the library's parts alone: which parts, how many and how they are wired is free; what a part can do is not.

For exercises: `hwsim check --strict-library` and `strict_library: true` of a plan refuse a part that cannot be bought.
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
    """A value that the library does not have: its path in the part, and the node."""

    path: str
    node: Tree


def invented(machine: Tree) -> Iterator[Mistake]:
    """A mistake for each part and link of a resolved machine that the library does not have, or not with this number."""
    if machine.text("class") == "ideal" and not _in_library(machine.get("class")):
        yield Mistake(machine.key_place("class"), "'class: ideal' makes every part as fast as its peak", "leave it out")
    for name, part in (machine.get("parts") or Tree({})).items():
        if part.text("kind") == "machine" or part.get("parts") is not None:
            yield from invented(part)
        elif part.get("use") is None and not _in_library(part):
            yield Mistake(part.place, f"'{name}' is not a part of the library", "name it: `use: NAME`")
        else:
            yield from _changed(f"'{name}'", part, _CHOSEN)
    for link in (machine.get("links") or Tree([])).elements():
        called = f"link '{link.text('name') or link.text('kind')}'"
        if link.get("use") is None and not _in_library(link):
            yield Mistake(link.place, f"{called} is not a link of the library", "name it: `use: NAME`")
        else:
            yield from _changed(called, link, _CHOSEN | LINK_KEYS, counts=True)


def _changed(called: str, part: Tree, free: frozenset[str], *, counts: bool = False) -> Iterator[Mistake]:
    if part.text("class") == "ideal" and not _in_library(part.get("class")):
        yield Mistake(part.key_place("class"), f"{called} is ideal: it is as fast as its peak", "leave `class` out")
    for number in _own(part, "", free):
        if not (counts and _is_count(number.node)):
            used = part.text("use") or "its part"
            yield Mistake(
                number.node.place,
                f"{called} has a number of its own: {number.path}",
                f"leave it as '{used}' of the library has it",
            )


def _own(node: Tree, path: str, free: frozenset[str]) -> Iterator[_Own]:
    """Numbers, switches and lists that stand in a file outside of the library."""
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
    """A number without a unit, or a word: how many lanes, which topology."""
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
