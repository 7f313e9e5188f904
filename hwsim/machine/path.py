"""Costs of transfers between two devices that do not depend on the size: route, draws per byte, and latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from hwsim.demand import Term
from hwsim.devices import Cpu, Gpu, Memory, Nic, Switch
from hwsim.devices.line_errors import doubts
from hwsim.devices.roofline import WORKLOAD, latency_term, source_of
from hwsim.formats import precise
from hwsim.links import Framing, Protocol
from hwsim.machine.capacities import Backplanes
from hwsim.machine.contents import Link, PlacedDevice, network_sides
from hwsim.machine.routes import Route
from hwsim.machine.transfer_options import Input
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class ByteDraw:
    """A draw of one byte from a capacity.

    Args:
        capacity: name of the capacity.
        amount: amount drawn.
        seconds: time (s), for the derivation.
        label: label in the derivation.
        rate: input of the derivation.
        parts: number of devices that share the bytes equally.
        framing: packets, if the bytes on the wire are counted here.
        inner: fraction of the rate that a copy inside a memory reaches.
        part: fraction of the bytes on this route.
        regime: errors of the line (see `hwsim.origins.UncertaintySource`); "": those of its inputs.
    """

    capacity: str
    amount: float
    seconds: float
    label: str
    rate: Input
    parts: int = 1
    framing: Framing | None = None
    inner: Input | None = None
    part: float = 1.0
    regime: str = ""


@dataclass(frozen=True, slots=True)
class PerByte:
    """A draw of one byte on the wire from a capacity, and the number of times that it passes the capacity."""

    capacity: str
    amount: float
    times: float
    framing: Framing | None


@dataclass(frozen=True, slots=True)
class PathTerm:
    """A line of the derivation per byte on the wire, before the number of bytes is known."""

    label: str
    formula: str
    inputs: tuple[Input, ...]
    seconds: float
    capacity: str
    framing: Framing | None
    regime: str = ""

    def term(self, size: float, messages: float) -> Term:
        """Return the line for a number of bytes and messages."""
        moved: Input = ("bytes", precise(size, "B"), WORKLOAD)
        formula, wire = self.formula, on_wire(self.framing, size, messages)
        if self.framing is not None:
            packets = f"packets of {self.framing.payload:g} B with {self.framing.header:.4g} B of headers each"
            count = f" of {messages:g} messages" if messages != 1 else ""
            moved = ("wire", precise(wire, "B"), f"{precise(size, 'B')}{count} in {packets}")
            formula = formula.replace("bytes", "wire")
        seconds = self.seconds * wire
        unsure = (
            doubts(self.regime, self.label.partition(",")[0].removeprefix("link "), self.inputs[-1][2], seconds)
            if self.regime
            else ()
        )
        return Term(self.label, formula, (moved, *self.inputs), seconds, self.capacity, doubts=unsure)


@dataclass(frozen=True, slots=True)
class Path:
    """The size-independent costs of transfers between two devices.

    Args:
        stops: devices on the route, with both ends.
        links: links of the route.
        protocol: protocol of the messages.
        latencies: derivation lines of the latencies.
        draws: total draws, sorted by capacity; a copy within one memory passes it twice.
        drawn: single draws grouped by capacity, in the order of the route.
        latency: sum of the latencies (s).
        passes: `Demand.share` per byte.
    """

    stops: tuple[str, ...]
    links: tuple[Link, ...]
    protocol: Protocol | None
    latencies: tuple[Term, ...]
    draws: tuple[PerByte, ...]
    drawn: tuple[tuple[ByteDraw, ...], ...]
    latency: float
    passes: float

    @property
    def lines(self) -> tuple[PathTerm, ...]:
        """Derivation lines in the order of the route."""
        return tuple(map(_line, self.drawn))


def on_wire(framing: Framing | None, size: float, messages: float) -> float:
    """Return the bytes on the wire of a size in equal messages."""
    return size if framing is None else messages * framing.wire(size / messages)


@dataclass(slots=True)
class Collector:
    """A collector of draws and latencies along a route."""

    devices: Mapping[str, PlacedDevice]
    backplanes: Backplanes
    protocol: Protocol | None
    draws: list[ByteDraw] = field(default_factory=list)
    latencies: list[Term] = field(default_factory=list)

    def path(self, stops: Sequence[str], links: tuple[Link, ...]) -> Path:
        """Return the collected path."""
        by_capacity: dict[str, list[ByteDraw]] = {}
        for draw in self.draws:
            by_capacity.setdefault(draw.capacity, []).append(draw)
        draws = []
        for capacity in sorted(by_capacity):
            amount = times = 0.0
            for draw in by_capacity[capacity]:
                amount, times = amount + draw.part * draw.amount, times + draw.part
            draws.append(PerByte(capacity, amount, times, draw.framing))
        latency = math.fsum(term.seconds for term in self.latencies)
        passes = 1 if links else max((draw.times for draw in draws), default=1)
        drawn = tuple(map(tuple, by_capacity.values()))
        return Path(tuple(stops), links, self.protocol, tuple(self.latencies), tuple(draws), drawn, latency, passes)

    def end(self, name: str, *, inside: bool) -> None:
        """Add the memory at one end; inside: the other end is the same device. Disks are added by `Transfers.cost`."""
        model = self.devices[name].model
        if not isinstance(model, Cpu | Gpu | Memory):
            return
        (capacity, seconds), wait = model.copy_bytes(name, 1.0), model.copy_latency()
        prefix = "" if isinstance(model, Memory) else "memory."
        key, slow = f"{prefix}bandwidth", f"{prefix}latency"
        inner = _reached_inside(model) if inside and isinstance(model, Gpu) else None
        rate = ("bandwidth", precise(1 / seconds, "B/s"), source_of(model.sources, key))
        part, reached = inner or (1.0, None)
        self.draws.append(ByteDraw(capacity, seconds / part, seconds / part, f"memory {name}", rate, inner=reached))
        if wait > 0:
            self.latencies.append(latency_term(f"first access at {name}", wait, source_of(model.sources, slow), capacity, name))

    def cross(self, link: Link) -> None:
        """Add a link: its direction, the limit of both directions, and its latency."""
        model, name, framing = link.model, f"link {link.source}->{link.target}", link.model.framing(self.protocol)
        rate: Input = ("bandwidth", precise(link.bandwidth, "B/s"), model.origin(link.count))
        beside = model.joins in ("host", "gpus")
        regime = "copy/large" if beside else ""
        self.draws.append(ByteDraw(link.capacity, 1.0, 1 / link.bandwidth, name, rate, framing=framing, regime=regime))
        if link.both:
            both = link.bandwidth * model.two_way
            source = f"both directions {model.two_way:g} x one: " + source_of(model.sources, "two_way")
            rate = ("bandwidth", precise(both, "B/s"), source)
            regime = "copy/both" if beside else ""
            self.draws.append(
                ByteDraw(link.both, 1.0, 1 / both, f"{name}, both directions", rate, framing=framing, regime=regime)
            )
        holder = f"link {link.name}"
        for wait in model.waits():
            if len(wait.inputs) == 1 and wait.formula == wait.inputs[0][0]:
                self.latencies.append(latency_term(name, wait.seconds, wait.inputs[0][3], link.capacity, holder))
            else:
                inputs = tuple((key, _number(value, unit), source) for key, value, unit, source in wait.inputs)
                self.latencies.append(Term("latency", wait.formula, inputs, wait.seconds, link.capacity, "latency", (), holder))

    def through(self, name: str, before: Link | None, after: Link | None) -> None:
        """Add a switch or NIC on the route between two links."""
        model = self.devices[name].model
        if isinstance(model, Switch) and before is not None and after is not None:
            self._switch(name, model, before, after.model.framing(self.protocol))
        elif isinstance(model, Nic) and (before is not None or after is not None):
            if model.latency > 0:
                source = source_of(model.sources, "latency")
                self.latencies.append(latency_term(f"through {name}", model.latency, source, f"{name}.tx", name))
            rate = ("bandwidth", precise(model.bandwidth, "B/s"), source_of(model.sources, "bandwidth"))
            into, out = network_sides(self.devices, before, after)
            for link, passed, suffix, direction in ((after, out, "tx", "out of"), (before, into, "rx", "into")):
                if link is not None and passed:
                    framing = link.model.framing(self.protocol)
                    self.draws.append(
                        ByteDraw(f"{name}.{suffix}", 1.0, 1 / model.bandwidth, f"{direction} {name}", rate, framing=framing)
                    )

    def _switch(self, name: str, model: Switch, before: Link, framing: Framing | None) -> None:
        """Add a switch; its latency is attributed to the switch, not to the start of the op."""
        if model.latency > 0:
            source = source_of(model.sources, "latency")
            self.latencies.append(latency_term(f"through {name}", model.latency, source, f"{name}.backplane", name))
        if model.forwarding == "store-and-forward":
            inputs = (
                ("packet", precise(model.packet, "B"), source_of(model.sources, "packet")),
                ("bandwidth", precise(before.bandwidth, "B/s"), before.model.origin(before.count)),
            )
            seconds = model.packet / before.bandwidth
            capacity, holder = before.capacity, f"link {before.name}"
            self.latencies.append(Term("latency", "packet / bandwidth", inputs, seconds, capacity, "latency", holder=holder))
        backplane = self.backplanes.rate(name)
        backplane = model.bandwidth if backplane is None else backplane
        if backplane is not None:
            key = "bandwidth" if model.bandwidth is not None else "oversubscription"
            source = source_of(model.sources, key)
            if key == "oversubscription":
                source = f"sum of its links / {model.oversubscription:g}: " + source
            rate = ("bandwidth", precise(backplane, "B/s"), source)
            self.draws.append(ByteDraw(f"{name}.backplane", 1.0, 1 / backplane, f"backplane {name}", rate, framing=framing))

    def along(self, stops: Sequence[str], links: Sequence[Link]) -> None:
        """Add the links of one route, and the devices that it passes."""
        for link in links:
            self.cross(link)
        for index, name in enumerate(stops):
            self.through(name, links[index - 1] if index > 0 else None, links[index] if index < len(links) else None)

    def spread(self, stops: Sequence[str], route: Route) -> None:
        """Add several routes that share the bytes; the latency is the latency of the slowest route."""
        slowest = {link.capacity for link in route.links}
        before: dict[str, Link] = {}
        after: dict[str, Link] = {}
        through: dict[str, float] = {}
        for link, part in route.shares:
            on_slowest = link.capacity in slowest
            beside = Collector(self.devices, self.backplanes, self.protocol)
            beside.cross(link)
            self._take(beside, part, waits=on_slowest)
            if on_slowest or link.target not in before:
                before[link.target] = link
            if on_slowest or link.source not in after:
                after[link.source] = link
            through[link.source] = through.get(link.source, 0.0) + part
        for name in dict.fromkeys([*stops, *through]):
            beside = Collector(self.devices, self.backplanes, self.protocol)
            beside.through(name, before.get(name), after.get(name))
            self._take(beside, min(through.get(name, 1.0), 1.0), waits=name in stops)

    def _take(self, other: Collector, part: float, *, waits: bool) -> None:
        self.draws += [replace(draw, part=part) for draw in other.draws]
        self.latencies += other.latencies if waits else ()


def _line(draws: Sequence[ByteDraw]) -> PathTerm:
    """Return the derivation line of one capacity; a copy within one memory passes it twice (read, write)."""
    first, inputs = draws[0], [draws[0].rate]
    top, bottom = "bytes", "bandwidth"
    if len(draws) > 1:
        top, inputs = "passes x bytes", [("passes", str(len(draws)), "read and write"), *inputs]
    part = math.fsum(draw.part for draw in draws) / len(draws)
    if part < 1:
        top, inputs = f"part x {top}", [("part", precise(part, "1"), "of the bytes; others use other routes"), *inputs]
    if first.parts > 1:
        bottom, inputs = "(sockets x bandwidth)", [*inputs, ("sockets", str(first.parts), "each has an equal part")]
    elif first.inner is not None:
        bottom, inputs = f"({first.inner[0]} x bandwidth)", [*inputs, first.inner]
    seconds = math.fsum(draw.part * draw.seconds for draw in draws)
    return PathTerm(first.label, f"{top} / {bottom}", tuple(inputs), seconds, first.capacity, first.framing, first.regime)


def shared_by_sockets(draws: Iterable[ByteDraw], members: Sequence[str]) -> list[ByteDraw]:
    """Return the draws of a copy within a socket, spread equally over several sockets."""
    n = len(members)
    return [
        ByteDraw(f"{member}.memory", draw.amount / n, draw.seconds / n, f"memory {member}", draw.rate, n)
        for member in members
        for draw in draws
    ]


def _number(value: float, unit: str) -> str:
    return f"{value / 1e6:.6g}e6 m/s" if unit == "m/s" else precise(value, unit)


def _reached_inside(model: Gpu) -> tuple[float, Input] | None:
    """Return the fraction of memory bandwidth that a copy inside a GPU reaches, and its input of the derivation; None: all."""
    if model.copies.local is not None:
        return model.copies.local, ("local", precise(model.copies.local, "%"), source_of(model.sources, "copies.local"))
    if model.sustained.copy < 1:
        source = source_of(model.sources, "sustained.copy")
        return model.sustained.copy, ("sustained", precise(model.sustained.copy, "%"), source)
    return None
