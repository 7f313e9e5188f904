"""Lazy tables of classes by their `kind` in a file: each class is imported on first lookup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class KindTable(MutableMapping[str, T], Generic[T]):
    """A table from kinds to classes, in order; iteration over the kinds imports nothing.

    >>> kinds = KindTable({"counter": "collections:Counter", "chain": "collections:ChainMap"})
    >>> list(kinds), kinds["counter"]("aab")["a"]
    (['counter', 'chain'], 2)
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        """Create a table from `places`: `module:class` by kind."""
        self._places: dict[str, str | T] = dict(places)

    def __getitem__(self, kind: str) -> T:
        cls = self._places[kind]
        if isinstance(cls, str):
            module, _, name = cls.partition(":")
            loaded: T = getattr(import_module(module), name)
            self._places[kind] = cls = loaded
        return cls

    def __setitem__(self, kind: str, cls: T) -> None:
        self._places[kind] = cls

    def __delitem__(self, kind: str) -> None:
        del self._places[kind]

    def __contains__(self, kind: object) -> bool:
        return kind in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
