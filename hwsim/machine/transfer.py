"""What moving bytes from one device to another asks of the links and memories in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hwsim.demand import Cost, Demand, Term
from hwsim.devices import Cpu, Disk, Gpu, Memory, Nic, Sockets, Switch
from hwsim.devices.roofline import WORKLOAD, latency_term, precise, source_of
from hwsim.machine.names import UnknownName
from hwsim.machine.placed import Link, PlacedDevice
from hwsim.machine.routes import NoRoute, Routes

_CACHED: Final = 200_000


@dataclass(frozen=True, slots=True)
class _Draw:
    """Per byte: `amount` of a capacity, and the seconds a derivation shows; `parts` devices share the bytes."""

    capacity: str
    amount: float
    seconds: float
    label: str
    rate: tuple[str, str, str]
    parts: int = 1


@dataclass(frozen=True, slots=True)
class _Path:
    """What every transfer between two devices has in common."""

    links: tuple[Link, ...]
    draws: tuple[_Draw, ...]
    latencies: tuple[Term, ...]

    def per_byte(self) -> tuple[tuple[str, float, int], ...]:
        """(capacity, amount, how often a byte passes it), sorted; a copy in place passes its memory twice."""
        found: dict[str, tuple[float, int]] = {}
        for draw in self.draws:
            amount, times = found.get(draw.capacity, (0.0, 0))
            found[draw.capacity] = amount + draw.amount, times + 1
        return tuple((name, amount, times) for name, (amount, times) in sorted(found.items()))

    def lines(self) -> tuple[_Line, ...]:
        """What the derivation says of each capacity, in the order of the way."""
        found: dict[str, list[_Draw]] = {}
        for draw in self.draws:
            found.setdefault(draw.capacity, []).append(draw)
        return tuple(_line(draws) for draws in found.values())


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the derivation without the bytes: seconds per byte."""

    label: str
    formula: str
    inputs: tuple[tuple[str, str, str], ...]
    seconds: float
    capacity: str


def _line(draws: Sequence[_Draw]) -> _Line:
    """Of all that one byte draws of a capacity: a copy in place reads its memory and writes it."""
    first, inputs = draws[0], [draws[0].rate]
    above, below = "bytes", "bandwidth"
    if len(draws) > 1:
        above, inputs = "passes x bytes", [("passes", str(len(draws)), "it is read and written"), *inputs]
    if first.parts > 1:
        below, inputs = "(sockets x bandwidth)", [*inputs, ("sockets", str(first.parts), "each takes an equal part")]
    return _Line(first.label, f"{above} / {below}", tuple(inputs), sum(draw.seconds for draw in draws), first.capacity)


@dataclass(frozen=True, slots=True)
class _Known:
    """A path, and what of its costs does not depend on the size."""

    path: _Path
    per_byte: tuple[tuple[str, float, int], ...]
    lines: tuple[_Line, ...]
    latency: float
    passes: int  # share per byte


