"""Rooflines of a machine's compute devices, and the ops of a workload below them.

    roof(I) = min(peak, I x memory bandwidth)         I: arithmetic intensity, FLOP per byte of memory traffic
    attained = FLOP / (latency + body) of the unloaded op

**Range**: one op at a time on its device. An op whose data stays in caches has no memory traffic: its roof is the peak.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from hwsim.demand import Cost, Term
from hwsim.devices import Cpu, Gpu, Sockets
from hwsim.graph.opgraph import OpGraph
from hwsim.machine import Machine, UnknownName
from hwsim.records import dataclass
from hwsim.units import UnitError, parse
from hwsim.views.kit.view import Unshowable
from hwsim.views.roofline.ceilings import Ceiling, compute_ceilings, memory_ceilings

STARTS: Final = "launch latency"  # bound of an op with a launch latency above its execution time


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """Equal ops.

    Args:
        name, kind: name and kind of the ops.
        count: number of ops.
        flop: FLOP of one op.
        bytes: memory traffic of one op (B).
        seconds: unloaded time of one op (s).
        peak: peak of the units that it uses (FLOP/s).
        bound: longest line of its derivation, in words.
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
        """Arithmetic intensity (FLOP/B); infinite without memory traffic."""
        return self.flop / self.bytes if self.bytes > 0 else math.inf

    @property
    def attained(self) -> float:
        """Attained performance (FLOP/s)."""
        return self.flop / self.seconds


@dataclass(frozen=True, slots=True)
class DeviceRoofline:
    """The ceilings of a device, and the ops below them.

    Args:
        device: name of the device.
        identical_count: number of equal devices.
        memory: ceilings of caches, memory and links.
        compute: ceilings of the compute units.
        points: ops.
        idle: (name, count) of ops without arithmetic.
    """

    device: str
    identical_count: int
    memory: tuple[Ceiling, ...]
    compute: tuple[Ceiling, ...]
    points: tuple[RooflinePoint, ...] = ()
    idle: tuple[tuple[str, int], ...] = ()

    @property
    def bandwidth(self) -> float:
        """Peak memory bandwidth (B/s)."""
        return next(ceiling.peak for ceiling in self.memory if ceiling.key == "memory")

    def roof(self, point: RooflinePoint) -> float:
        """Return the largest performance that the op can attain (FLOP/s)."""
        return min(point.peak, point.intensity * self.bandwidth)

    def ridge(self, ceiling: Ceiling) -> float:
        """Return the ridge point of a ceiling (FLOP/B)."""
        return ceiling.peak / self.bandwidth


def find(
    machine: Machine, graph: OpGraph | None = None, *, device: str = "", dtype: str | None = None, links: bool = False
) -> tuple[DeviceRoofline, ...]:
    """Return a roofline for each kind of compute device; with a workload, for each kind that its ops use.

    Args:
        machine: machine.
        graph: lowered workload; None for ceilings only.
        device: name of a device; "" for one of each kind.
        dtype: number format; None for all.
        links: whether to add the link from the host.

    Raises:
        Unshowable: the device does not exist, nothing computes, or nothing computes in that format.
    """
    rooflines = []
    for name, members in _computing(machine, device):
        every = compute_ceilings(machine, name)
        compute = tuple(ceiling for ceiling in every if not dtype or dtype == ceiling.key.partition(" ")[0])
        most = max((ceiling.peak for ceiling in every), default=math.inf)
        points, idle = _points(machine, graph, members, most) if graph is not None else ((), ())
        if compute and (graph is None or points or device):
            is_gpu = isinstance(machine.device(name).model, Gpu)
            alike = sum(member in machine.devices for member in members) if is_gpu and not device else 1  # integers
            rooflines.append(DeviceRoofline(name, alike, memory_ceilings(machine, name, links=links), compute, points, idle))
    if not rooflines and dtype:
        raise Unshowable(f"no device computes in {dtype}", "omit --dtype to show all formats")
    if not rooflines and graph is not None:
        return find(machine, None, device=device, dtype=dtype, links=links)
    return tuple(rooflines)


