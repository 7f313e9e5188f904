"""Values that successive runs of one study share: they were worked out once and hold for equal inputs.

Nothing is shared by default. Inside `shared(shelf)` a function that takes long may look under its name for what it has found for
the same inputs before. What it puts there must be a function of its inputs alone, so that a run is the same with and without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hwsim.spec.tree import Tree

Shelf = dict[str, dict[Any, Any]]
_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)


@contextmanager
def shared(shelf: Shelf) -> Iterator[None]:
    """Share what is worked out inside through `shelf`."""
    before = _SHELF.set(shelf)
    try:
        yield
    finally:
        _SHELF.reset(before)


def shared_by(name: str) -> dict[Any, Any] | None:
    """Values kept under this name; None where nothing is shared."""
    shelf = _SHELF.get()
    return None if shelf is None else shelf.setdefault(name, {})


def same(one: Tree, other: Tree) -> bool:
    """Whether two trees have the same values from the same sources, at the same places."""
    if one is other:
        return True
    if one.origin != other.origin or one.place != other.place or type(one.value) is not type(other.value):
        return False
    if isinstance(one.value, dict) and isinstance(other.value, dict):
        if one.value.keys() != other.value.keys() or one.keys != other.keys:
            return False
        return all(same(each, other.value[key]) for key, each in one.value.items())
    if isinstance(one.value, list) and isinstance(other.value, list):
        return len(one.value) == len(other.value) and all(map(same, one.value, other.value))
    return bool(one.value == other.value)
