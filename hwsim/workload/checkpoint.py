"""Checkpoints: the state of a model, copied to the host's memory where it is on a GPU, and written to a disk.

    sync    the training waits for both: it loses copy + write at each checkpoint

    async   the training waits for the copy alone, while the write goes on: it loses the copy, as long as the write before has
            ended, for there is one buffer in the host's memory

A training writes with all its nodes at once, each a part: the write takes as long as the storage takes for all bytes, or the
links and cards of a node for its part, whatever is longer. Storage that is outside of the machine has a bandwidth, and each node
reaches it at the rate of its network cards.

Source: the two-phase checkpoints of Nicolae et al., "DeepFreeze" (CCGrid 2020) and Mohan et al., "CheckFreq" (FAST 2021).
**Range**: all nodes at once read a checkpoint back, each its part; the network brings copies to the others, as in a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from hwsim.demand import Capacity, Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Nic, Sockets
from hwsim.devices.storage import Asked, Direction
from hwsim.formats import format_quantity, precise
from hwsim.machine import Machine, UnknownName
from hwsim.ops import CannotPlace, Placed, Scope
from hwsim.ops.disk import Write
from hwsim.ops.transfer import Copy
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes

COPY: Final = "checkpoint copy"
WRITE: Final = "checkpoint"
MANY: Final = 2_000  # capacities of one op, above which the first node's, and the slowest, are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Keys of every `checkpoint:`, the way the state of a model is written."""

    mode: Literal["sync", "async"] = field(
        "sync: training waits until it is written; async: only until it is copied to the host's memory", default="sync"
    )
    request: Bytes = field("bytes of one write", default=16e6, exclusive_minimum=0.0)
    depth: int = field("writes in flight at once", default=8, minimum=1)


@dataclass(frozen=True, slots=True)
class Saving:
    """The two parts of a checkpoint; no copy where the state is in the host's memory already."""

    copy: Placed | None
    write: Placed

    def lost(self, rates: Mapping[str, float], *, waits_for_write: bool) -> float:
        """Seconds for which the training waits, alone on the machine."""
        parts = [self.copy, self.write if waits_for_write else None]
        return math.fsum(part.cost.demand.alone(rates) if part.cost else part.time for part in parts if part is not None)


def saving(scope: Scope, size: float, source: str, target: str, *, request: float = 16e6, depth: int = 8) -> Saving:
    """The way of `size` bytes in the memory of the device `source` to the disk `target`, through the program's host.

    request: bytes of one write.  depth: writes in flight.

    Raises:
        UnknownName, CannotPlace, NoRoute: as the machine says.
    """
    host, memory = scope.thread, scope.one(source) if source else scope.thread
    copied = Copy(source=memory, target=host, bytes=size).lower(scope) if host and scope.kind(memory) == "gpu" else None
    count = max(1, round(size / request))
    write = Write(target=target, source=host or memory, bytes=size / count, times=count, depth=depth).lower(scope)
    return Saving(copied, write)


