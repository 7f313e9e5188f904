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


def same(first: Tree, second: Tree) -> bool:
    """Whether two trees have the same values from the same sources, at the same places."""
    if first is second:
        return True
    if first.origin != second.origin or first.place != second.place or type(first.value) is not type(second.value):
        return False
    if isinstance(first.value, dict) and isinstance(second.value, dict):
        if first.value.keys() != second.value.keys() or first.keys != second.keys:
            return False
        return all(same(value, second.value[key]) for key, value in first.value.items())
    if isinstance(first.value, list) and isinstance(second.value, list):
        return len(first.value) == len(second.value) and all(map(same, first.value, second.value))
    return bool(first.value == second.value)
