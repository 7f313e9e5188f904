"""What moving bytes from one device to another asks of the links and memories in between."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Gpu, Memory, Nic, Sockets, Storage, Switch
from hwsim.devices.roofline import latency_term, source_of
from hwsim.links import Framing, Protocol
from hwsim.machine.handling import PLAIN, Handling, Tally, copy_by, origin, protocol_on, send_messages
from hwsim.machine.path import Draw, Known, Path, on_wire
from hwsim.machine.placed import Link, NoRoute, PlacedDevice, UnknownName
from hwsim.machine.routes import Routes, Way
from hwsim.units import precise

_CACHED: Final = 200_000


class Transfers:
    """Costs of transfers, made once per pair of devices and once per size.

    backplanes: bytes per second of the switches whose links are more than they carry.
    """

    def __init__(
        self,
        devices: Mapping[str, PlacedDevice],
        groups: Mapping[str, PlacedDevice],
        routes: Routes,
        backplanes: Mapping[str, float] | None = None,
    ) -> None:
        self._devices, self._groups, self._routes = devices, groups, routes
        self._backplanes = backplanes or {}
        self._known: dict[tuple[str, str, bool, Protocol | None], Known] = {}
        self._costs: dict[tuple[str, str, float, bool, Handling], Cost] = {}

    def route(self, a: str, b: str) -> tuple[Link, ...]:
        """See `Machine.route`."""
        start, end = self.ends(a, b)
        return self._routes.route(start, end)

    def linked(self, name: str) -> bool:
        """Whether any link ends at a device."""
        return self._routes.linked(name)

    def backplane(self, name: str) -> float | None:
        """Bytes per second that a switch passes on where its links are more; None for anything else."""
        return self._backplanes.get(name)

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

    def cost(self, a: str, b: str, size: float, handling: Handling = PLAIN, *, ends: bool = True) -> Cost:
        """See `Machine.transfer`; `ends=False` leaves out what it draws of a disk at either end."""
        key = (a, b, size, ends, handling)
        found = self._costs.get(key)
        if found is None:
            if len(self._costs) >= _CACHED:
                self._costs.clear()
            found = self._costs[key] = self._make(a, b, size, ends, handling)
        return found

    def _members(self, name: str) -> tuple[str, ...]:
        group = self._groups.get(name)
        if group is not None and isinstance(group.model, Sockets):
            return group.model.names
        if name not in self._devices:
            raise UnknownName(f"there is no device '{name}'")
        return (name,)

    def _make(self, a: str, b: str, size: float, ends: bool, handling: Handling) -> Cost:
        known = self._known.get((a, b, ends, handling.protocol))
        if known is None:
            path = self._path(*self.ends(a, b), ends, handling.protocol)
            per_byte = path.per_byte()
            passes = 1 if path.links else max((each.times for each in per_byte), default=1)
            latency = math.fsum(term.seconds for term in path.latencies)
            known = self._known[a, b, ends, handling.protocol] = Known(path, per_byte, path.lines(), latency, passes)
        tally = self._tally(known.path, size, handling)
        latency = known.latency + math.fsum(term.seconds for term in tally.latencies)
        waits = (*known.path.latencies, *tally.latencies)
        if size <= 0:
            return Cost(Demand(latency=latency), why=waits)
        messages = handling.messages
        drawn: dict[str, tuple[float, float, Unit]] = {
            each.capacity: ((wire := on_wire(each.framing, size, messages)) * each.amount, wire * each.times, "B")
            for each in known.per_byte
        }
        for name, (amount, moved, unit) in tally.draws.items():
            before, past, _ = drawn.get(name, (0.0, 0.0, unit))
            drawn[name] = before + amount, past + moved, unit
        return Cost(
            Demand(
                latency=latency,
                amounts=tuple([(name, drawn[name][0]) for name in sorted(drawn)]),
                floor=max((term.seconds for term in tally.floors), default=0.0),
                holds=tuple(sorted((name, part) for name, part in tally.holds.items() if name not in drawn)),
                share=known.passes * size,
            ),
            moved=tuple([(name, moved, unit) for name, (_, moved, unit) in sorted(drawn.items())]),
            why=(*waits, *(line.term(size, messages) for line in known.lines), *tally.terms, *tally.floors),
        )

    def _tally(self, path: Path, size: float, handling: Handling) -> Tally:
        tally = Tally()
        start, end = self._devices.get(path.stops[0]), self._devices.get(path.stops[-1])
        if start is not None and end is not None:
            copy_by(tally, start, end, path.links, size, handling)
        if path.protocol is not None:
            send_messages(tally, self._devices, path.stops, path.links, handling.messages, path.protocol)
        return tally

    def _path(self, a: str, b: str, ends: bool, asked: Protocol | None) -> Path:
        if a == b and a in self._groups:
            return self._inside_group(a)
        way = self._routes.way(a, b)
        links = way.links
        stops = (a, *(link.target for link in links))
        protocol = protocol_on(self._devices, stops, asked)
        framings = [link.model.framing(protocol) for link in links]
        draws: list[Draw] = []
        latencies: list[Term] = []
        for name, leaving in ((a, True), (b, False)):
            if ends or not isinstance(self._devices[name].model, Storage):
                self._end(name, leaving, not links, draws, latencies)
        if way.shares:
            self._spread(way, stops, protocol, draws, latencies)
            return Path(stops, links, tuple(draws), tuple(latencies), protocol)
        for link, framing in zip(links, framings, strict=True):
            _cross(link, framing, draws, latencies)
        for at, name in enumerate(stops):
            self._pass(name, links, framings, at, draws, latencies)
        return Path(stops, links, tuple(draws), tuple(latencies), protocol)

    def _spread(
        self, way: Way, stops: Sequence[str], protocol: Protocol | None, draws: list[Draw], latencies: list[Term]
    ) -> None:
        """Over several ways at once: each link, switch and card takes its part; what waits is the slowest way's."""
        slowest = {link.capacity for link in way.links}
        before: dict[str, Link] = {}
        after: dict[str, Link] = {}
        through: dict[str, float] = {}
        for link, part in way.shares:
            aside: list[Term] = []
            here: list[Draw] = []
            on_way = link.capacity in slowest
            _cross(link, link.model.framing(protocol), here, latencies if on_way else aside)
            draws += [replace(draw, part=part) for draw in here]
            if on_way or link.target not in before:
                before[link.target] = link
            if on_way or link.source not in after:
                after[link.source] = link
            through[link.source] = through.get(link.source, 0.0) + part
        for name in dict.fromkeys([*stops, *through]):
            links = [side[name] for side in (before, after) if name in side]
            framings = [link.model.framing(protocol) for link in links]
            here, aside = [], []
            self._pass(name, links, framings, 1 if name in before else 0, here, latencies if name in stops else aside)
            draws += [replace(draw, part=min(through.get(name, 1.0), 1.0)) for draw in here]

    def _inside_group(self, name: str) -> Path:
        """A copy within a group of sockets: an equal part on each."""
        members = self._members(name)
        whole = self._path(members[0], members[0], True, None)
        n = len(members)
        draws = [
            Draw(f"{member}.memory", draw.amount / n, draw.seconds / n, f"memory {member}", draw.rate, n)
            for member in members
            for draw in whole.draws
        ]
        return Path((name,), (), tuple(draws), whole.latencies, None)

    def _end(self, name: str, leaving: bool, inside: bool, draws: list[Draw], latencies: list[Term]) -> None:
        """The memory (or disk) at one end; `inside`: the other end is the same."""
        model = self._devices[name].model
        inner = None
        match model:
            case Cpu() | Gpu():
                (capacity, seconds), wait = model.copy_bytes(name, 1.0), model.copy_latency()
                what, key, slow = "memory", "memory.bandwidth", "memory.latency"
                if inside and isinstance(model, Gpu):
                    inner = _reached_inside(model)
            case Memory():
                (capacity, seconds), wait = model.copy_bytes(name, 1.0), model.copy_latency()
                what, key, slow = "memory", "bandwidth", "latency"
            case _ if isinstance(model, Storage):
                (capacity, seconds), wait = model.copy_bytes(name, 1.0, leaving=leaving), model.copy_latency(leaving=leaving)
                what, (key, slow) = "media", model.copy_key(leaving=leaving)
            case _:
                return
        rate = ("bandwidth", precise(1 / seconds, "B/s"), source_of(model.sources, key))
        part, told = inner or (1.0, None)
        draws.append(Draw(capacity, seconds / part, seconds / part, f"{what} {name}", rate, inner=told))
        if wait > 0:
            latencies.append(latency_term(f"first access at {name}", wait, source_of(model.sources, slow), capacity))

    def _pass(
        self,
        name: str,
        links: Sequence[Link],
        framings: Sequence[Framing | None],
        at: int,
        draws: list[Draw],
        latencies: list[Term],
    ) -> None:
        """What a switch or NIC on the way (at stop `at`) takes."""
        model = self._devices[name].model
        if isinstance(model, Switch) and 0 < at < len(links):
            self._switch(name, model, links[at - 1], framings[at], draws, latencies)
        elif isinstance(model, Nic) and links:
            if model.latency > 0:
                latencies.append(
                    latency_term(f"through {name}", model.latency, source_of(model.sources, "latency"), f"{name}.tx")
                )
            rate = ("bandwidth", precise(model.bandwidth, "B/s"), source_of(model.sources, "bandwidth"))
            if at < len(links) and links[at].model.network:
                draws.append(Draw(f"{name}.tx", 1.0, 1 / model.bandwidth, f"out of {name}", rate, framing=framings[at]))
            if at > 0 and links[at - 1].model.network:
                draws.append(Draw(f"{name}.rx", 1.0, 1 / model.bandwidth, f"into {name}", rate, framing=framings[at - 1]))

    def _switch(
        self, name: str, model: Switch, before: Link, framing: Framing | None, draws: list[Draw], latencies: list[Term]
    ) -> None:
        """Its latency is a cause of its own: a better switch has less, whatever starts the op."""
        backplane = self._backplanes.get(name, model.bandwidth)
        if model.latency > 0:
            told = source_of(model.sources, "latency")
            latencies.append(latency_term(f"through {name}", model.latency, told, f"{name}.backplane"))
        if model.forwarding == "store-and-forward":
            inputs = (
                ("packet", precise(model.packet, "B"), source_of(model.sources, "packet")),
                ("bandwidth", precise(before.bandwidth, "B/s"), origin(before)),
            )
            seconds = model.packet / before.bandwidth
            latencies.append(Term("latency", "packet / bandwidth", inputs, seconds, before.capacity, kind="latency"))
        if backplane is not None:
            key = "bandwidth" if model.bandwidth is not None else "oversubscription"
            told = source_of(model.sources, key)
            if key == "oversubscription":
                told = f"its links together / {model.oversubscription:g}: {told}"
            rate = ("bandwidth", precise(backplane, "B/s"), told)
            draws.append(Draw(f"{name}.backplane", 1.0, 1 / backplane, f"backplane {name}", rate, framing=framing))