# ---- of all nodes at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The storage that a training writes its checkpoints to: exactly one of the three.

    target: disks of the machine, as a node calls them.  bandwidth: of storage outside of the machine, all nodes together, B/s.
    seconds: what a write takes, as stated.
    """

    target: str = ""
    bandwidth: float | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        if self.target:
            return self.target
        return "storage" if self.bandwidth is None else f"storage of {format_quantity(self.bandwidth, 'B/s')}"


@dataclass(frozen=True, slots=True)
class Together:
    """A checkpoint that many nodes write at once; read: the same bytes back to where they came from."""

    copy: Cost | None
    write: Cost
    read: Cost

    def seconds(self, rates: Mapping[str, float]) -> tuple[float, float, float]:
        """(copy, write, read back), each alone on the machine."""
        copy = self.copy.demand.alone(rates) if self.copy is not None else 0.0
        return copy, self.write.demand.alone(rates), self.read.demand.alone(rates)


def together(
    machine: Machine,
    gpus: Sequence[str],
    size: float,
    storage: Storage,
    *,
    request: float = 16e6,
    depth: int = 8,
    snapshot: float | None = None,
    held: bool = False,
) -> Together:
    """The way of `size` bytes, each GPU an equal part of them, to a storage.

    Args:
        snapshot: stated seconds of the copy to the host's memory.
        held: the copy stays in the host's memory until it is written, and must fit.

    Raises:
        UnknownName, CannotPlace, NoRoute: as the machine says.
    """
    nodes: dict[str, list[str]] = {}
    for gpu in gpus:
        nodes.setdefault(machine.node_of(gpu), []).append(gpu)
    part = size / len(gpus)
    copies: list[list[Cost]] = []
    writes: list[list[Cost]] = []
    reads: list[list[Cost]] = []
    for node, inside in nodes.items():
        host = _host(machine, node)
        if snapshot is None and host:
            copies.append([machine.transfer(gpu, host, part) for gpu in inside])
        if held:
            _refuse_full(machine, host, node, part * len(inside), snapshot)
        if storage.target:
            memories = (
                {host: part * len(inside)} if host else dict.fromkeys(inside, part)
            )  # without a host each GPU writes its own
            ways: tuple[tuple[Direction, list[list[Cost]]], ...] = (("write", writes), ("read", reads))
            for direction, costs in ways:
                costs.append(
                    [
                        cost
                        for memory, share in memories.items()
                        for cost in _served(machine, node, memory, storage.target, share, direction, request, depth)
                    ]
                )
    rates = machine.rates()
    of_links = joined(copies, rates) if copies else None
    copy = of_links if snapshot is None else stated(snapshot, "snapshot")
    if storage.target:
        return Together(copy, joined(writes, rates), joined(reads, rates))
    seconds = storage.seconds
    if seconds is None:
        seconds = size / _outwards(machine, nodes, storage.bandwidth or math.inf)
    write = stated(seconds, "write")
    return Together(copy, write, write)


def of_equals(
    machine: Machine,
    gpus: Sequence[str],
    size: float,
    storage: Storage,
    nodes: int,
    *,
    request: float = 16e6,
    depth: int = 8,
    snapshot: float | None = None,
) -> tuple[float, float, float]:
    """(copy, write, read back) in seconds of a checkpoint of equal nodes, by a look at one of them.

    Links that nodes share on the way to the storage are not looked at, but for the storage's own.

    Args:
        gpus: the GPUs of one node, each with an equal part.
        size: bytes of all nodes.
        nodes: how many write at once.
        otherwise as of `together`.

    Raises:
        UnknownName, CannotPlace, NoRoute: as the machine says.
    """
    if storage.bandwidth is not None:
        storage = replace(storage, bandwidth=storage.bandwidth / nodes)
    part = together(machine, gpus, size / nodes, storage, request=request, depth=depth, snapshot=snapshot)
    node, rates, known = machine.node_of(gpus[0]), machine.rates(), machine.capacities
    disks = machine.select(storage.target, node) if storage.target else ()
    shared = [name for name in disks if machine.node_of(name) != node]

    def alone(cost: Cost | None) -> float:
        if cost is None:
            return 0.0
        drawn = tuple((name, amount * nodes if _is_of(known[name], shared) else amount) for name, amount in cost.demand.amounts)
        return replace(cost.demand, amounts=drawn).alone(rates)

    return alone(part.copy), alone(part.write), alone(part.read)


def _is_of(capacity: Capacity, devices: Sequence[str]) -> bool:
    """Whether a capacity is one of these devices', or of a link that leads to them or away."""
    return any(name in devices for name in (capacity.device, *capacity.ends))


def _host(machine: Machine, node: str) -> str:
    """The CPU of a node, or all of its sockets; "" if it has none."""
    cpus = machine.devices_of("cpu", node)
    together = f"{node}.cpu" if node else "cpu"
    return together if len(cpus) > 1 and together in machine.groups else cpus[0] if cpus else ""


def _refuse_full(machine: Machine, host: str, node: str, size: float, snapshot: float | None) -> None:
    """Raise where a copy has no memory to wait in.

    Raises:
        CannotPlace: no host, or too little memory.
    """
    model = machine.device(host).model if host else None
    if model is None and snapshot is None:
        message = f"an asynchronous checkpoint is copied to the host's memory, and {node or 'the machine'} has no cpu"
        raise CannotPlace(message, "mode: sync, or snapshot: 2 s")
    room = getattr(getattr(model, "memory", None), "size", None) if isinstance(model, Cpu | Sockets) else None
    if room is not None and size > room:
        message = f"{host} holds {format_quantity(room, 'B')}, and its part of a checkpoint is {format_quantity(size, 'B')}"
        raise CannotPlace(message, "mode: sync, or more nodes")


