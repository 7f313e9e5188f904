"""The demand of an op on a machine: a latency and amounts drawn from capacities. The engine knows nothing else of an op.

    time without contention = latency + max(floor, max(amount / capacity))

A demand progresses at some rate and draws all of its amounts from named capacities in proportion to that rate. Demands that run
at the same time share their common capacities, so that contention and overlap follow from the amounts.

For one op this is the roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009); several ops share by weighted max-min
fairness.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from hwsim.formats import format_change
from hwsim.origins import Cited, UncertaintySource
from hwsim.records import dataclass

Unit = Literal["s", "B", "FLOP", "1"]
# draw: an amount over a rate; latency: time before the body; stated: a time stated in the workload;
# kernels, flow, floor: modelled time of all kernels, of the bytes of a collective, or of the op itself
TermKind = Literal["draw", "latency", "stated", "kernels", "flow", "floor"]


def knee_bytes(size: float, knee: float) -> float:
    """Return size + knee (1 - exp(-size / knee)): the effective bytes of a message, to be divided by its asymptotic bandwidth.

    A short message reaches half the bandwidth; a long one takes the time of `knee` extra bytes; the transition is smooth.
    Measured all-reduces and messages of NCCL and MPI have this shape. If `knee` is 0, the result is the size.

    >>> knee_bytes(1.0, 1e6), round(knee_bytes(1e6, 1e6)), knee_bytes(1e9, 1e6), knee_bytes(8.0, 0.0)
    (1.9999995000001667, 1632121, 1001000000.0, 8.0)
    """
    return size - knee * math.expm1(-size / knee) if knee > 0 else size


def fourth_power(number: Any) -> Any:
    """Return the fourth power of a number or array by multiplication, because numpy's powers of arrays depend on its version.

    >>> fourth_power(3.0)
    81.0
    """
    square = number * number
    return square * square


def fourth_root(number: Any) -> Any:
    """Return the fourth root of a number or array by square roots.

    >>> fourth_root(81.0)
    3.0
    """
    return math.sqrt(math.sqrt(number)) if isinstance(number, float) else np.sqrt(np.sqrt(number))


def soft_min(first: float, second: float, sharpness: float) -> float:
    """Return a smooth minimum: smaller than both, and close to the smaller value if they differ much.

        (first^-p + second^-p)^(-1/p),  p = sharpness; the exact minimum for infinite p

    Source: the asymptotic bounds of a closed queueing network (Denning and Buzen, "The operational analysis of queueing network
    models", ACM Computing Surveys 10(3), 1978), rounded at the knee.

    >>> round(soft_min(1.0, 1.0, 1.0), 3), round(soft_min(1.0, 1000.0, 2.0), 3), soft_min(3.0, 2.0, math.inf)
    (0.5, 1.0, 2.0)
    """
    low, high = min(first, second), max(first, second)
    if low <= 0 or math.isinf(high) or math.isinf(sharpness):
        return low
    return float(low * (1.0 + (low / high) ** sharpness) ** (-1.0 / sharpness))


def soft_max(first: float, second: float, sharpness: float) -> float:
    """Return a smooth maximum: larger than both, and close to the larger value if they differ much.

        (first^p + second^p)^(1/p),  p = sharpness; the exact maximum for infinite p

    >>> soft_max(3.0, 4.0, 2.0), soft_max(3.0, 4.0, math.inf), soft_max(0.0, 4.0, 2.0), round(soft_max(1.0, 1.0, 4.0), 3)
    (5.0, 4.0, 4.0, 1.189)
    """
    low, high = min(first, second), max(first, second)
    if low <= 0 or math.isinf(high) or math.isinf(sharpness):
        return high
    return float(high * (1.0 + (low / high) ** sharpness) ** (1.0 / sharpness))


@dataclass(frozen=True, slots=True)
class Capacity:
    """A rate of a device or link that demands share.

    Devices provide device time (`gpu0.compute`: 1 s per second; `cpu0.cores`: number of cores), links bytes per second in one
    direction, disks also accesses per second.

    Args:
        name: full name, such as gpu0.compute.
        rate: amount per second.
        unit: unit of the amount.
        kind: of a device: compute, cores, memory, line, media, iops, tx, rx, tx_messages, rx_messages or backplane; of a link:
            `way` (one direction), `wire` (half duplex) or `both` (limit of both directions together).
        device: full name of the device; "" for a link.
        link: name of the link in the file; "" for a device.
        ends: full names of the devices at the ends of a link; of a `way`: source and target.
    """

    name: str
    rate: float
    unit: Unit = "s"
    kind: str = ""
    device: str = ""
    link: str = ""
    ends: tuple[str, ...] = ()

    @property
    def holder(self) -> str:
        """Name of the device, or `link NAME`."""
        return f"link {self.link}" if self.link else self.device

    @classmethod
    def of(cls, device: str, kind: str, rate: float = 1.0, unit: Unit = "s") -> Capacity:
        """Return a capacity of a device.

        >>> Capacity.of("node0.gpu1", "compute").name
        'node0.gpu1.compute'
        """
        return cls(f"{device}.{kind}", rate, unit, kind, device)


def device_of(capacity: str, kind: str) -> str:
    """Return the device of a capacity, given its name and kind.

    >>> device_of("node.memory.memory", "memory")
    'node.memory'
    """
    return capacity.removesuffix(f".{kind}")


def by_name(capacities: Iterable[Capacity]) -> dict[str, Capacity]:
    """Return the capacities by name."""
    return {capacity.name: capacity for capacity in capacities}


def rates_of(capacities: Iterable[Capacity]) -> dict[str, float]:
    """Return the rate of each capacity by its name."""
    return dict(map(attrgetter("name", "rate"), capacities))


class AccessTime(Protocol):
    """A function that returns the time of one access to a device, given the number of accesses in flight (of all ops)."""

    def __call__(self, under_way: float) -> tuple[float, float]:
        """Return the time between the ends of two accesses (s), and the device time of one access (s)."""
        ...


@dataclass(frozen=True, slots=True)
class Crowd:
    """A queue of a device that accesses of several ops share.

    If the op has `depth` of the n accesses in flight, it gets depth / n of the device's throughput at that depth:

        time = time alone x (n each(n) + depth rest) / (depth each(depth) + depth rest)

    Args:
        capacity: name of the device-time capacity; ops with the same name share the queue.
        depth: accesses of the op in flight.
        each: function of the number in flight: seconds per access, and device seconds per access.
        rest: seconds per access that do not depend on other ops.
        times: number of identical ops of other ranks that this op represents, including itself (see `hwsim.graph.fold`).
    """

    capacity: str
    depth: int
    each: AccessTime
    rest: float = 0.0
    times: int = 1

    def slowness(self, under_way: int) -> tuple[float, float]:
        """Return the factors on the op's time and on the device time per access at this number in flight; 1 for a single op."""
        (seconds_alone, busy_alone), (seconds, busy) = self.each(self.depth), self.each(under_way)
        alone = seconds_alone + self.rest
        slow = (under_way / self.depth * seconds + self.rest) / alone if alone > 0 else 1.0
        return max(1.0, slow), busy / busy_alone if busy_alone > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Demand:
    """A demand of one op: a latency, then amounts drawn together.

    Args:
        latency: time (s) before the first amount is drawn.
        amounts: (capacity name, amount in the capacity's unit), sorted by name, none zero.
        floor: minimum time (s) after the latency, from latency or occupancy (queue depth, memory-level parallelism).
        holds: (capacity name, fraction) occupied while the op runs, at any rate; never a capacity of `amounts`.
        share: weight under contention (bytes, or time x memory bandwidth). Each demand has a `pace = share x progress / s`, and
            all demands that a saturated capacity limits get the same pace. The share of a plain transfer is its bytes, which
            gives max-min fairness; if its links carry different bytes, those of its slowest link (see
            `hwsim.communication.link_flows`).
        times: for a demand that also represents identical ones of other ranks (see `hwsim.graph.fold`): the number of ranks that
            draw each amount, then that hold each of `holds`; empty: 1 each. They count in shared capacities, while the pace is
            that of one rank. Only with `times`, `amounts` may contain a capacity twice.
        crowd: queue of a device that it shares with other ops.
        clocks: (capacity, part of the floor) that runs at the speed of the capacity (1: nominal). The rest of the floor comes
            before or after it: floor x (1 - max(part) + max(part / speed)).
        start: part of the latency that runs at the speed of the slowest of these capacities.
    """

    latency: float = 0.0
    amounts: tuple[tuple[str, float], ...] = ()
    floor: float = 0.0
    holds: tuple[tuple[str, float], ...] = ()
    share: float = 1.0
    times: tuple[int, ...] = ()
    crowd: Crowd | None = None
    clocks: tuple[tuple[str, float], ...] = ()
    start: float = 0.0

    def flaw(self) -> str:
        """Return why the demand is invalid; "" if it is valid."""
        drawn = [amount for _, amount in self.amounts]
        if not all(math.isfinite(number) and number >= 0 for number in (self.latency, self.floor, *drawn)):
            return "a demand requires finite amounts, latency and floor, none negative"
        if not all(drawn) or not (math.isfinite(self.share) and self.share > 0):
            return "a demand requires nonzero amounts and a positive finite share"
        if self.holds and not all(0 <= fraction < 1 for _, fraction in self.holds):
            return "a demand requires held fractions from 0 to below 1"
        if not all(0 <= part <= 1 for part in (self.start, *(part for _, part in self.clocks))):
            return "a demand requires parts of the floor and of the latency from 0 to 1"
        names = [name for name, _ in (*self.amounts, *self.holds)]
        if len(set(names)) < len(names) and not self.times:
            return "a demand contains a capacity more than once in amounts and holds"
        if self.times and (len(self.times) != len(names) or min(self.times) < 1):
            return "a demand requires one number >= 1 in `times` per amount and per hold"
        return ""

    @property
    def drawn(self) -> tuple[tuple[str, float, int], ...]:
        """(capacity, amount per rank, number of ranks) for each amount.

        >>> Demand(amounts=(("uplink", 1e6),), times=(8,)).drawn, Demand(amounts=(("uplink", 1e6),)).drawn
        ((('uplink', 1000000.0, 8),), (('uplink', 1000000.0, 1),))
        """
        if not self.times:
            return tuple([(name, amount, 1) for name, amount in self.amounts])
        return tuple([(name, amount, times) for (name, amount), times in zip(self.amounts, self.times, strict=False)])

    @property
    def held(self) -> tuple[tuple[str, float, int], ...]:
        """(capacity, fraction, number of ranks) for each held capacity."""
        if not self.holds:
            return ()
        counts = self.times[len(self.amounts) :] or (1,) * len(self.holds)
        return tuple([(name, part, times) for (name, part), times in zip(self.holds, counts, strict=True)])

    def body(self, rates: Mapping[str, float]) -> float:
        """Return the time (s) after the latency without contention.

        >>> Demand(amounts=(("gpu0.compute", 0.002), ("gpu0.memory", 0.001))).body({"gpu0.compute": 1, "gpu0.memory": 1})
        0.002
        """
        return max([self.floor, *[amount / rates[name] for name, amount in self.amounts]])

    def alone(self, rates: Mapping[str, float]) -> float:
        """Return the duration (s) without contention."""
        return self.latency + self.body(rates)


@dataclass(frozen=True, slots=True)
class Term:
    """A line of the derivation of an op's duration. The duration is the sum of the latencies plus the longest other line.

    Args:
        label: text for readers: "compute", "memory", "link psw->gpu0", "latency", "kernels (memory)".
        formula: expression, such as "2 m n k / (peak x efficiency)".
        inputs: (name in the formula, value with unit, source).
        seconds: time of this line (s).
        capacity: capacity that bounds the line; "" if none does (a stated time, a start).
        kind: kind of time, see `TermKind`.
        holder: device of a latency, or `link NAME`; "": the op's own device.
        doubts: sources of uncertainty of the formula; empty if it was never measured: then the sources of the inputs count.
            Entries of the case "stated" come from the workload, and count in addition.
    """

    label: str
    formula: str
    inputs: tuple[tuple[str, str, Cited], ...]
    seconds: float
    capacity: str = ""
    kind: TermKind = "draw"
    doubts: tuple[UncertaintySource, ...] = ()
    holder: str = ""

    def on(self, capacity: str, holder: str) -> Term:
        """Return a copy with another capacity and holder, three times faster than `replace`."""
        return Term(self.label, self.formula, self.inputs, self.seconds, capacity, self.kind, self.doubts, self.holder and holder)


class LazyTerms(Sequence[Term]):
    """A derivation of a transfer whose lines are created when first read, because most are never read.

    Args:
        write: function that returns the lines, given the other arguments.
    """

    __slots__ = ("_given", "_lines", "_write")

    def __init__(self, write: Callable[..., tuple[Term, ...]], *given: object) -> None:
        self._write, self._given = write, given
        self._lines: tuple[Term, ...] | None = None

    def _all(self) -> tuple[Term, ...]:
        if self._lines is None:
            self._lines = self._write(*self._given)
        return self._lines

    def __reduce__(self) -> tuple[type[tuple[Term, ...]], tuple[tuple[Term, ...]]]:  # pickled as its lines
        return tuple, (self._all(),)

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Term]:
        return iter(self._all())

    @overload
    def __getitem__(self, place: int) -> Term: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Term, ...]: ...
    def __getitem__(self, place: int | slice) -> Term | tuple[Term, ...]:
        return self._all()[place]

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, LazyTerms) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


