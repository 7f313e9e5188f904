"""Common code of storage devices: the accesses of an op, the drain of caches and credits, the cost of one op."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from hwsim.demand import AccessTime, Cost, Crowd, Demand, Requests, Term, Unit
from hwsim.devices.contention import Mixture
from hwsim.devices.line_errors import doubts
from hwsim.devices.roofline import WORKLOAD, CannotCompute, Input, latency_term, source_of
from hwsim.formats import precise
from hwsim.origins import Cited, Origin
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.devices.kind import Storage

Access = Literal["sequential", "random"]
Direction = Literal["read", "write"]

PAGE: Final = 4096.0  # access size of the IOPS in data sheets (B)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAccesses:
    """The accesses of an op to a storage device.

    Args:
        size: size of one access (B).
        times: number of accesses.
        access: sequential or random positions on the device.
        depth: queue depth of the op: accesses in flight.
        region: size of the region that random accesses stay within (B); None: the entire device.
        sync: whether each write reaches the medium before it completes and before the next write starts.
        written: share of writes in an op that both reads and writes; the machine splits it.
        of_service: whether it is one of many recurring requests. Accesses of other requests come before it and in between, write
            caches are full and credits are spent.
    """

    size: float
    times: float = 1
    access: Access = "sequential"
    depth: float = 1
    region: float | None = None
    sync: bool = False
    written: float = 0.0
    of_service: bool = False

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise CannotCompute(f"expected a depth of at least 1, got {self.depth:g}", "depth: 1")
        if self.region is not None and self.region <= 0:
            raise CannotCompute(f"expected a region larger than 0, got {self.region:g}", "remove `region` to use the whole disk")

    @property
    def bytes(self) -> float:
        return self.size * self.times

    def requests(self, name: str, direction: Direction) -> Requests:
        """Return these accesses for a request-level simulation."""
        return Requests(
            device=name,
            count=self.times,
            size=self.size,
            pattern=self.access,
            span=self.region or 0.0,
            write_share=self.written or (1.0 if direction == "write" else 0.0),
            depth=1 if self.sync else int(self.depth),
            sync=self.sync,
        )

    @property
    def waits(self) -> float:
        """Number of accesses exposed to the latency: sequential ones are read ahead or written behind, except with `sync`."""
        return self.times if self.access == "random" else max(0.0, self.times - 1) if self.sync else 0.0

    def at_once(self, queue: float) -> float:
        """Return the number of accesses in flight: at most their number and the device's queue depth."""
        return 1.0 if self.sync else max(1.0, min(self.depth, queue, self.times))

    @property
    def own_depth(self) -> int:
        """Number of accesses in flight, without the limit of the device."""
        return 1 if self.sync else max(1, round(min(self.depth, self.times)))

    def under_way(self, queue: float) -> Input:
        """Return the number of accesses in flight (see `at_once`) as an input of a derivation."""
        if self.sync:
            return "at once", "1", "sync: each waits for the previous one"
        return (
            "at once",
            f"{self.at_once(queue):.6g}",
            f"minimum of depth {self.depth:g}, queue {queue:g} and {self.times:g} accesses",
        )


def drain_time(amount: float, fast: float, steady: float, stock: float) -> float:
    """Return the time (s) of an amount that proceeds at the rate `fast` until the stock is used up, then at the rate `steady`.

    The stock refills at the steady rate and is consumed at fast - steady: an exact token bucket.

    >>> drain_time(30.0, fast=3.0, steady=1.0, stock=10.0)  # 5 s at 3, the other 15 at 1
    20.0
    >>> drain_time(12.0, fast=3.0, steady=1.0, stock=10.0), drain_time(5.0, fast=1.0, steady=2.0, stock=0.0)
    (4.0, 5.0)
    """
    if fast <= steady or math.isinf(stock):
        return amount / fast
    burst = stock / (fast - steady)
    if amount > fast * burst and steady == 0:  # too slow for a float
        return math.inf
    return amount / fast if amount <= fast * burst else burst + (amount - fast * burst) / steady


def burst_amount(amount: float, fast: float, steady: float, stock: float) -> float | None:
    """Return the amount that proceeds at the rate `fast` before the stock is used up (see `drain_time`); None if the stock
    suffices.

    >>> burst_amount(30.0, fast=3.0, steady=1.0, stock=10.0), burst_amount(12.0, fast=3.0, steady=1.0, stock=10.0)
    (15.0, None)
    """
    if drain_time(amount, fast, steady, stock) <= amount / fast * (1 + 1e-12):
        return None
    return stock * fast / (fast - steady)


@dataclass(frozen=True, slots=True)
class StorageLimit:
    """A line of a derivation: a lower bound of the time that a device is busy.

    Args:
        label: name of the limit.
        formula: formula in words.
        inputs: numbers of the formula.
        seconds: its result (s).
        moving: part of `seconds` that scales with the speed of the medium (s).
    """

    label: str
    formula: str
    inputs: tuple[Input, ...]
    seconds: float
    moving: float = 0.0


def count_input(accesses: StorageAccesses) -> Input:
    """Return the number of accesses as an input of a derivation."""
    return "times", precise(accesses.times, "1"), WORKLOAD


def size_input(accesses: StorageAccesses) -> Input:
    """Return the size of one access as an input of a derivation."""
    return "size", precise(accesses.size, "B"), WORKLOAD


def key_input(name: str, value: float, unit: str, sources: Mapping[str, Origin], key: str) -> Input:
    """Return a number of the device's file as an input of a derivation."""
    return name, precise(value, unit), f"{key}: " + source_of(sources, key)


