"""Two-phase checkpoints: the state of a model is copied from GPU memory to host memory and written to storage.

    sync    the training waits for copy and write at each checkpoint

    async   the training waits only for the copy, unless the previous write has not ended: host memory contains one buffer

All nodes of a training write their parts concurrently. The write time is the maximum of the time of the storage for all bytes and
of the time of a node's links and NICs for its part. Storage outside the machine has a bandwidth, and each node reaches it at the
bandwidth of its NICs.

Source: the two-phase checkpoints of Nicolae et al., "DeepFreeze" (CCGrid 2020) and Mohan et al., "CheckFreq" (FAST 2021).
**Range**: all nodes read a checkpoint back concurrently, each its part; replicas receive their copies over the network, as in a
step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from hwsim.demand import Capacity, Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Nic, Sockets
from hwsim.devices.storage import Direction, StorageAccesses
from hwsim.formats import format_quantity, precise
from hwsim.machine import Machine, UnknownName
from hwsim.ops import CannotPlace, LoweredOp, Scope
from hwsim.ops.disk import Write
from hwsim.ops.transfer import Copy
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import Bytes

COPY: Final = "checkpoint copy"
WRITE: Final = "checkpoint"
MANY: Final = 2_000  # capacities of one op above which only those of the first node and the slowest one are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWriteKeys:
    """A base of the keys of every `checkpoint:`: how the state of a model is written."""

    mode: Literal["sync", "async"] = field(
        "`sync`: training waits until the checkpoint is written; `async`: only until it is copied to host memory", default="sync"
    )
    request: Bytes = field("size of one write request", default=16e6, exclusive_minimum=0.0)
    depth: int = field("queue depth: write requests in flight", default=8, minimum=1)


@dataclass(frozen=True, slots=True)
class ProgramCheckpoint:
    """A checkpoint of one program: copy (None if the state is already in host memory) and write."""

    copy: LoweredOp | None
    write: LoweredOp

    def lost(self, rates: Mapping[str, float], *, waits_for_write: bool) -> float:
        """Return the time for which the training waits (s), without contention."""
        parts = [self.copy, self.write if waits_for_write else None]
        return math.fsum(part.cost.demand.alone(rates) if part.cost else part.time for part in parts if part is not None)


def checkpoint_ops(
    scope: Scope, size: float, source: str, target: str, *, request: float = 16e6, depth: int = 8
) -> ProgramCheckpoint:
    """Return the ops of a checkpoint from a device to a disk, through the program's host.

    Args:
        size: size of the state (bytes).
        source: device that contains the state.
        target: disk.
        request: size of one write request (bytes).
        depth: write requests in flight.

    Raises:
        UnknownName, CannotPlace, NoRoute: a name or route does not exist on the machine.
    """
    host, memory = scope.thread, scope.one(source) if source else scope.thread
    copied = Copy(source=memory, target=host, bytes=size).lower(scope) if host and scope.kind(memory) == "gpu" else None
    count = max(1, round(size / request))
    write = Write(target=target, source=host or memory, bytes=size / count, times=count, depth=depth).lower(scope)
    return ProgramCheckpoint(copied, write)


# ---- concurrent checkpoints of all nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStorage:
    """A storage of checkpoints, with exactly one of three keys.

    Args:
        target: disks of the machine, by the name that a node uses.
        bandwidth: aggregate bandwidth of storage outside the machine (B/s).
        seconds: stated duration of a write (s).
    """

    target: str = ""
    bandwidth: float | None = None
    seconds: float | None = None

    def __str__(self) -> str:
        if self.target:
            return self.target
        return "storage" if self.bandwidth is None else f"storage of {format_quantity(self.bandwidth, 'B/s')}"


@dataclass(frozen=True, slots=True)
class ParallelCheckpoint:
    """A checkpoint that many nodes write concurrently: copy, write, and read of the same bytes on a restart."""

    copy: Cost | None
    write: Cost
    read: Cost

    def seconds(self, rates: Mapping[str, float]) -> tuple[float, float, float]:
        """Return the times of copy, write and read (s), each without contention."""
        copy = self.copy.demand.alone(rates) if self.copy is not None else 0.0
        return copy, self.write.demand.alone(rates), self.read.demand.alone(rates)


def parallel_checkpoint(
    machine: Machine,
    gpus: Sequence[str],
    size: float,
    storage: CheckpointStorage,
    *,
    request: float = 16e6,
    depth: int = 8,
    snapshot: float | None = None,
    held: bool = False,
) -> ParallelCheckpoint:
    """Return the costs of a checkpoint whose parts on all GPUs are equal.

    Args:
        size: size of the entire state (bytes).
        request: size of one write request (bytes).
        depth: write requests in flight.
        snapshot: stated duration of the copy to host memory (s); None: computed.
        held: whether the copy must fit in host memory until it is written.

    Raises:
        UnknownName, CannotPlace, NoRoute: a name or route does not exist on the machine, or host memory is too small.
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
            )  # without a host, each GPU writes its part
            directions: tuple[tuple[Direction, list[list[Cost]]], ...] = (("write", writes), ("read", reads))
            for direction, costs in directions:
                costs.append(
                    [
                        cost
                        for memory, share in memories.items()
                        for cost in _served(machine, node, memory, storage.target, share, direction, request, depth)
                    ]
                )
    rates = machine.rates()
    of_links = combined_cost(copies, rates) if copies else None
    copy = of_links if snapshot is None else stated(snapshot, "snapshot")
    if storage.target:
        return ParallelCheckpoint(copy, combined_cost(writes, rates), combined_cost(reads, rates))
    seconds = storage.seconds
    if seconds is None:
        seconds = size / _outwards(machine, nodes, storage.bandwidth or math.inf)
    write = stated(seconds, "write")
    return ParallelCheckpoint(copy, write, write)