Pattern = Literal["sequential", "strided", "random", "dependent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests of an op on one device, for a request-level simulation.

    Args:
        device: full name of the device that serves the requests.
        count: number of requests.
        size: bytes of one request.
        pattern: access pattern.
        stride: distance of two requests (bytes), for pattern strided.
        span: bytes of the device that the requests stay within; 0: all.
        write_share: fraction of the requests that are writes.
        depth: maximum number in flight; None: unlimited.
        cores: number of cores that issue the requests in turn.
        banks: banks used per channel of a DRAM; None: by address.
        row_hit: row-buffer hit rate of a DRAM.
        seed: seed of random addresses.
        sync: whether each write to a disk is on the medium before the next one starts.
    """

    device: str
    count: float
    size: float
    pattern: Pattern = "random"
    stride: float = 0.0
    span: float = 0.0
    write_share: float = 0.0
    depth: int | None = None
    cores: int = 1
    banks: int | None = None
    row_hit: float = 0.0
    seed: int = 0
    sync: bool = False


class Choice(NamedTuple):
    """A choice among several algorithms of an op, with the runner-up and both estimated times (s).

    channels: number of parallel channels; 0: unknown.
    """

    name: str
    seconds: float
    runner_up: str = ""
    runner_up_seconds: float = 0.0
    channels: int = 0

    def __str__(self) -> str:
        """Return a description.

        >>> str(Choice("ring, simple", 1e-3, "tree, simple", 1.12e-3, 8))
        'ring, simple, 8 channels; next best tree, simple +12 %'
        """
        channels = f", {self.channels} channel{'s' if self.channels > 1 else ''}" if self.channels else ""
        slower = format_change(self.runner_up_seconds / self.seconds - 1 if self.seconds > 0 else 0.0)
        return f"{self.name}{channels}" + (f"; next best {self.runner_up} {slower}" if self.runner_up else "")


_PARTS: Final = ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter")  # a rank keeps its own part


class CollectiveExchange(NamedTuple):
    """An exchange of a collective; bytes: message size as in nccl-tests (the whole array of one rank)."""

    operation: str
    bytes: float
    ranks: int

    @property
    def passed(self) -> float:
        """Minimum bytes that pass each rank; per second, they are the busbw of nccl-tests.

        >>> [CollectiveExchange(operation, 1.0, 8).passed for operation in ("all-reduce", "all-gather", "broadcast")]
        [1.75, 0.875, 1.0]
        """
        if self.operation == "all-reduce":
            return self.bytes * 2 * (self.ranks - 1) / self.ranks
        return self.bytes * (self.ranks - 1) / self.ranks if self.operation in _PARTS else self.bytes


class EqualCapacities(NamedTuple):
    """A representative of many equal capacities, with the amount and the bytes (`moved`) drawn from each."""

    capacity: Capacity
    amount: float
    moved: float


@dataclass(frozen=True, slots=True, eq=False)
class AmountColumns:
    """Amounts drawn from very many capacities, as columns.

    Args:
        numbers: numbers of the capacities, ascending.
        kind: index in `kinds` of each.
        kinds: groups of capacities that are equal in rate, amount and bytes, with the first capacity of each group.
        count: upper bound of all capacity numbers.
        name: function from a number to the name of a capacity.
    """

    numbers: NDArray[np.signedinteger[Any]]
    kind: NDArray[np.signedinteger[Any]]
    kinds: tuple[EqualCapacities, ...]
    count: int
    name: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost of an op on a machine.

    Args:
        demand: demand on the machine.
        moved: (capacity, amount, "B", "FLOP" or "1"): bytes or operations behind the device time.
        why: derivation.
        requests: requests to a device that supports request-level simulation.
        played: whether the requests are simulated one by one. Then `demand` covers everything else, and the op ends when both the
            demand and the requests have ended.
        choice: algorithm that was selected, if there were several.
        wide: amounts in addition to those of `demand`, as columns; only before folding or `in_full`.
        exchange: exchange of a collective, for reports; no effect on time.
    """

    demand: Demand
    moved: tuple[tuple[str, float, Unit], ...] = ()
    why: Sequence[Term] = ()
    requests: Requests | None = None
    played: bool = False
    choice: Choice | None = None
    wide: AmountColumns | None = None
    exchange: CollectiveExchange | None = None

    def __hash__(self) -> int:  # without the derivation, which is long and follows from these
        return hash((self.demand, self.moved))

    def in_full(self) -> Cost:
        """Return the cost with all amounts by name, without `wide`."""
        if self.wide is None:
            return self
        wide = self.wide
        rows = [
            (wide.name(number), wide.kinds[kind]) for number, kind in zip(wide.numbers.tolist(), wide.kind.tolist(), strict=True)
        ]
        rows.sort(key=lambda row: row[0])
        demand = replace(
            self.demand, amounts=tuple(sorted([*self.demand.amounts, *((name, wire.amount) for name, wire in rows)]))
        )
        moved = (*self.moved, *((name, wire.moved, "B") for name, wire in rows if wire.moved > 0))
        return replace(self, demand=demand, moved=moved, wide=None)
