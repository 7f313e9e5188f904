"""Rooflines of a machine's computing devices, and the ops of a workload below them.

    roof(I) = min(peak, I x bandwidth of memory)         I: FLOP per byte that crosses to memory
    attained = FLOP / (latency + body) of the op alone

**Range**: one op at a time, alone on its device.  An op whose data stays in caches has no intensity of memory: its roof is the
peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from hwsim.demand import Cost, Term
from hwsim.devices import Cpu, Gpu, Sockets
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine, UnknownName
from hwsim.records import dataclass
from hwsim.units import UnitError, parse
from hwsim.views.kit.view import Unshowable
from hwsim.views.roofline.ceilings import Ceiling, compute_ceilings, memory_ceilings

STARTS: Final = "start"  # what bounds an op that takes longer to start than to run


@dataclass(frozen=True, slots=True)
class Point:
    """Ops alike.  count: how often.  flop, bytes: of one, bytes that cross to memory.  seconds: of one, alone.

    peak: of the units it computes on, FLOP/s.  bound: the line of its derivation that is longest, in words.
    """

    name: str
    kind: str
    count: int
    flop: float
    bytes: float
    seconds: float
    peak: float
    bound: str

    @property
    def intensity(self) -> float:
        """FLOP per byte; infinite where nothing crosses to memory."""
        return self.flop / self.bytes if self.bytes > 0 else math.inf

    @property
    def attained(self) -> float:
        """FLOP per second."""
        return self.flop / self.seconds


@dataclass(frozen=True, slots=True)
class Roofline:
    """The ceilings of a device (and of those alike), and what runs below them.

    idle: ops of it without arithmetic, by name with how often.
    """

    device: str
    alike: int
    memory: tuple[Ceiling, ...]
    compute: tuple[Ceiling, ...]
    points: tuple[Point, ...] = ()
    idle: tuple[tuple[str, int], ...] = ()

    @property
    def bandwidth(self) -> float:
        """Of memory, bytes per second."""
        return next(each.peak for each in self.memory if each.key == "memory")

    def roof(self, point: Point) -> float:
        """FLOP per second that the op cannot get past."""
        return min(point.peak, point.intensity * self.bandwidth)

    def ridge(self, ceiling: Ceiling) -> float:
        """FLOP per byte from which that ceiling, and no longer memory, is the limit."""
        return ceiling.peak / self.bandwidth


def find(
    machine: Machine, graph: OpGraph | None = None, *, device: str = "", dtype: str | None = None, links: bool = False
) -> tuple[Roofline, ...]:
    """One for each computing device that differs from the ones before; with a workload those that its ops compute on.

    Args:
        graph: the lowered workload.
        device: only this one.
        dtype: only the ceilings of one number format.
        links: also the way from the host to the device.

    Raises:
        Unshowable: the machine has no such device, nothing computes, or nothing computes in that format.
    """
    found = []
    for name, members in _computing(machine, device):
        every = compute_ceilings(machine, name)
        compute = tuple(each for each in every if not dtype or dtype == each.key.partition(" ")[0])
        most = max((each.peak for each in every), default=math.inf)
        points, idle = _points(machine, graph, members, most) if graph is not None else ((), ())
        if compute and (graph is None or points or device):
            alike = 1 if device else sum(1 for each in members if each in machine.devices) if _is_gpu(machine, name) else 1
            found.append(Roofline(name, alike, memory_ceilings(machine, name, links=links), compute, points, idle))
    if not found and dtype:
        raise Unshowable(f"no device computes in {dtype}", "leave out --dtype for all formats")
    if not found and graph is not None:
        return find(machine, None, device=device, dtype=dtype, links=links)
    return tuple(found)


def _is_gpu(machine: Machine, name: str) -> bool:
    return isinstance(machine.device(name).model, Gpu)


def _computing(machine: Machine, device: str) -> list[tuple[str, frozenset[str]]]:
    """(a device, the names of those that stand for it in a workload: itself, its sockets, those alike)."""
    known = [*machine.groups, *machine.devices]
    able = [name for name in known if isinstance(machine.device(name).model, Cpu | Sockets | Gpu)]
    if not able:
        raise Unshowable("nothing on this machine computes", "a roofline needs a cpu or a gpu")
    if device:
        try:
            name = machine.one(device)
        except UnknownName as error:
            raise Unshowable(str(error), f"one of {', '.join(able[:12])}") from error
        if name not in able:
            kind = machine.device(name).kind if name in machine.devices else "machine"
            raise Unshowable(f"'{name}' is a {kind}, which does not compute", f"one of {', '.join(able[:12])}")
        return [(name, frozenset({name, *_sockets(machine, name)}))]
    found: list[tuple[str, set[str]]] = []
    grouped = {each for name in machine.groups for each in _sockets(machine, name)}
    for name in able:
        if name in grouped:
            continue
        model = machine.device(name).model
        same = next((members for first, members in found if _alike(machine.device(first).model, model)), None)
        if same is None:
            found.append((name, {name, *_sockets(machine, name)}))
        else:
            same |= {name, *_sockets(machine, name)}
    return [(name, frozenset(members)) for name, members in found]


def _alike(one: object, other: object) -> bool:
    if isinstance(one, Sockets) and isinstance(other, Sockets):
        return one.model == other.model and len(one.names) == len(other.names)
    return one == other


def _sockets(machine: Machine, name: str) -> tuple[str, ...]:
    model = machine.device(name).model
    return model.names if isinstance(model, Sockets) else ()


def _points(
    machine: Machine, graph: OpGraph, members: frozenset[str], most: float
) -> tuple[tuple[Point, ...], tuple[tuple[str, int], ...]]:
    """Ops alike as one point, in the order they come; and those that compute nothing.

    most: peak of all the units.  The clock of a few busy cores may be higher than that of all; what they do together is not.
    """
    rates = machine.rates()
    counts: dict[tuple[object, ...], int] = {}
    firsts: dict[tuple[object, ...], Point] = {}
    idle: dict[str, int] = {}
    for name, kind, cost, size, times in _ops(graph, members):
        flop = size * math.fsum(amount for _, amount, unit in cost.moved if unit == "FLOP")
        if flop <= 0:
            idle[f"{name} ({kind})"] = idle.get(f"{name} ({kind})", 0) + times
            continue
        moved = size * math.fsum(amount for where, amount, unit in cost.moved if unit == "B" and where.endswith(".memory"))
        seconds = cost.demand.latency + size * cost.demand.body(rates)
        peak, unit = _units(cost)
        point = Point(name, kind, 0, flop, moved, seconds, min(peak, most), _bound(cost, size, unit))
        key = (name, kind, flop, moved, round(seconds * 1e15), point.bound)
        firsts.setdefault(key, point)
        counts[key] = counts.get(key, 0) + times
    points = tuple(
        Point(one.name, one.kind, counts[key], one.flop, one.bytes, one.seconds, one.peak, one.bound)
        for key, one in firsts.items()
    )
    return points, tuple(idle.items())


def _ops(graph: OpGraph, members: frozenset[str]) -> Iterator[tuple[str, str, Cost, float, int]]:
    """(name, kind, cost, size, how often) of the ops on these devices, those of a block that look alike together."""
    for block in graph.blocks:
        alike: dict[tuple[int, int, float], int] = {}
        for label, cost, size in zip(block.label.tolist(), block.cost.tolist(), block.size.tolist(), strict=True):
            if cost >= 0 and graph.labels[label].device in members:
                alike[label, cost, size] = alike.get((label, cost, size), 0) + block.times
        for (label, cost, size), times in alike.items():
            yield graph.labels[label].name, graph.labels[label].kind, graph.costs[cost], size, times


def _units(cost: Cost) -> tuple[float, str]:
    """(peak of the units it computes on, what they are called), as its derivation says."""
    for term in cost.why:
        for name, value, source in term.inputs:
            if name == "peak":
                try:
                    return parse(value).value, source.partition(":")[0].removeprefix("flop.")
                except UnitError:  # a derivation in words
                    continue
    return math.inf, ""


WORDS: Final[Mapping[str, str]] = {
    "caches": "caches",
    "level 1": "L1",
    "level 2": "L2",
    "instructions": "instructions",
    "bandwidth of the cores": "bandwidth of its cores",
    "remote memory": "remote memory",
}


def _bound(cost: Cost, size: float, unit: str) -> str:
    body = [term for term in cost.why if term.kind != "latency"]
    latency = math.fsum(term.seconds for term in cost.why if term.kind == "latency")
    longest = max(body, key=lambda term: term.seconds, default=None)
    if longest is None or latency > size * longest.seconds:
        return STARTS
    return _called(longest, unit)


def _called(term: Term, unit: str) -> str:
    if term.label == "compute":
        return f"compute, {unit}" if unit else "compute"
    if term.kind == "floor":
        return f"compute, {unit}: waves of tiles" if term.capacity.endswith(".compute") and unit else "memory and caches"
    return WORDS.get(term.label, term.label)
