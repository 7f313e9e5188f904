"""The max flow between devices of a machine over all routes, and the links that limit it.

A link has its bandwidth per direction, a switch its backplane rate, a NIC its own rate in and out. Rates are integers (B/s), so
the result does not depend on the order.

Source: Dinic, Soviet Mathematics Doklady 11, 1970; minimum cut: Ford and Fulkerson, Canadian Journal of Mathematics 8, 1956.
Range: memories, DMA engines and message rates are not limits; traffic takes any route, not only the routed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hwsim.devices import Nic, Switch
from hwsim.machine import Link, Machine

_UNBOUNDED = 1 << 80


class FlowNetwork:
    """A flow network with devices as nodes and links as arcs."""

    def __init__(self, machine: Machine, links: Iterable[Link]) -> None:
        self._links = list(links)
        self._number: dict[str, int] = {}
        self._head: list[list[int]] = []  # outgoing arcs of a node; arc ^ 1 is the reverse arc
        self._to: list[int] = []
        self._room: list[int] = []
        self._of: dict[int, Link | str] = {}  # link or device of an arc
        inner: dict[str, tuple[int, int]] = {}
        carried: dict[tuple[str, bool], float] = {}
        for link in self._links:
            key = link.source, link.model.network
            carried[key] = carried.get(key, 0.0) + link.bandwidth
        for name in dict.fromkeys(end for link in self._links for end in (link.source, link.target)):
            model = machine.devices[name].model
            node = self._number[name] = self._node()
            backplane = machine.capacities.get(f"{name}.backplane")
            if isinstance(model, Switch) and backplane is not None:
                out = self._node()
                self._arc(node, out, round(backplane.rate), name)
                inner[name] = node, out
            elif isinstance(model, Nic) and model.bandwidth < carried.get((name, True), 0.0):  # otherwise its links are the limit
                into, out = self._node(), self._node()
                self._arc(into, node, round(model.bandwidth), name)
                self._arc(node, out, round(model.bandwidth), name)
                inner[name] = into, out
        for link in self._links:
            source, target = self._number[link.source], self._number[link.target]
            if link.source in inner and (link.model.network or machine.devices[link.source].kind == "switch"):
                source = inner[link.source][1]
            if link.target in inner and (link.model.network or machine.devices[link.target].kind == "switch"):
                target = inner[link.target][0]
            self._arc(source, target, round(link.bandwidth), link)
        self._source, self._sink = self._node(), self._node()
        self._plain = list(self._room)

    def holds(self, name: str) -> bool:
        """Return whether a device is a node."""
        return name in self._number

    def flow(self, sources: Sequence[str], sinks: Sequence[str], most: int | None = None) -> int:
        """Return the max flow from sources to sinks (B/s); the search may stop at `most`."""
        self._room = list(self._plain)
        del self._to[len(self._room) :]
        for arcs in self._head:
            while arcs and arcs[-1] >= len(self._room):
                arcs.pop()
        for name in sources:
            self._arc(self._source, self._number[name], _UNBOUNDED, "")
        for name in sinks:
            self._arc(self._number[name], self._sink, _UNBOUNDED, "")
        total = 0
        while (level := self._levels()) is not None and (most is None or total < most):
            total += self._blocking(level)
        return total

    def cut(self) -> list[Link | str]:
        """Return the full links and devices between the nodes that the sources reach and the rest, after `flow`."""
        level = self._levels(whole=True) or []
        return [
            limit
            for arc, limit in self._of.items()
            if arc < len(self._plain) and level[self._to[arc ^ 1]] >= 0 and level[self._to[arc]] < 0 and self._plain[arc] > 0
        ]

    def _node(self) -> int:
        self._head.append([])
        return len(self._head) - 1

    def _arc(self, a: int, b: int, room: int, limit: Link | str) -> None:
        if limit:
            self._of[len(self._to)] = limit
        for source, target, free in ((a, b, room), (b, a, 0)):
            self._head[source].append(len(self._to))
            self._to.append(target)
            self._room.append(free)

    def _levels(self, *, whole: bool = False) -> list[int] | None:
        """Return the distance of each node from the source over arcs with free capacity; -1 if not reached."""
        level = [-1] * len(self._head)
        level[self._source] = 0
        front = [self._source]
        while front:
            following = []
            for node in front:
                for arc in self._head[node]:
                    target = self._to[arc]
                    if self._room[arc] > 0 and level[target] < 0:
                        level[target] = level[node] + 1
                        following.append(target)
            if level[self._sink] >= 0 and not whole:
                return level
            front = following
        return level if whole else None

    def _blocking(self, level: Sequence[int]) -> int:
        """Return the additional flow over shortest paths (B/s)."""
        total = 0
        tried = [0] * len(self._head)
        path: list[int] = []
        node = self._source
        while True:
            if node == self._sink:
                pushed = min(self._room[arc] for arc in path)
                total += pushed
                for arc in path:
                    self._room[arc] -= pushed
                    self._room[arc ^ 1] += pushed
                full = next(index for index, arc in enumerate(path) if self._room[arc] == 0)
                node = self._to[path[full] ^ 1]
                del path[full:]
                continue
            arcs = self._head[node]
            while tried[node] < len(arcs):
                arc = arcs[tried[node]]
                if self._room[arc] > 0 and level[self._to[arc]] == level[node] + 1:
                    break
                tried[node] += 1
            if tried[node] < len(arcs):
                path.append(arcs[tried[node]])
                node = self._to[path[-1]]
            elif path:
                node = self._to[path.pop() ^ 1]
                tried[node] += 1
            else:
                return total
