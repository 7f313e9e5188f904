"""Lazy mappings from names to devices, nodes and links of a machine.

A lookup takes about a microsecond for any size of the machine; `len` is computed once; iteration creates only names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Generic, TypeVar, overload

from hwsim.devices import Cpu, Sockets
from hwsim.machine.contents import Link, PlacedDevice, PlacedNode, below, within
from hwsim.machine.layout import Layout, LayoutPart
from hwsim.machine.libraries.parser import Libraries
from hwsim.machine.net import Net

FEW: Final = 1000  # number of names up to which they are cached
T = TypeVar("T")
D = TypeVar("D")


class LazyMapping(Mapping[str, T], Generic[T]):
    """A mapping whose values are created on first lookup.

    Args:
        find: function from a name to its value; None for an unknown name.
        names: function that iterates over all names in order.
        count: function that returns the number of names.
    """

    def __init__(
        self, find: Callable[[str], T | None], names: Callable[[], Iterator[str]], count: Callable[[], int] | None = None
    ) -> None:
        self._find, self._names, self._count = find, names, count
        self._made: dict[str, T] = {}
        self._length: int | None = None
        self._few: tuple[str, ...] | None = None

    def __getitem__(self, name: str) -> T:
        value = self._made.get(name)
        if value is None and (value := self.get(name)) is None:
            raise KeyError(name)
        return value

    @overload
    def get(self, name: str, /) -> T | None: ...
    @overload
    def get(self, name: str, /, default: T | D) -> T | D: ...
    def get(self, name: str, /, default: T | D | None = None) -> T | D | None:
        """Return the value without raising and catching KeyError as `Mapping.get` does."""
        value = self._made.get(name)
        if value is None:
            value = self._find(name)
            if value is None:
                return default
            self._made[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self._made or self._find(name) is not None)

    def __iter__(self) -> Iterator[str]:
        if self._few is None and len(self) <= FEW:
            self._few = tuple(self._names())
        return self._names() if self._few is None else iter(self._few)

    def __len__(self) -> int:
        if self._length is None:
            self._length = self._count() if self._count is not None else sum(1 for _ in self._names())
        return self._length

    def __repr__(self) -> str:
        return f"<{len(self)} by name>"


def device_names(layout: Layout) -> Iterator[str]:
    """Iterate over the full names of all devices in natural order."""
    return layout.walk(members_of_devices)


def members_of_devices(part: LayoutPart) -> Sequence[str]:
    """Return the names of a part of devices; none for inner machines."""
    return part.names if part.child is None else ()


def devices(layout: Layout) -> LazyMapping[PlacedDevice]:
    """Return every device by full name, in natural order."""
    return LazyMapping(partial(_device, layout), partial(device_names, layout), partial(getattr, layout, "size"))


def _device(layout: Layout, name: str) -> PlacedDevice | None:
    spot = layout.find(name)
    if spot is None or (model := spot.part.model) is None:
        return None
    part, index = spot.part, spot.member if spot.part.numbered else None
    return PlacedDevice(name, part.family, part.kind, model, index, spot.node, part.fidelity, part.use)


def kinds(layout: Layout) -> LazyMapping[str]:
    """Return the kind of every device by full name."""
    return LazyMapping(partial(_kind, layout), partial(device_names, layout), partial(getattr, layout, "size"))


def _kind(layout: Layout, name: str) -> str | None:
    spot = layout.find(name)
    return None if spot is None or spot.part.child is not None else spot.part.kind


def nodes(layout: Layout) -> LazyMapping[PlacedNode]:
    """Return every inner machine by full name, in natural order."""
    names = partial(layout.walk, members_of_nodes)
    return LazyMapping(partial(_node, layout), names, partial(getattr, layout, "machines"))


def members_of_nodes(part: LayoutPart) -> Sequence[str]:
    """Return the names of a part of inner machines; none for devices."""
    return part.names if part.child is not None else ()


def _node(layout: Layout, name: str) -> PlacedNode | None:
    spot = layout.find(name)
    if spot is None or spot.part.child is None:
        return None
    return PlacedNode(name, spot.part.family, spot.member if spot.part.numbered else None, spot.node)


def groups(layout: Layout) -> LazyMapping[PlacedDevice]:
    """Return the group of sockets of each node with several, by the name of the family, in natural order."""
    families = frozenset(part.family for part in layout.every() if part.grouped)
    return LazyMapping(partial(_group, layout, families), partial(_group_names, layout, families), partial(_groups_in, layout))


def _group_names(layout: Layout, families: frozenset[str]) -> Iterator[str]:
    return layout.walk(_family_of_group) if families else iter(())


def _family_of_group(part: LayoutPart) -> Sequence[str]:
    return (part.family,) if part.grouped else ()


def _group(layout: Layout, families: frozenset[str], name: str) -> PlacedDevice | None:
    node, family = within(name)
    inner = _inner(layout, node) if family in families else None
    part = next((part for part in inner.parts if part.family == family and part.grouped), None) if inner else None
    if part is None or not isinstance(part.model, Cpu):
        return None
    return PlacedDevice(name, family, "cpu", Sockets(part.model, tuple(below(node, member) for member in part.names)), None, node)


def _inner(layout: Layout, node: str) -> Layout | None:
    """Return the layout of an inner machine, or of the whole for ""; None if there is none."""
    spot = layout.find(node) if node else None
    return layout if not node else spot.part.child if spot is not None else None


def _groups_in(layout: Layout) -> int:
    inside = sum(len(part.names) * _groups_in(part.child) for part in layout.parts if part.child is not None)  # integers
    return inside + sum(part.grouped for part in layout.parts)


def libraries(layout: Layout) -> Mapping[str, Libraries]:
    """Return the communication libraries of each machine that states them, by full name ("" for the whole)."""
    if all(scope.libraries is None for scope in layout.scopes()):
        return {}
    return LazyMapping(partial(_libraries, layout), partial(_library_names, layout))


def _libraries(layout: Layout, name: str) -> Libraries | None:
    inner = _inner(layout, name)
    return None if inner is None else inner.libraries


def _library_names(layout: Layout) -> Iterator[str]:
    if layout.libraries is not None:
        yield ""
    yield from layout.walk(lambda part: part.names if part.child is not None and part.child.libraries is not None else ())


class LinkCollection(Collection[Link]):
    """A collection of all links, ordered by their ends, then by name. Iteration creates all links; `len` creates none."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._count = 2 * _wires_in(net.layout)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Link]:
        for name in device_names(self._net.layout):
            yield from self._net.leaving(name)

    def __contains__(self, link: object) -> bool:
        return any(link == other for other in self)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LinkCollection)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]


def _wires_in(layout: Layout) -> int:
    """Return the number of wires, at any depth."""
    inside = sum(len(part.names) * _wires_in(part.child) for part in layout.parts if part.child is not None)  # integers
    return len(layout.wires) + inside
