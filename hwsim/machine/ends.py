"""The ends of very many wires: from names to numbers, and whether two of them are the same wire."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim.machine.layout import Layout
from hwsim.machine.parts import Part
from hwsim.machine.wires import Bundle, Ints


class Ends:
    """The numbers of devices by name; what it has found out of the machines around them it remembers.

    >>> from hwsim.machine.parts import Numbered, Part
    >>> layout = Layout()
    >>> layout.add(Part("sw", Numbered("sw", 3), True, "switch"))
    >>> Ends(layout).numbers(["sw2", "sw0", "cpu"]).tolist()
    [2, 0, -1]
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._own: dict[str, int] = {}
        self._nodes: dict[str, tuple[int, dict[str, int]]] = {}  # the number of its first device, and of all those inside
        self._children: dict[str, Layout] = {}
        self._parts: dict[tuple[int, str], Part | None] = {}
        self._insides: dict[int, dict[str, int]] = {}

    def numbers(self, names: Sequence[str]) -> Ints:
        """By name the number, -1 for what is no device.  A name costs 0.3 us, and 0.05 us when it has been asked for before."""
        own, nodes = self._own, self._nodes
        for name in names:
            if name not in own:
                node, dot, last = name.rpartition(".")
                if not dot:
                    own |= self._part_of(last)
                else:
                    there = nodes.get(node)
                    if there is None:
                        there = nodes[node] = self._inside(node)
                    own[name] = there[0] + there[1][last] if last in there[1] else -1
        return np.fromiter(map(own.__getitem__, names), np.int32, len(names))

    def part_of(self, name: str) -> Part | None:
        """What a device is of, None for what is no device."""
        node, dot, last = name.rpartition(".")
        if not dot:
            found = self._layout.local(name)
            return found[0] if found is not None and found[0].child is None else None
        child = self._children.get(node)
        if child is None:
            spot = self._layout.find(node)
            child = None if spot is None else spot.part.child
            if child is None:
                return None
            self._children[node] = child
        key = id(child), last
        if key not in self._parts:
            local = child.local(last)
            self._parts[key] = local[0] if local is not None and local[0].child is None else None
        return self._parts[key]

    def _part_of(self, name: str) -> dict[str, int]:
        """The number of a device that stands directly in the scope, with all of its part: mostly all are asked for."""
        found = self._layout.local(name)
        if found is None or found[0].child is not None:
            return {name: -1}
        part = found[0]
        return dict(zip(part.names, range(part.start, part.start + part.size), strict=True))

    def _inside(self, node: str) -> tuple[int, dict[str, int]]:
        """The first device of a machine, and the numbers of those that stand directly in it; the same for all equal machines."""
        spot = self._layout.find(node)
        child = None if spot is None else spot.part.child
        if spot is None or child is None:
            return 0, {}
        if id(child) not in self._insides:
            parts = [part for part in child.parts if part.child is None]
            self._insides[id(child)] = {name: part.start + at for part in parts for at, name in enumerate(part.names)}
        return spot.number, self._insides[id(child)]


def first_again(layout: Layout, bundle: Bundle) -> int | None:
    """The first wire of a bundle between two that a wire of the same name joins already; None if there is none."""
    keys = bundle.keys()
    _, first = np.unique(keys, return_index=True)
    again = np.ones(len(keys), np.bool_)
    again[first] = False
    for other in layout.wires.bundles:
        if other.name == bundle.name:
            again |= np.isin(keys, other.keys())
    rows = np.flatnonzero(again)
    inside = _inside_one(layout, bundle)
    found = [*rows[:1].tolist(), *inside[:1]]
    return min(found) if found else None


def _inside_one(layout: Layout, bundle: Bundle) -> list[int]:
    """Wires that a machine inside this one has itself."""
    nodes = [part for part in layout.parts if part.child is not None]
    if not nodes:
        return []
    found = []
    for part in nodes:
        here = (bundle.a >= part.start) & (bundle.a < part.start + part.size)
        here &= (bundle.b >= part.start) & (bundle.b < part.start + part.size)
        for row in np.flatnonzero(here).tolist():
            (one, a), (other, b) = (
                divmod(int(bundle.a[row]) - part.start, part.each),
                divmod(int(bundle.b[row]) - part.start, part.each),
            )
            if one == other and part.child is not None and _joined(part.child, bundle.name, a, b):
                found.append(row)
    return sorted(found)


def _joined(layout: Layout, name: str, a: int, b: int) -> bool:
    if any(other == b and layout.wires.of(wire)[0].name == name for wire, other in layout.wires.at(a)):
        return True
    (part, one, here), (same, other, there) = layout.at(a), layout.at(b)
    return part is same and one == other and part.child is not None and _joined(part.child, name, here, there)