def _computing(machine: Machine, device: str) -> list[tuple[str, frozenset[str]]]:
    """Return (device, names in a workload: its own, its sockets, and equal devices)."""
    names = [*machine.groups, *machine.devices]
    able = [name for name in names if isinstance(machine.device(name).model, Cpu | Sockets | Gpu)]
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
    groups: dict[str, set[str]] = {}  # members by first member
    grouped = {socket for name in machine.groups for socket in _sockets(machine, name)}
    for name in able:
        if name in grouped:
            continue
        model = machine.device(name).model
        first = next((first for first in groups if _alike(machine.device(first).model, model)), name)
        groups.setdefault(first, set()).update({name, *_sockets(machine, name)})
    return [(name, frozenset(members)) for name, members in groups.items()]


def _alike(model: object, second: object) -> bool:
    if isinstance(model, Sockets) and isinstance(second, Sockets):
        return model.model == second.model and len(model.names) == len(second.names)
    return model == second


def _sockets(machine: Machine, name: str) -> tuple[str, ...]:
    model = machine.device(name).model
    return model.names if isinstance(model, Sockets) else ()


def _points(
    machine: Machine, graph: OpGraph, members: frozenset[str], most: float
) -> tuple[tuple[RooflinePoint, ...], tuple[tuple[str, int], ...]]:
    """Return (points of equal ops in order, ops without arithmetic).

    Args:
        machine: machine.
        graph: lowered workload.
        members: names of the device.
        most: peak of all units (FLOP/s), which caps the sum of a few busy cores at a higher clock.
    """
    rates, kinds = machine.rates(), {capacity.name: capacity.kind for capacity in graph.capacities}
    counts: dict[tuple[object, ...], int] = {}
    firsts: dict[tuple[object, ...], RooflinePoint] = {}
    idle: dict[str, int] = {}
    for name, kind, cost, size, times in _ops(graph, members):
        flop = size * math.fsum(amount for _, amount, unit in cost.moved if unit == "FLOP")
        if flop <= 0:
            idle[f"{name} ({kind})"] = idle.get(f"{name} ({kind})", 0) + times
            continue
        moved = size * math.fsum(amount for where, amount, unit in cost.moved if unit == "B" and kinds.get(where) == "memory")
        seconds = cost.demand.latency + size * cost.demand.body(rates)
        peak, unit = _units(cost)
        point = RooflinePoint(name, kind, 0, flop, moved, seconds, min(peak, most), _bound(cost, size, unit, kinds))
        key = (name, kind, flop, moved, round(seconds * 1e15), point.bound)
        firsts.setdefault(key, point)
        counts[key] = counts.get(key, 0) + times
    return tuple(replace(point, count=counts[key]) for key, point in firsts.items()), tuple(idle.items())


def _ops(graph: OpGraph, members: frozenset[str]) -> Iterator[tuple[str, str, Cost, float, int]]:
    """Yield (name, kind, cost, size, count) of the ops on these devices; equal ops of a block are joined."""
    for block in graph.blocks:
        alike: dict[tuple[int, int, float], int] = {}
        for label, cost, size in zip(block.label.tolist(), block.cost.tolist(), block.size.tolist(), strict=True):
            if cost >= 0 and graph.labels[label].device in members:
                alike[label, cost, size] = alike.get((label, cost, size), 0) + block.times
        for (label, cost, size), times in alike.items():
            yield graph.labels[label].name, graph.labels[label].kind, graph.costs[cost], size, times


def _units(cost: Cost) -> tuple[float, str]:
    """Return (peak of the units that the op uses, their name), from its derivation."""
    for term in cost.why:
        for name, value, source in term.inputs:
            if name == "peak":
                try:
                    return parse(value).value, str(source).partition(":")[0].removeprefix("flop.")
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


def _bound(cost: Cost, size: float, unit: str, kinds: Mapping[str, str]) -> str:
    body = [term for term in cost.why if term.kind != "latency"]
    latency = math.fsum(term.seconds for term in cost.why if term.kind == "latency")
    longest = max(body, key=lambda term: term.seconds, default=None)
    if longest is None or latency > size * longest.seconds:
        return STARTS
    return _called(longest, unit, kinds)


def _called(term: Term, unit: str, kinds: Mapping[str, str]) -> str:
    if term.label == "compute":
        return f"compute, {unit}" if unit else "compute"
    if term.kind == "floor":
        return f"compute, {unit}: wave quantization" if unit and kinds.get(term.capacity) == "compute" else "memory and caches"
    return WORDS.get(term.label, term.label)
