"""Devices, nodes and links of a machine by name: nothing is made before it is asked for.

A look-up costs about a microsecond whatever the size; `len` costs nothing; to go through all of it makes all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

from hwsim.devices import Cpu, Sockets
from hwsim.machine.layout import Layout
from hwsim.machine.libraries.reading import Libraries
from hwsim.machine.net import Net
from hwsim.machine.placed import Link, PlacedDevice, PlacedNode, below

T = TypeVar("T")
D = TypeVar("D")


class _View(Mapping[str, T], Generic[T]):
    """`made`: what has been asked for so far."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        libraries = self._find(name)
        if libraries is None:
            raise KeyError(name)
        return libraries

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, /, default: T | D) -> T | D: ...
    def get(self, name: str, /, default: T | D | None = None) -> T | D | None:
        """Without the exception that a `Mapping` would catch."""
        found = self._find(name)
        return default if found is None else found

    def _find(self, name: str) -> T | None:
        value = self.made.get(name)
        if value is None:
            value = self._make(name)
            if value is not None:
                self.made[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.made or self._make(name) is not None)

    def __repr__(self) -> str:
        return f"<{len(self)} by name>"

    def _make(self, name: str) -> T | None:
        raise NotImplementedError


class Devices(_View[PlacedDevice]):
    """Every device by its full name, in natural order."""

    def __len__(self) -> int:
        return self._layout.size

    def __iter__(self) -> Iterator[str]:
        return self._layout.walk(lambda part: part.names if part.child is None else ())

    def __contains__(self, name: object) -> bool:
        spot = self._layout.find(name) if isinstance(name, str) else None
        return spot is not None and spot.part.child is None

    def _make(self, name: str) -> PlacedDevice | None:
        spot = self._layout.find(name)
        if spot is None or spot.part.model is None:
            return None
        part = spot.part
        index = spot.member if part.numbered else None
        return PlacedDevice(name, part.family, part.kind, spot.part.model, index, spot.node, part.fidelity)


class Nodes(_View[PlacedNode]):
    """Every machine inside the machine by its full name, in natural order."""

    def __len__(self) -> int:
        return self._layout.machines

    def __iter__(self) -> Iterator[str]:
        return self._layout.walk(lambda part: part.names if part.child is not None else ())

    def _make(self, name: str) -> PlacedNode | None:
        spot = self._layout.find(name)
        if spot is None or spot.part.child is None:
            return None
        return PlacedNode(name, spot.part.family, spot.member if spot.part.numbered else None, spot.node)


class Groups(_View[PlacedDevice]):
    """For every node of several sockets, all of them under their family's name; in natural order."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self._families: frozenset[str] = frozenset()  # that are called so anywhere

    def __len__(self) -> int:
        return _groups_in(self._layout)

    def __iter__(self) -> Iterator[str]:
        return self._layout.walk(lambda part: (part.family,) if part.grouped else ()) if len(self) else iter(())

    def _make(self, name: str) -> PlacedDevice | None:
        node, _, family = name.rpartition(".")
        if not self._families:
            self._families = frozenset(part.family for part in self._layout.every() if part.grouped) or frozenset([""])
        if family not in self._families:
            return None
        spot = self._layout.find(node) if node else None
        layout = self._layout if not node else spot.part.child if spot is not None else None
        part = next((each for each in layout.parts if each.family == family and each.grouped), None) if layout else None
        if part is None or not isinstance(part.model, Cpu):
            return None
        names = tuple(below(node, each) for each in part.names)
        return PlacedDevice(name, family, "cpu", Sockets(part.model, names), None, node)


def _groups_in(layout: Layout) -> int:
    inside = sum(len(part.names) * _groups_in(part.child) for part in layout.parts if part.child is not None)  # whole
    return inside + sum(part.grouped for part in layout.parts)


class Kinds(Mapping[str, str]):
    """The kind of every device by its full name."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def __getitem__(self, name: str) -> str:
        spot = self._layout.find(name)
        if spot is None or spot.part.child is not None:
            raise KeyError(name)
        return spot.part.kind

    def __len__(self) -> int:
        return self._layout.size

    def __iter__(self) -> Iterator[str]:
        return self._layout.walk(lambda part: part.names if part.child is None else ())


class InnerLibraries(Mapping[str, Libraries]):
    """For every machine that says so, by full name, with what its devices exchange data."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        stated = [
            layout.libraries is not None,
            *(each.child is not None and each.child.libraries is not None for each in layout.every()),
        ]
        self._any = any(stated)

    def __getitem__(self, name: str) -> Libraries:
        if not name:
            libraries = self._layout.libraries
        else:
            spot = self._layout.find(name) if self._any else None
            libraries = spot.part.child.libraries if spot is not None and spot.part.child is not None else None
        if libraries is None:
            raise KeyError(name)
        return libraries

    def __iter__(self) -> Iterator[str]:
        if not self._any:
            return
        if self._layout.libraries is not None:
            yield ""
        yield from self._layout.walk(
            lambda part: part.names if part.child is not None and part.child.libraries is not None else ()
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return self._any


class Links(Sequence[Link]):
    """All links, by the names of their ends, then by their own. `len` costs nothing; to go through them makes them all."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._count = 2 * wires_in(net.layout)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Link]:
        net = self._net
        for name in net.layout.walk(lambda part: part.names if part.child is None else ()):
            yield from net.leaving(name)

    @overload
    def __getitem__(self, at: int) -> Link: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Link, ...]: ...
    def __getitem__(self, at: int | slice) -> Link | tuple[Link, ...]:
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} links>"


def wires_in(layout: Layout) -> int:
    """Connections, at any depth."""
    inside = sum(len(part.names) * wires_in(part.child) for part in layout.parts if part.child is not None)  # whole
    return len(layout.wires) + inside
