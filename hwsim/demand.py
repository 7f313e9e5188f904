"""The demand of an op on a machine: amounts drawn from capacities, and a latency; all that the engine knows of an op.

    alone:  time = latency + max(floor, max(amount / capacity))

A demand draws its amounts from named capacities while it makes progress, at any rate, all
amounts in proportion. Demands that overlap share the capacities they have in common, so
contention and overlap emerge from the amounts (the roofline model of Williams, Waterman and
Patterson, CACM 52(4), 2009, for one op; weighted max-min fairness between several).
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
from hwsim.origins import Cited, Doubt
from hwsim.records import dataclass

Unit = Literal["s", "B", "FLOP", "1"]
# draw: an amount over a rate; latency: before the body; stated: a time that the workload gives;
# kernels, flow, floor: a model's time of all kernels, of a collective's bytes, or of the op itself
TermKind = Literal["draw", "latency", "stated", "kernels", "flow", "floor"]


def softened(size: float, knee: float) -> float:
    """size + knee (1 - exp(-size / knee)): bytes that a long message takes the time of, at its rate.

    Between a short message, which goes at half the rate, and a long one, which has lost the time of `knee` bytes, the curve
    has no corner; measured all-reduces and messages of NCCL and of MPI have this shape. Without a knee: the size.

    >>> softened(1.0, 1e6), round(softened(1e6, 1e6)), softened(1e9, 1e6), softened(8.0, 0.0)
    (1.9999995000001667, 1632121, 1001000000.0, 8.0)
    """
    return size - knee * math.expm1(-size / knee) if knee > 0 else size


def squared_twice(number: Any) -> Any:
    """The fourth power of a number or of each of an array, by products: powers of arrays depend on the version of numpy.

    >>> squared_twice(3.0)
    81.0
    """
    square = number * number
    return square * square


def rooted_twice(number: Any) -> Any:
    """The fourth root of a number or of each of an array, by square roots.

    >>> rooted_twice(81.0)
    3.0
    """
    return math.sqrt(math.sqrt(number)) if isinstance(number, float) else np.sqrt(np.sqrt(number))


def soft_min(first: float, second: float, sharpness: float) -> float:
    """A minimum with its corner rounded: smaller than both, and near the smaller one where they are far apart.

        (first^-p + second^-p)^(-1/p),  p = sharpness; the minimum itself for infinite p

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
    """A maximum with its corner rounded: larger than both, and near the larger one where they are far apart.

        (first^p + second^p)^(1/p),  p = sharpness; the maximum itself for infinite p

    >>> soft_max(3.0, 4.0, 2.0), soft_max(3.0, 4.0, math.inf), soft_max(0.0, 4.0, 2.0), round(soft_max(1.0, 1.0, 4.0), 3)
    (5.0, 4.0, 4.0, 1.189)
    """
    low, high = min(first, second), max(first, second)
    if low <= 0 or math.isinf(high) or math.isinf(sharpness):
        return high
    return float(high * (1.0 + (low / high) ** sharpness) ** (1.0 / sharpness))


