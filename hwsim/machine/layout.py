"""A machine in the making: what one scope holds, and the same scope put in a place of a larger one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hwsim.devices import Cpu, Sockets
from hwsim.links import LinkKind
from hwsim.machine.libraries import Libraries
from hwsim.machine.names import below, natural
from hwsim.machine.placed import Link, PlacedDevice, PlacedNode, Routing


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection, both directions; `count` of the model side by side."""

    name: str
    a: str
    b: str
    model: LinkKind
    count: int = 1
    routing: Routing = "single"

    def links(self) -> Iterator[Link]:
        """Its two directions; half duplex, they draw from one capacity."""
        model, bandwidth = self.model, self.model.carried() * self.count
        first, second = sorted((self.a, self.b), key=natural)
        one = f"{self.name}:{first}--{second}" if model.duplex == "half" else ""
        both = f"{self.name}:{first}<->{second}" if model.two_way < 2 and not one else ""
        for source, target in ((self.a, self.b), (self.b, self.a)):
            capacity = one or f"{self.name}:{source}->{target}"
            latency, routing = model.delay(), self.routing
            yield Link(self.name, source, target, model.kind, bandwidth, latency, capacity, model, self.count, both, routing)


@dataclass(slots=True)
class Layout:
    """Names are relative to the scope.  used: how much of a budget (lanes, ...) of a device its links take.

    power: watts that all its parts draw at the most, as far as they say.
    libraries: for collectives, by machine ("" for this one).
    """

    devices: dict[str, PlacedDevice] = field(default_factory=dict)
    nodes: dict[str, PlacedNode] = field(default_factory=dict)
    wires: dict[tuple[str, str, str], Wire] = field(default_factory=dict)
    used: dict[tuple[str, str], int] = field(default_factory=dict)
    power: float = 0.0
    libraries: dict[str, Libraries] = field(default_factory=dict)

    def add_wire(self, wire: Wire) -> bool:
        """Whether there was none of this name between the two."""
        first, second = sorted((wire.a, wire.b))
        return self.wires.setdefault((wire.name, first, second), wire) is wire

    def put(self, child: Layout, node: str) -> None:
        """A copy of a scope, as the machine `node` of this one."""
        for device in child.devices.values():
            name, inside = below(node, device.name), below(node, device.node) if device.node else node
            self.devices[name] = replace_place(device, name, inside)
        for each in child.nodes.values():
            name, inside = below(node, each.name), below(node, each.node) if each.node else node
            self.nodes[name] = PlacedNode(name, each.family, each.index, inside)
        for wire in child.wires.values():
            a, b = below(node, wire.a), below(node, wire.b)
            self.add_wire(Wire(wire.name, a, b, wire.model, wire.count, wire.routing))
        for (name, budget), used in child.used.items():
            self.used[below(node, name), budget] = used
        self.power += child.power
        for inner, libraries in child.libraries.items():
            self.libraries[below(node, inner) if inner else node] = libraries

    def groups(self) -> dict[str, PlacedDevice]:
        """For every node of several sockets, all of them under their family's name."""
        families: dict[tuple[str, str], list[PlacedDevice]] = {}
        for device in self.devices.values():
            if device.kind == "cpu" and device.index is not None:
                families.setdefault((device.node, device.family), []).append(device)
        groups = {}
        for (node, family), sockets in families.items():
            model, name = sockets[0].model, below(node, family)
            if len(sockets) > 1 and isinstance(model, Cpu):
                names = tuple(sorted((socket.name for socket in sockets), key=natural))
                groups[name] = PlacedDevice(name, family, "cpu", Sockets(model, names), None, node)
        return {name: groups[name] for name in sorted(groups, key=natural)}

    def ordered(self) -> Layout:
        """The same in natural order of names, whatever the order of the file."""
        return replace(
            self,
            devices={name: self.devices[name] for name in sorted(self.devices, key=natural)},
            nodes={name: self.nodes[name] for name in sorted(self.nodes, key=natural)},
        )


def replace_place(device: PlacedDevice, name: str, node: str) -> PlacedDevice:
    """The same device elsewhere (`dataclasses.replace` is four times as slow, and there are thousands)."""
    return PlacedDevice(name, device.family, device.kind, device.model, device.index, node, device.fidelity)