def _served(
    machine: Machine,
    node: str,
    memory: str,
    target: str,
    size: float,
    direction: Direction,
    request: float,
    depth: int,
) -> Iterator[Cost]:
    """Costs of a node that writes its part, evenly over the disks that it calls by that name."""
    disks = machine.select(target, node)
    for disk in disks:
        count = max(1, round(size / len(disks) / request))
        yield machine.serve(disk, direction, Asked(size=size / len(disks) / count, times=count, depth=depth), memory)


def _outwards(machine: Machine, nodes: Mapping[str, Sequence[str]], bandwidth: float) -> float:
    """B/s at which all nodes reach a storage outside of the machine: its own, and their network cards at most."""
    first = next(iter(nodes))
    cards = [machine.device(name).model for name in machine.devices_of("nic", first)]
    rate = math.fsum(card.bandwidth for card in cards if isinstance(card, Nic) and card.bandwidth)
    return min(bandwidth, rate * len(nodes)) if rate > 0 else bandwidth


def stated(seconds: float, key: str) -> Cost:
    """An op that takes stated seconds."""
    term = Term(key, key, ((key, precise(seconds, "s"), "workload"),), seconds, kind="stated")
    return Cost(Demand(floor=seconds), why=(term,))


def joined(groups: Sequence[Sequence[Cost]], rates: Mapping[str, float]) -> Cost:
    """Costs of many at once as one op: it ends when the slowest has ended, and competes on each capacity as all that meet there.

    groups: by node.
    """
    costs = [cost for group in groups for cost in group]
    amounts: dict[str, float] = {}
    moved: dict[str, tuple[str, float, Unit]] = {}
    for cost in costs:
        for name, amount in cost.demand.amounts:
            amounts[name] = amounts.get(name, 0.0) + amount
        for name, amount, unit in cost.moved:
            moved[name] = name, moved.get(name, (name, 0.0, unit))[1] + amount, unit
    slowest = max(amounts, key=lambda name: (amounts[name] / rates[name], name), default="")
    if len(amounts) > MANY:
        kept = {name for cost in groups[0] for name, _ in cost.demand.amounts} | {slowest}
        amounts = {name: amount for name, amount in amounts.items() if name in kept}
    latest = max(costs, key=lambda cost: cost.demand.latency)
    floor = max(costs, key=lambda cost: cost.demand.floor)
    seconds = amounts[slowest] / rates[slowest] if slowest else 0.0
    why = [term for term in latest.why if term.kind == "latency"]
    why += [term for term in floor.why if term.kind != "latency" and term.seconds > 0 and term.seconds <= floor.demand.floor]
    if slowest:
        size = math.fsum(cost.demand.share for cost in costs)
        inputs = (("bytes", precise(size, "B"), f"of {len(costs)} at once"),)
        why.append(Term("all at once", "what all draw / capacity", inputs, seconds, slowest))
    return Cost(
        replace(
            latest.demand,
            amounts=tuple(sorted(amounts.items())),
            floor=floor.demand.floor,
            clocks=floor.demand.clocks,
            holds=(),
            share=max(cost.demand.share for cost in costs),
        ),
        moved=tuple(sorted(each for each in moved.values() if each[0] in amounts)),
        why=tuple(why),
    )


def usual_storage(machine: Machine) -> str:
    """The storage that is meant where none is named: the only file system of the machine.

    Raises:
        UnknownName: there is none, or there are several.
    """
    shared = machine.devices_of("filesystem")
    if len(shared) == 1:
        return shared[0]
    message = (
        f"which of {', '.join(shared)} is it written to?"
        if shared
        else "a checkpoint needs its storage: the machine has no file system"
    )
    raise UnknownName(message, f"to: {shared[0] if shared else 'disk*'}; or bandwidth: 2 TB/s of storage elsewhere")