@dataclass(frozen=True, slots=True)
class Capacity:
    """A rate that demands share.

    Devices offer device time (`gpu0.compute`: 1 second a second; `cpu0.cores`: as many as it
    has cores), links bytes per second in one direction, disks also accesses per second.

    Args:
        rate: amount per second.
        kind: of a device compute, cores, memory, line, media, iops, tx, rx, tx_messages, rx_messages or backplane; of a link
            `way` (one direction), `wire` (half duplex) or `both` (the limit of both directions together).
        device: full name of the device it belongs to; "" for a link.
        link: name of the link in the file; "" for a device.
        ends: full names of the devices at the ends of a link; for a `way` its source and its target.
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
        """Its device, or `link NAME`."""
        return f"link {self.link}" if self.link else self.device

    @classmethod
    def of(cls, device: str, kind: str, rate: float = 1.0, unit: Unit = "s") -> Capacity:
        """The capacity of a device.

        >>> Capacity.of("node0.gpu1", "compute").name
        'node0.gpu1.compute'
        """
        return cls(f"{device}.{kind}", rate, unit, kind, device)


def device_of(capacity: str, kind: str) -> str:
    """The device of a capacity of this kind, which a fold lists by its name alone.

    >>> device_of("node.memory.memory", "memory")
    'node.memory'
    """
    return capacity.removesuffix(f".{kind}")


def by_name(capacities: Iterable[Capacity]) -> dict[str, Capacity]:
    """Capacities by name."""
    return {capacity.name: capacity for capacity in capacities}


def rates_of(capacities: Iterable[Capacity]) -> dict[str, float]:
    """Rate of each capacity by its name."""
    return dict(map(attrgetter("name", "rate"), capacities))


class Each(Protocol):
    """The time of one access to a device, with `under_way` of them there at once, from all ops."""

    def __call__(self, under_way: float) -> tuple[float, float]:
        """Seconds from the end of one access to the end of the next, and seconds of the device that it takes."""
        ...


@dataclass(frozen=True, slots=True)
class Crowd:
    """A queue from which a device serves the accesses of all ops.

    With `depth` accesses of its own among n it has depth / n of what the device then does:

        time = time alone x (n each(n) + depth rest) / (depth each(depth) + depth rest)

    Args:
        capacity: name of the device's time; who names the same one is in the crowd.
        depth: accesses of the op under way at once.
        each: seconds of one access, and of the device for it, by the number under way.
        rest: seconds for each access that others do not stretch.
        times: ops of other ranks there for which it stands, itself among them (see `hwsim.graph.fold`).
    """

    capacity: str
    depth: int
    each: Each
    rest: float = 0.0
    times: int = 1

    def slowness(self, under_way: int) -> tuple[float, float]:
        """Factor on its time, and factor on the device's time for an access, at this number under way: both 1 alone."""
        (mine, busy), (each, shorter) = self.each(self.depth), self.each(under_way)
        alone = mine + self.rest
        slow = (under_way / self.depth * each + self.rest) / alone if alone > 0 else 1.0
        return max(1.0, slow), shorter / busy if busy > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Demand:
    """Latency, then amounts drawn together; `floor` is what one op cannot beat alone.

    Args:
        latency: seconds before the first amount is drawn.
        amounts: (capacity name, amount) in the capacity's unit, sorted by name, none zero.
        floor: seconds; a bound by latency or occupancy (queue depth, memory-level parallelism).
        holds: (capacity name, fraction of it) taken while it flows, whatever the rate; not one it also draws from.
        share: bytes (or their equivalent in time x memory bandwidth). Under contention each
            demand proceeds at `pace = share x progress / s`; a saturated capacity gives all it
            holds back the same pace. For a plain transfer: its bytes, hence max-min fairness. Where
            links carry unlike bytes: its bytes on the link that takes longest (see `hwsim.communication.apart`).
        times: for a demand that stands for equal ones of other ranks too (see `hwsim.graph.fold`): the number that draws each
            amount, then the number that holds each of the holds; empty: itself alone. They weigh in shared capacities; its
            pace alone is the pace of one. Only with `times` may amounts name a capacity twice.
        crowd: others that it shares the queue of a device with.
        clocks: (capacity, part of the floor) that goes at the speed which the capacity has, 1 where nothing slows it; the rest
            of the floor comes before or after it: floor x (1 - max(part) + max(part / speed)).
        start: part of the latency that goes at the speed of the slowest of these capacities.
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
        """The reason, in words, why no op can draw the demand; "" if one can."""
        drawn = [amount for _, amount in self.amounts]
        if not all(math.isfinite(number) and number >= 0 for number in (self.latency, self.floor, *drawn)):
            return "a demand needs finite amounts, none negative"
        if not all(drawn) or not (math.isfinite(self.share) and self.share > 0):
            return "a demand has no zero amounts and a positive share"
        if self.holds and not all(0 <= fraction < 1 for _, fraction in self.holds):
            return "a demand holds less than the whole of a capacity"
        if not all(0 <= part <= 1 for part in (self.start, *(part for _, part in self.clocks))):
            return "what goes at a clock is a part of the floor or of the latency"
        names = [name for name, _ in (*self.amounts, *self.holds)]
        if len(set(names)) < len(names) and not self.times:
            return "a demand names each capacity once, to draw from it or to hold it"
        if self.times and (len(self.times) != len(names) or min(self.times) < 1):
            return "a demand that stands for several says of each amount and hold how many draw it"
        return ""

    @property
    def drawn(self) -> tuple[tuple[str, float, int], ...]:
        """(capacity, amount, how many draw it): what comes from each capacity altogether.

        >>> Demand(amounts=(("uplink", 1e6),), times=(8,)).drawn, Demand(amounts=(("uplink", 1e6),)).drawn
        ((('uplink', 1000000.0, 8),), (('uplink', 1000000.0, 1),))
        """
        if not self.times:
            return tuple([(name, amount, 1) for name, amount in self.amounts])
        return tuple([(name, amount, times) for (name, amount), times in zip(self.amounts, self.times, strict=False)])

    @property
    def held(self) -> tuple[tuple[str, float, int], ...]:
        """(capacity, part of it, how many hold it)."""
        if not self.holds:
            return ()
        many = self.times[len(self.amounts) :] or (1,) * len(self.holds)
        return tuple([(name, part, times) for (name, part), times in zip(self.holds, many, strict=True)])

    def body(self, rates: Mapping[str, float]) -> float:
        """Seconds after the latency when nothing else runs.

        >>> Demand(amounts=(("gpu0.compute", 0.002), ("gpu0.memory", 0.001))).body({"gpu0.compute": 1, "gpu0.memory": 1})
        0.002
        """
        return max([self.floor, *[amount / rates[name] for name, amount in self.amounts]])

    def alone(self, rates: Mapping[str, float]) -> float:
        """Seconds from start to end when nothing else runs."""
        return self.latency + self.body(rates)


@dataclass(frozen=True, slots=True)
class Term:
    """One line of the derivation of an op's duration; an op takes the latencies plus the longest other line.

    Args:
        label: "compute", "memory", "link psw->gpu0", "latency", "kernels (memory)"; any words, read by people only.
        formula: in words, "2 m n k / (peak x efficiency)".
        inputs: (name, value with unit, source); the names are words of the formula, so that the numbers can be put in.
        seconds: time of this line.
        capacity: what would have to be faster for the line to be shorter; "" if no capacity (a stated time, a start).
        kind: how the time comes about, see `TermKind`.
        holder: the device that a latency is of, or `link NAME`; "" for the op's own device.
        doubts: what its error comes from; none if the formula was never measured: then the sources of the inputs tell.
            Those of the case "stated" are the workload's own, and count besides all others.
    """

    label: str
    formula: str
    inputs: tuple[tuple[str, str, Cited], ...]
    seconds: float
    capacity: str = ""
    kind: TermKind = "draw"
    doubts: tuple[Doubt, ...] = ()
    holder: str = ""

    def on(self, capacity: str, holder: str) -> Term:
        """The same of another capacity; `replace` takes three times as long.  holder: of a latency."""
        return Term(self.label, self.formula, self.inputs, self.seconds, capacity, self.kind, self.doubts, self.holder and holder)


class Later(Sequence[Term]):
    """Lines of the derivation of a transfer, written when they are first read: most are never read.

    Args:
        write: makes the lines from the other arguments.
    """

    __slots__ = ("_given", "_lines", "_write")

    def __init__(self, write: Callable[..., tuple[Term, ...]], *given: object) -> None:
        self._write, self._given = write, given
        self._lines: tuple[Term, ...] | None = None

    def _all(self) -> tuple[Term, ...]:
        if self._lines is None:
            self._lines = self._write(*self._given)
        return self._lines

    def __reduce__(self) -> tuple[type[tuple[Term, ...]], tuple[tuple[Term, ...]]]:  # of another process: as they are written
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
        return self._all() == (other._all() if isinstance(other, Later) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


Pattern = Literal["sequential", "strided", "random", "dependent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The single requests behind an op on one device, for a simulation that serves them one by one.

    Args:
        device: full name of the device that serves them.
        count: how many, of `size` bytes each.
        stride: bytes from one to the next, for pattern strided.
        span: bytes of the device they go to; 0 for all it has.
        write_share: part of them that write.
        depth: the most that are issued and not finished; None for any number.
        cores: number that issue them, in turns.
        banks, row_hit: banks of each channel of a DRAM that they go to (None: as the addresses fall), and the part that
            finds its row open.
        sync: each write to a disk is on the medium before the next one starts.
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
    """The choice among several ways to do an op, and the second best; seconds as expected.

    channels: how many of them run it side by side, 0 where that is not known.
    """

    name: str
    seconds: float
    runner_up: str = ""
    runner_up_seconds: float = 0.0
    channels: int = 0

    def __str__(self) -> str:
        """In words.

        >>> str(Choice("ring, simple", 1e-3, "tree, simple", 1.12e-3, 8))
        'ring, simple, 8 channels; next best tree, simple +12 %'
        """
        channels = f", {self.channels} channel{'s' if self.channels > 1 else ''}" if self.channels else ""
        slower = format_change(self.runner_up_seconds / self.seconds - 1 if self.seconds > 0 else 0.0)
        return f"{self.name}{channels}" + (f"; next best {self.runner_up} {slower}" if self.runner_up else "")


_PARTS: Final = ("all-gather", "reduce-scatter", "all-to-all", "gather", "scatter")  # a rank keeps its own part


class Exchanged(NamedTuple):
    """The exchange of a collective.  bytes: of one rank's whole array, as nccl-tests count them."""

    operation: str
    bytes: float
    ranks: int

    @property
    def passed(self) -> float:
        """Bytes that must pass each rank at least; a second, they are what nccl-tests call busbw.

        >>> [Exchanged(operation, 1.0, 8).passed for operation in ("all-reduce", "all-gather", "broadcast")]
        [1.75, 0.875, 1.0]
        """
        if self.operation == "all-reduce":
            return self.bytes * 2 * (self.ranks - 1) / self.ranks
        return self.bytes * (self.ranks - 1) / self.ranks if self.operation in _PARTS else self.bytes