class Transfers:
    """Costs of transfers, made once per pair of devices and once per size."""

    def __init__(self, devices: Mapping[str, PlacedDevice], groups: Mapping[str, PlacedDevice], routes: Routes) -> None:
        self._devices, self._groups, self._routes = devices, groups, routes
        self._known: dict[tuple[str, str, bool], _Known] = {}
        self._costs: dict[tuple[str, str, float, bool], Cost] = {}

    def route(self, a: str, b: str) -> tuple[Link, ...]:
        """See `Machine.route`."""
        start, end = self.ends(a, b)
        return self._routes.route(start, end)

    def linked(self, name: str) -> bool:
        """Whether any link ends at a device."""
        return self._routes.linked(name)

    def ends(self, a: str, b: str) -> tuple[str, str]:
        """The devices a transfer runs between: of a group of sockets the one nearest to the other end."""
        if a == b:
            return a, b
        pairs = [(start, end) for start in self._members(a) for end in self._members(b)]
        if len(pairs) == 1:
            return pairs[0]
        found = [(route, pair) for pair in pairs if (route := self._routes.find(*pair)) is not None]
        if not found:
            raise NoRoute(f"there is no route from {a} to {b}", None)
        return min(found, key=lambda each: (len(each[0]), -min((link.bandwidth for link in each[0]), default=0.0)))[1]

    def cost(self, a: str, b: str, size: float, *, ends: bool = True) -> Cost:
        """See `Machine.transfer`; `ends=False` leaves out what it draws of a disk at either end."""
        key = (a, b, size, ends)
        found = self._costs.get(key)
        if found is None:
            if len(self._costs) >= _CACHED:
                self._costs.clear()
            found = self._costs[key] = self._make(a, b, size, ends)
        return found

    def _members(self, name: str) -> tuple[str, ...]:
        group = self._groups.get(name)
        if group is not None and isinstance(group.model, Sockets):
            return group.model.names
        if name not in self._devices:
            raise UnknownName(f"there is no device '{name}'")
        return (name,)

    def _make(self, a: str, b: str, size: float, ends: bool) -> Cost:
        known = self._known.get((a, b, ends))
        if known is None:
            path = self._path(*self.ends(a, b), ends)
            per_byte = path.per_byte()
            passes = 1 if path.links else max((times for _, _, times in per_byte), default=1)
            latency = sum((term.seconds for term in path.latencies), 0.0)
            known = self._known[a, b, ends] = _Known(path, per_byte, path.lines(), latency, passes)
        if size <= 0:
            return Cost(Demand(latency=known.latency), why=known.path.latencies)
        shown = ("bytes", precise(size, "B"), WORKLOAD)
        terms = [
            Term(line.label, line.formula, (shown, *line.inputs), line.seconds * size, line.capacity) for line in known.lines
        ]
        return Cost(
            Demand(
                latency=known.latency,
                amounts=tuple([(name, amount * size) for name, amount, _ in known.per_byte]),
                share=known.passes * size,
            ),
            moved=tuple([(name, times * size, "B") for name, _, times in known.per_byte]),
            why=(*known.path.latencies, *terms),
        )

    def _path(self, a: str, b: str, ends: bool) -> _Path:
        if a == b and a in self._groups:
            return self._inside_group(a)
        links = self._routes.route(a, b)
        stops = [a, *(link.target for link in links)]
        draws: list[_Draw] = []
        latencies: list[Term] = []
        for name, leaving in ((a, True), (b, False)):
            if ends or self._devices[name].kind != "disk":
                self._end(name, leaving, draws, latencies)
        for link in links:
            rate = ("bandwidth", precise(link.bandwidth, "B/s"), _origin(link))
            draws.append(_Draw(link.capacity, 1.0, 1 / link.bandwidth, f"link {link.source}->{link.target}", rate))
            if link.latency > 0:
                origin = source_of(link.model.sources, "latency")
                latencies.append(latency_term(f"link {link.source}->{link.target}", link.latency, origin, link.capacity))
        for at, name in enumerate(stops):
            self._pass(name, links, at, draws, latencies)
        return _Path(links, tuple(draws), tuple(latencies))

    def _inside_group(self, name: str) -> _Path:
        """A copy within a group of sockets: an equal part on each."""
        members = self._members(name)
        whole = self._path(members[0], members[0], True)
        n = len(members)
        draws = [
            _Draw(f"{member}.memory", draw.amount / n, draw.seconds / n, f"memory {member}", draw.rate, n)
            for member in members
            for draw in whole.draws
        ]
        return _Path((), tuple(draws), whole.latencies)

    def _end(self, name: str, leaving: bool, draws: list[_Draw], latencies: list[Term]) -> None:
        """The memory (or disk) at one end."""
        model = self._devices[name].model
        match model:
            case Cpu() | Gpu():
                (capacity, seconds), wait = model.copy_bytes(name, 1.0), model.copy_latency()
                what, key, slow = "memory", "memory.bandwidth", "memory.latency"
            case Memory():
                (capacity, seconds), wait = model.copy_bytes(name, 1.0), model.copy_latency()
                what, key, slow = "memory", "bandwidth", "latency"
            case Disk():
                (capacity, seconds), wait = model.copy_bytes(name, 1.0, leaving=leaving), model.copy_latency(leaving=leaving)
                what, key = "media", "read" if leaving or model.write_bandwidth is None else "write"
                slow = "latency" if leaving or model.write_latency is None else "write_latency"
            case _:
                return
        rate = ("bandwidth", precise(1 / seconds, "B/s"), source_of(model.sources, key))
        draws.append(_Draw(capacity, seconds, seconds, f"{what} {name}", rate))
        if wait > 0:
            latencies.append(latency_term(f"first access at {name}", wait, source_of(model.sources, slow), capacity))

    def _pass(self, name: str, links: Sequence[Link], at: int, draws: list[_Draw], latencies: list[Term]) -> None:
        """What a switch or NIC on the way (at stop `at`) takes."""
        model = self._devices[name].model
        if isinstance(model, Switch) and 0 < at < len(links):
            if model.latency > 0:
                latencies.append(latency_term(f"through {name}", model.latency, source_of(model.sources, "latency")))
            if model.bandwidth is not None:
                rate = ("bandwidth", precise(model.bandwidth, "B/s"), source_of(model.sources, "bandwidth"))
                draws.append(_Draw(f"{name}.backplane", 1.0, 1 / model.bandwidth, f"backplane {name}", rate))
        elif isinstance(model, Nic) and links:
            if model.latency > 0:
                latencies.append(latency_term(f"through {name}", model.latency, source_of(model.sources, "latency")))
            rate = ("bandwidth", precise(model.bandwidth, "B/s"), source_of(model.sources, "bandwidth"))
            if at < len(links) and links[at].model.network:
                draws.append(_Draw(f"{name}.tx", 1.0, 1 / model.bandwidth, f"out of {name}", rate))
            if at > 0 and links[at - 1].model.network:
                draws.append(_Draw(f"{name}.rx", 1.0, 1 / model.bandwidth, f"into {name}", rate))


def join(first: Cost, then: Cost) -> Cost:
    """Both as one op: latencies after one another, everything else at the same time."""
    amounts: dict[str, float] = {}
    for name, amount in (*first.demand.amounts, *then.demand.amounts):
        amounts[name] = amounts.get(name, 0.0) + amount
    return Cost(
        Demand(
            latency=first.demand.latency + then.demand.latency,
            amounts=tuple(sorted(amounts.items())),
            floor=max(first.demand.floor, then.demand.floor),
            share=then.demand.share if then.demand.amounts else first.demand.share,
        ),
        moved=tuple(sorted((*first.moved, *then.moved))),
        why=(*first.why, *then.why),
    )


def _origin(link: Link) -> str:
    """Where a link's bandwidth is from: the file's number, or the standard's and the file's lanes."""
    stated = link.model.sources.get("bandwidth") or link.model.sources.get("rate")
    if stated is not None:
        return stated + (f", {link.count} side by side" if link.count > 1 else "")
    return link.model.formula() + (f", {link.count} times" if link.count > 1 else "")
