"""Results worked out on a machine by those who use it, kept with the machine: runs on the same machine share it.

Every entry is a function of the machine and its own key alone, so that a run is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

V = TypeVar("V")


class Kept:
    """One value of each class, empty at first; a copy of the machine in another process begins anew."""

    def __init__(self) -> None:
        self._values: dict[Callable[[], Any], Any] = {}

    def value(self, kind: Callable[[], V]) -> V:
        """The value of a class."""
        found: V | None = self._values.get(kind)
        if found is None:
            found = self._values[kind] = kind()
        return found

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()