def cost_of(
    name: str,
    accesses: StorageAccesses,
    limits: Sequence[StorageLimit],
    floors: Sequence[StorageLimit],
    first: tuple[str, float, Cited],
    errors: tuple[str, Cited] = ("", ""),
    crowd: AccessTime | None = None,
) -> Cost:
    """Return the cost of one op: the medium is busy for the longest limit, and the op lasts at least as long as each floor.

    Args:
        name: name of the device.
        accesses: accesses of the op.
        limits: lower bounds of the busy time of the medium.
        floors: lower bounds of the duration of the op.
        first: latency before the first byte (label, seconds, source).
        errors: error model of the lines and the source of their decisive number; "" to derive both from the inputs.
        crowd: time of one access as a function of the accesses in flight, if one queue serves all ops.
    """
    media = f"{name}.media"
    busy = max((limit.seconds for limit in limits), default=0.0)
    label, latency, source = first
    start = [latency_term(label, latency, source, media, name)] if latency > 0 and accesses.times > 0 else []
    regime, source = errors
    lines = [
        Term(
            line.label,
            line.formula,
            line.inputs,
            line.seconds,
            media,
            doubts=doubts(regime, name, source, line.seconds) if regime else (),
        )
        for line in (*limits, *floors)
    ]
    floor = max(floors, key=lambda line: line.seconds, default=StorageLimit("", "", (), 0.0))
    return Cost(
        Demand(
            latency=math.fsum(term.seconds for term in start),
            amounts=((media, busy),) if busy > 0 else (),
            floor=floor.seconds,
            clocks=((media, min(1.0, floor.moving / floor.seconds)),) if floor.moving > 0 else (),
            share=accesses.bytes or 1.0,
            crowd=None if crowd is None or accesses.times <= 0 else Crowd(media, accesses.own_depth, crowd),
        ),
        moved=((media, accesses.bytes, "B"),) if busy > 0 else (),
        why=(*start, *lines),
    )


def mixed_cost(device: Storage, name: str, accesses: StorageAccesses) -> Cost:
    """Return the cost of interleaved reads and writes, `accesses.written` of them writes: reads + writes + turnarounds.

    In random order, a share 2 w (1 - w) of the accesses follows one of the other kind and costs the drive's `turnaround`, if any.
    """
    share = accesses.written
    reads = device.serve(name, "read", replace(accesses, times=accesses.times * (1 - share), written=0.0))
    writes = device.serve(name, "write", replace(accesses, times=accesses.times * share, written=0.0))
    turns = 2 * share * (1 - share) * accesses.times * float(getattr(device, "turnaround", 0.0))
    amounts: dict[str, float] = {}
    for capacity, amount in (*reads.demand.amounts, *writes.demand.amounts):
        amounts[capacity] = amounts.get(capacity, 0.0) + amount
    media = f"{name}.media"
    if turns > 0:
        amounts[media] = amounts.get(media, 0.0) + turns
    moved: dict[str, tuple[float, Unit]] = {}
    for capacity, amount, unit in (*reads.moved, *writes.moved):
        moved[capacity] = moved.get(capacity, (0.0, unit))[0] + amount, unit
    floor = reads.demand.floor + writes.demand.floor + turns
    moving = turns + math.fsum(part * side.floor for side in (reads.demand, writes.demand) for _, part in side.clocks)
    start = max((reads.demand, writes.demand), key=lambda demand: demand.latency).latency
    later = "the later of the first read and the first write"
    why = [latency_term("first access", start, later, media, name)] if start > 0 else []
    turning = ("turns", precise(turns, "s"), f"{2 * share * (1 - share):.3g} of the accesses change direction")
    for label, reads_s, writes_s in (
        ("media", dict(reads.demand.amounts).get(media, 0.0), dict(writes.demand.amounts).get(media, 0.0)),
        ("accesses", reads.demand.floor, writes.demand.floor),
    ):
        inputs: tuple[Input, ...] = (
            ("reads", precise(reads_s, "s"), "reads only"),
            ("writes", precise(writes_s, "s"), "writes only"),
            turning,
        )
        if reads_s + writes_s > 0:
            why.append(Term(label, "reads + writes + turns", inputs, reads_s + writes_s + turns, media))
    for capacity in sorted(amounts.keys() - {media}):  # the IOPS of a plain disk
        parts = [max((term.seconds for term in cost.why if term.capacity == capacity), default=0.0) for cost in (reads, writes)]
        inputs = ("reads", precise(parts[0], "s"), "reads only"), ("writes", precise(parts[1], "s"), "writes only")
        why.append(Term("iops", "reads + writes", inputs, math.fsum(parts), capacity))
    sorts = [(part, cost.demand.crowd) for part, cost in ((1 - share, reads), (share, writes))]
    curves = tuple([(part, crowd.each) for part, crowd in sorts if crowd is not None])
    crowd = Crowd(media, accesses.own_depth, Mixture(curves, turns / accesses.times)) if len(curves) == len(sorts) else None
    draws, part = tuple(sorted(amounts.items())), min(1.0, moving / floor) if floor else 0.0
    return Cost(
        Demand(latency=start, amounts=draws, floor=floor, share=accesses.bytes or 1.0, crowd=crowd, clocks=((media, part),)),
        moved=tuple((capacity, amount, unit) for capacity, (amount, unit) in sorted(moved.items())),
        why=tuple(why),
    )