def _cross(link: Link, framing: Framing | None, draws: list[Draw], latencies: list[Term]) -> None:
    """What a link on the way takes: of its direction, of what both directions share, and the signal's way."""
    model, name = link.model, f"link {link.source}->{link.target}"
    told = precise(link.bandwidth, "B/s"), origin(link)
    draws.append(Draw(link.capacity, 1.0, 1 / link.bandwidth, name, ("bandwidth", *told), framing=framing))
    if link.both:
        rate = link.bandwidth * model.two_way
        source = f"both ways {model.two_way:g} x one: {source_of(model.sources, 'two_way')}"
        draws.append(
            Draw(link.both, 1.0, 1 / rate, f"{name}, both ways", ("bandwidth", precise(rate, "B/s"), source), framing=framing)
        )
    latencies += _waits(link)


def _waits(link: Link) -> Iterator[Term]:
    """Lines of the latency of a link, as its kind gives them."""
    name = f"link {link.source}->{link.target}"
    for wait in link.model.waits():
        if len(wait.inputs) == 1 and wait.formula == wait.inputs[0][0]:
            yield latency_term(name, wait.seconds, wait.inputs[0][3], link.capacity)
        else:
            inputs = tuple((key, _number(value, unit), source) for key, value, unit, source in wait.inputs)
            yield Term("latency", wait.formula, inputs, wait.seconds, link.capacity, kind="latency")


def _number(value: float, unit: str) -> str:
    return f"{value / 1e6:.6g}e6 m/s" if unit == "m/s" else precise(value, unit)


def _reached_inside(model: Gpu) -> tuple[float, tuple[str, str, str]] | None:
    """The part of the memory's bandwidth that a copy inside a GPU reaches, and what a derivation calls it."""
    if model.copies.local is not None:
        return model.copies.local, ("local", precise(model.copies.local, "%"), source_of(model.sources, "copies.local"))
    if model.sustained.copy < 1:
        told = source_of(model.sources, "sustained.copy")
        return model.sustained.copy, ("sustained", precise(model.sustained.copy, "%"), told)
    return None


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
            holds=tuple(sorted({**dict(first.demand.holds), **dict(then.demand.holds)}.items())),
            share=then.demand.share if then.demand.amounts else first.demand.share,
        ),
        moved=tuple(sorted((*first.moved, *then.moved))),
        why=(*first.why, *then.why),
    )
