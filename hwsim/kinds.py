"""Tables of the kinds that files name: from a kind to its class, which is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Kinds(MutableMapping[str, type[T]], Generic[T]):
    """Kind -> class. To know the names, or whether one is among them, imports nothing.

    >>> kinds = Kinds[object]("hwsim", {"tree": "spec.tree:Tree"})
    >>> list(kinds), "tree" in kinds, kinds["tree"].__name__
    (['tree'], True, 'Tree')

    Args:
        package: the package whose modules the places are in.
        places: kind -> "module:Class", one line a kind.
    """

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self.package = package
        self.places = dict(places)
        self._classes: dict[str, type[T]] = {}

    def __getitem__(self, kind: str) -> type[T]:
        if kind not in self._classes:
            module, _, name = self.places[kind].partition(":")
            self._classes[kind] = getattr(import_module(f"{self.package}.{module}"), name)
        return self._classes[kind]

    def __setitem__(self, kind: str, cls: type[T]) -> None:
        self.places[kind] = f"{cls.__module__}:{cls.__qualname__}"
        self._classes[kind] = cls

    def __delitem__(self, kind: str) -> None:
        del self.places[kind]
        self._classes.pop(kind, None)

    def __contains__(self, kind: object) -> bool:
        return kind in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
