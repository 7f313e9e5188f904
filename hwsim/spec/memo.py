"""Memo store for successive runs of one study: results of slow functions are reused for equal inputs.

By default nothing is memoized. Inside `shared(shelf)`, a function can look up its earlier result for the same inputs. A memoized
result must depend only on its inputs, so that a run is the same with and without the store.
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
MOST_KEPT: Final = 4  # memoized results per name
MOST_BUILT: Final = 2  # memoized results that contain a machine
MANY: Final = 1 << 16  # rows of a result up to which it is memoized
_SHELF: ContextVar[Shelf | None] = ContextVar("shelf", default=None)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


@contextmanager
def shared(shelf: Shelf) -> Iterator[None]:
    """Memoize results in `shelf` inside the context."""
    before = _SHELF.set(shelf)
    try:
        yield
    finally:
        _SHELF.reset(before)


def with_memo(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
    """Return the function with a memo store for all of its runs; an outer store is reused."""

    @wraps(function)
    def call(*arguments: _Given.args, **named: _Given.kwargs) -> _Found:
        with shared({} if (outer := _SHELF.get()) is None else outer):
            return function(*arguments, **named)

    return call


def memo_table(name: str) -> dict[Any, Any] | None:
    """Return the memoized values of a name; None without a store."""
    shelf = _SHELF.get()
    return None if shelf is None else shelf.setdefault(name, {})


def memoize_result(
    name: str,
    given: tuple[object, ...],
    make: Callable[[], _Found],
    *,
    also: tuple[Hashable, ...] = (),
    most: int = MOST_KEPT,
    rows: int = 0,
) -> _Found:
    """Return the memoized result of `make` for these objects, compared by identity; the objects must be immutable.

    Args:
        name: name of the function in the store.
        given: objects on which the result depends.
        make: function without arguments that computes the result.
        also: further values on which the result depends, compared by equality.
        most: maximum number of results per name; the least recently used one is removed.
        rows: rows of the result; above `MANY` it is not memoized.
    """
    results = memo_table(name) if rows <= MANY else None
    if results is None:
        return make()
    key = (*map(id, given), *also)
    _, result = results.pop(key, None) or (None, make())
    while len(results) >= most:
        del results[next(iter(results))]
    results[key] = given, result
    return result


def memoized_entries(
    name: str, tree: Tree, make: Callable[[str, Tree], _Found], given: tuple[object, ...] = ()
) -> dict[str, _Found]:
    """Return the result of `make` for each entry of a mapping, memoized for entries that are identical to the latest mapping's.

    Args:
        name: name of the function in the store.
        tree: mapping.
        make: function of key and entry.
        given: further objects on which the results depend, compared by identity.
    """
    latest = memo_table(name)
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


class FileMemo:
    """A memo store for successive calls that is valid while the files that they read are unchanged.

    Before each call, size, modification time and inode of every file are compared; a difference clears the store. The store is
    also cleared if a file was modified during the call or within two seconds before it.
    """

    def __init__(self) -> None:
        self._shelf: Shelf = {}
        self._stamps: dict[str, _Stamp] = {}

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Memoize results inside the context."""
        start_ns = time.time_ns()
        if any(_stamp(name) != stamp for name, stamp in self._stamps.items()):
            self._shelf, self._stamps = {}, {}
        shelf, self._shelf = self._shelf, {}  # a failed call leaves an empty store
        with shared(shelf):
            yield
        files = shelf.get("files", {})
        stamps = self._stamps | {name: _stamp(name) for name in files if name not in self._stamps}
        if any(stamp is None or stamp[0] >= start_ns - _TICK for stamp in stamps.values()):
            self._shelf, self._stamps = {}, {}
        else:
            self._shelf, self._stamps = shelf, stamps


_TICK: Final = 2_000_000_000  # ns; resolution of times on some file systems


def _stamp(name: str) -> _Stamp:
    """Modification time (ns), size, inode and device of a file; None if it does not exist."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def same(first: Tree, second: Tree) -> bool:
    """Return whether two trees have equal values, sources and places."""
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
