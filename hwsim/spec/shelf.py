"""Values that successive runs of one study share: they were worked out once and hold for equal inputs.

Nothing is shared by default. Inside `shared(shelf)` a function that takes long may look under its name for what it has found for
the same inputs before. What it puts there must be a function of its inputs alone, so that a run is the same with and without.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from operator import is_not
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

from hwsim.spec.tree import Tree

Shelf = dict[str, dict[Any, Any]]
MOST_KEPT: Final = 4  # results of one name
MOST_BUILT: Final = 2  # results that hold a machine
MANY: Final = 1 << 16  # rows of a column up to which results are kept
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


def once(
    name: str,
    given: tuple[object, ...],
    make: Callable[[], _Found],
    *,
    also: tuple[Hashable, ...] = (),
    most: int = MOST_KEPT,
    rows: int = 0,
) -> _Found:
    """The result of `make` for these very objects, which are never changed; a study makes it once.

    Args:
        name: name of the results; equal objects have one result of a name.
        also: values that the result depends on besides.
        most: number of results that are kept, the latest in use.
        rows: rows of its columns; above `MANY` nothing is kept.
    """
    results = shared_by(name) if rows <= MANY else None
    if results is None:
        return make()
    key = (*map(id, given), *also)
    _, result = results.pop(key, None) or (None, make())
    while len(results) >= most:
        del results[next(iter(results))]
    results[key] = given, result
    return result


def by_entry(name: str, tree: Tree, make: Callable[[str, Tree], _Found], given: tuple[object, ...] = ()) -> dict[str, _Found]:
    """The result of `make` for each entry of a mapping; a study takes it from the latest mapping that had this very entry.

    Args:
        given: objects that the results depend on besides.
    """
    latest = shared_by(name)
    given_before, tree_before, earlier = latest[""] if latest else (given, tree, {})
    if len(given_before) != len(given) or any(map(is_not, given_before, given)):
        earlier = {}
    results = {
        key: earlier[key] if key in earlier and tree_before.get(key) is entry else make(key, entry) for key, entry in tree.items()
    }
    if latest is not None:
        latest[""] = given, tree, results
    return results


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