class Wire(NamedTuple):
    """One of many equal capacities, and the amount drawn from each; moved: the bytes behind the amount."""

    capacity: Capacity
    amount: float
    moved: float


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Amounts drawn from very many capacities, in columns instead of names.

    Args:
        numbers: the capacities, ascending, and `kind`: the place of each in `kinds`.
        kinds: alike in name, rate, amount and bytes; the capacity of each is its first one.
        count: all numbers of capacities lie below.
        name: what the capacity of a number is called.
    """

    numbers: NDArray[np.signedinteger[Any]]
    kind: NDArray[np.signedinteger[Any]]
    kinds: tuple[Wire, ...]
    count: int
    name: Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Cost:
    """The result of lowering one kind of op on one device.

    `moved` are the natural amounts behind the device time: (capacity, amount, "B" or "FLOP" or "1").
    `requests`: what it asks of a device that can be simulated request by request. `played`: it is: the demand is what
    it asks of everything else, and the op ends when that has ended and the requests have been served.
    `choice`: among several algorithms, where one was chosen. `exchange`: of a collective; no effect on time.
    `wide`: amounts it draws in addition to the amounts of its demand; only before it is folded or written out (`in_full`).
    """

    demand: Demand
    moved: tuple[tuple[str, float, Unit], ...] = ()
    why: Sequence[Term] = ()
    requests: Requests | None = None
    played: bool = False
    choice: Choice | None = None
    wide: Wide | None = None
    exchange: Exchanged | None = None

    def __hash__(self) -> int:  # of what it draws: a derivation is long, and says the same
        return hash((self.demand, self.moved))

    def in_full(self) -> Cost:
        """The same with all that it draws by name."""
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