def checkpoint_times(
    machine: Machine,
    gpus: Sequence[str],
    size: float,
    storage: CheckpointStorage,
    nodes: int,
    *,
    request: float = 16e6,
    depth: int = 8,
    snapshot: float | None = None,
) -> tuple[float, float, float]:
    """Return the times of copy, write and read (s) of a checkpoint of identical nodes, computed for one node.

    Contention of nodes is included for the storage and its own links, but not for other shared links.

    Args:
        gpus: GPUs of one node, with equal parts of the state.
        size: size of the state of all nodes (bytes).
        nodes: number of nodes that write concurrently.
        request, depth, snapshot: as in `parallel_checkpoint`.

    Raises:
        UnknownName, CannotPlace, NoRoute: a name or route does not exist on the machine.
    """
    if storage.bandwidth is not None:
        storage = replace(storage, bandwidth=storage.bandwidth / nodes)
    part = parallel_checkpoint(machine, gpus, size / nodes, storage, request=request, depth=depth, snapshot=snapshot)
    node, rates, known = machine.node_of(gpus[0]), machine.rates(), machine.capacities
    disks = machine.select(storage.target, node) if storage.target else ()
    shared = [name for name in disks if machine.node_of(name) != node]

    def alone(cost: Cost | None) -> float:
        if cost is None:
            return 0.0
        amounts = tuple((name, amount * nodes if _is_of(known[name], shared) else amount) for name, amount in cost.demand.amounts)
        return replace(cost.demand, amounts=amounts).alone(rates)

    return alone(part.copy), alone(part.write), alone(part.read)


def _is_of(capacity: Capacity, devices: Sequence[str]) -> bool:
    """Whether a capacity belongs to one of these devices or to one of their links."""
    return any(name in devices for name in (capacity.device, *capacity.ends))


def _host(machine: Machine, node: str) -> str:
    """The CPU of a node, or all of its sockets; "" if it has none."""
    cpus = machine.devices_of("cpu", node)
    together = f"{node}.cpu" if node else "cpu"
    return together if len(cpus) > 1 and together in machine.groups else cpus[0] if cpus else ""


def _refuse_full(machine: Machine, host: str, node: str, size: float, snapshot: float | None) -> None:
    """Raise CannotPlace if there is no host, or if the copy does not fit in its memory."""
    model = machine.device(host).model if host else None
    if model is None and snapshot is None:
        message = f"an asynchronous checkpoint needs host memory, and {node or 'the machine'} has no cpu"
        raise CannotPlace(message, "mode: sync   or   snapshot: 2 s")
    room = getattr(getattr(model, "memory", None), "size", None) if isinstance(model, Cpu | Sockets) else None
    if room is not None and size > room:
        part = format_quantity(size, "B")
        message = f"the part of a checkpoint on {host} is {part}, more than its memory of {format_quantity(room, 'B')}"
        raise CannotPlace(message, "mode: sync   or use more nodes")


def _served(
    machine: Machine, node: str, memory: str, target: str, size: float, direction: Direction, request: float, depth: int
) -> Iterator[Cost]:
    """Costs of a node that writes its part, in equal shares, to all disks with this name."""
    disks = machine.select(target, node)
    for disk in disks:
        count = max(1, round(size / len(disks) / request))
        yield machine.serve(disk, direction, StorageAccesses(size=size / len(disks) / count, times=count, depth=depth), memory)


def _outwards(machine: Machine, nodes: Mapping[str, Sequence[str]], bandwidth: float) -> float:
    """Aggregate bandwidth (B/s) to storage outside the machine: the minimum of storage and total NIC bandwidth."""
    first = next(iter(nodes))
    cards = [machine.device(name).model for name in machine.devices_of("nic", first)]
    rate = math.fsum(card.bandwidth for card in cards if isinstance(card, Nic) and card.bandwidth)
    return min(bandwidth, rate * len(nodes)) if rate > 0 else bandwidth


def stated(seconds: float, key: str) -> Cost:
    """Return the cost of an op with a stated duration (s)."""
    term = Term(key, key, ((key, precise(seconds, "s"), "workload"),), seconds, kind="stated")
    return Cost(Demand(floor=seconds), why=(term,))


def combined_cost(groups: Sequence[Sequence[Cost]], rates: Mapping[str, float]) -> Cost:
    """Return the cost of concurrent ops as one op, which ends with the slowest and draws the sum of their amounts.

    Args:
        groups: costs by node.
        rates: rate of each capacity.
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
        why.append(Term("all at once", "sum of all draws / capacity", inputs, seconds, slowest))
    return Cost(
        replace(
            latest.demand,
            amounts=tuple(sorted(amounts.items())),
            floor=floor.demand.floor,
            clocks=floor.demand.clocks,
            holds=(),
            share=max(cost.demand.share for cost in costs),
        ),
        moved=tuple(sorted(item for item in moved.values() if item[0] in amounts)),
        why=tuple(why),
    )


def default_storage(machine: Machine) -> str:
    """Return the default storage of checkpoints: the only file system of the machine.

    Raises:
        UnknownName: the machine has no file system, or several.
    """
    shared = machine.devices_of("filesystem")
    if len(shared) == 1:
        return shared[0]
    count = f"several file systems ({', '.join(shared)})" if shared else "no file system"
    message = f"the checkpoint needs `to` or `bandwidth`: the machine has {count}"
    raise UnknownName(message, f"to: {shared[0] if shared else 'disk*'}   or   bandwidth: 2 TB/s")
