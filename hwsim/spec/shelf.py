"""Values that successive runs of one study share: they were worked out once and hold for equal inputs.

Nothing is shared by default. Inside `shared(shelf)` a function that takes long may look under its name for what it has found for
the same inputs before. What it puts there must be a function of its inputs alone, so that a run is the same with and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from hwsim.spec.tree import Tree

Shelf = dict[str, dict[Any, Any]]
_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


@contextmanager
def shared(shelf: Shelf) -> Iterator[None]:
    """Share what is worked out inside through `shelf`."""
    before = _SHELF.set(shelf)
    try:
        yield
    finally:
        _SHELF.reset(before)


def sharing(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """A function that makes several runs of much the same files, which share what is worked out."""

    @wraps(function)
    def call(*arguments: _Given.args, **named: _Given.kwargs) -> _Found:
        with shared({} if (outer := _SHELF.get()) is None else outer):
            return function(*arguments, **named)

    return call


def shared_by(name: str) -> dict[Any, Any] | None:
    """Values kept under this name; None where nothing is shared."""
    shelf = _SHELF.get()
    return None if shelf is None else shelf.setdefault(name, {})


_Stamp: TypeAlias = tuple[int, int, int, int] | None


class Unchanged:
    """Values that calls of a function share as long as the files that they read say the same.

    Each file is looked at before a call: one that has another size or time, or is another file, makes all be worked out anew.
    A file that was written just before a call, or since, is not kept.
    """

    def __init__(self) -> None:
        self._shelf: Shelf = {}
        self._stamps: dict[str, _Stamp] = {}

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share what is worked out inside."""
        began = time.time_ns()
        if any(_stamp(name) != stamp for name, stamp in self._stamps.items()):
            self._shelf, self._stamps = {}, {}
        shelf, self._shelf = self._shelf, {}  # nothing is kept of a call that fails
        with shared(shelf):
            yield
        files = shelf.get("files", {})
        stamps = self._stamps | {name: _stamp(name) for name in files if name not in self._stamps}
        if any(stamp is None or stamp[0] >= began - _TICK for stamp in stamps.values()):
            self._shelf, self._stamps = {}, {}
        else:
            self._shelf, self._stamps = shelf, stamps


_TICK: Final = 2_000_000_000  # ns: some file systems know times to two seconds


def _stamp(name: str) -> _Stamp:
    """Time of the last change, size, and which file it is; None if there is none."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


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
