"""Arrival processes of requests: their keys in a file, and streams of arrival times in constant memory.

arrivals: {poisson: 400 1/s}
arrivals: {bursts: {poisson: 20 1/s, size: 20}}
arrivals: {day: {mean: 300 1/s, peak: 500 1/s, at: 14 h}}
arrivals: {clients: 64, think: 2 s, ramp: 10 s}
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Place, Problem, Warning, field, place_field
from hwsim.ticks import FEMTO, Column
from hwsim.units import DAY, PerSecond, Seconds
from hwsim.workload.load.draws import Constant, Distribution, Exponential, RandomDraws, Uniform
from hwsim.workload.load.keys import CountDraw, TimeDraw, distribution_of
from hwsim.workload.load.numbers import Floats, sine, stream
from hwsim.workload.load.traces import RequestTrace, read_trace

UNSTEADY: Final = "the load has no steady state: its rate varies, or an event happens during the run"
FIXED: Final = "warm_up: 10 s, or without it"
BLOCK: Final = 4096  # arrival times per block
UNIT: Final = Exponential(1.0)
_WAYS: Final = ("poisson", "every", "bursts", "day", "trace", "clients")
_SMALL: Final = 64  # requests per burst up to which a block of bursts is vectorized
_CLOSE: Final = 2.0**-50  # convergence tolerance, as a share of a cycle
_WHOLE: Final = 0.05  # share of a cycle that may be missing by chance


@dataclass(frozen=True, slots=True)
class BurstKeys:
    """Bursts of simultaneous requests."""

    poisson: PerSecond = field("average number of bursts per second (Poisson process)", exclusive_minimum=0.0)
    size: int | CountDraw = field("requests per burst", minimum=1, example="20")


@dataclass(frozen=True, slots=True)
class DayKeys:
    """A daily cycle: a Poisson process whose rate is a cosine around its mean."""

    mean: PerSecond = field("average arrival rate over a cycle", exclusive_minimum=0.0)
    peak: PerSecond = field("peak arrival rate; at least the mean and at most twice the mean", exclusive_minimum=0.0)
    at: Seconds = field("time of the peak within a cycle", default=14 * 3600.0, example="14 h")
    cycle: Seconds = field("duration of a cycle", default=DAY, minimum=1e-6, example="24 h")
    start: Seconds = field("time of the cycle at which the run starts", default=0.0, minimum=0.0, example="13 h")

    @property
    def swing(self) -> float:
        """Amplitude of the rate relative to its mean."""
        return self.peak / self.mean - 1.0

    def lasts(self, requests: float) -> float:
        """Return the expected time (s) until this number of requests has arrived."""
        cycles, rest = divmod(requests + self.share(self.start) * self.mean * self.cycle, self.mean * self.cycle)
        turn = float(self.turns(np.array([rest / (self.mean * self.cycle)], np.float64))[0])
        return self.cycle * (cycles + turn) - self.start

    def rate(self, seconds: float) -> float:
        """Return the arrival rate (1/s) at a time of the run (s)."""
        return self.mean * (1.0 + self.swing * sine((self.start + seconds - self.at) / self.cycle + 0.25))

    def share(self, seconds: float) -> float:
        """Return the share of a cycle's requests that arrive from 0 h until a time (s)."""
        phase, turn = math.fmod(self.at, self.cycle) / self.cycle, seconds / self.cycle
        return turn + self.swing / (2 * math.pi) * (sine(turn - phase) - sine(-phase))

    def turns(self, shares: Floats) -> Floats:
        """Return the shares of a cycle at which these shares of its requests have arrived: the inverse of the cumulative rate."""
        swing, phase = self.swing / (2 * math.pi), math.fmod(self.at, self.cycle) / self.cycle
        start = sine(-phase)
        low = np.maximum(shares - 2 * abs(swing), 0.0)
        high = np.minimum(shares + 2 * abs(swing), 1.0)
        turns = shares.copy()
        for _ in range(64):
            excess = turns + swing * (sine(turns - phase) - start) - shares
            low, high = np.where(excess <= 0, turns, low), np.where(excess >= 0, turns, high)
            slope = 1.0 + self.swing * sine(turns - phase + 0.25)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = turns - excess / slope
            inside = (newton > low) & (newton < high)
            after = np.where(inside, newton, np.where(excess == 0, turns, (low + high) / 2))
            if float(np.abs(after - turns).max(initial=0.0)) <= _CLOSE:
                return after
            turns = after
        return turns


@dataclass(frozen=True, slots=True)
class ArrivalKeys:
    """An arrival process: one of poisson, every, bursts, day, trace and clients; `think` and `ramp` only with `clients`."""

    poisson: PerSecond | None = field("average arrival rate of a Poisson process", default=None, exclusive_minimum=0.0,
                                      example="4 1/s")  # fmt: skip
    every: Seconds | None = field("constant time between arrivals; 0: all requests at once", default=None, example="100 ms")
    bursts: BurstKeys | None = field("bursts of requests at random times", default=None, example="{poisson: 20 1/s, size: 20}")
    day: DayKeys | None = field(
        "random arrivals whose rate follows a daily cycle", default=None, example="{mean: 300 1/s, peak: 500 1/s, at: 14 h}"
    )
    trace: str | None = field(
        "trace file with one request per line: CSV with the columns arrival (seconds), prompt and output (tokens), a CSV of the "
        "Azure or BurstGPT traces, or Mooncake JSONL; the path is relative to the workload file",
        default=None,
        example="requests.csv",
    )
    clients: int | None = field(
        "clients in a closed loop; each sends its next request `think` after a response", default=None, minimum=1, example="64"
    )
    think: Seconds | TimeDraw | None = field("think time of a client between a response and its next request (default: 0 s)",
                                             default=None, example="{exponential: 2 s}")  # fmt: skip
    ramp: Seconds | None = field(
        "window in which clients send their first requests (default: `think`; if it is a distribution, one draw of it)",
        default=None,
        example="30 s",
    )
    share: int = field(
        "with `trace`: keep every n-th request, as for one of n round-robin replicas", default=1, minimum=1, example="4"
    )
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        names = [name for name in _WAYS if getattr(self, name) is not None]
        if len(names) != 1:
            got = " and ".join(names) or "none of them"
            yield "", f"`arrivals` needs exactly one of {', '.join(_WAYS)}, got {got}", "poisson: 4 1/s"
        if self.think is not None and self.clients is None:
            yield "think", "`think` is valid only with `clients`", "clients: 64, think: 2 s"
        if self.share > 1 and self.trace is None:
            yield "share", "`share` is valid only with `trace`", "trace: requests.csv, share: 4"
        if self.ramp is not None and self.clients is None:
            yield "ramp", "`ramp` is valid only with `clients`", "clients: 64, ramp: 30 s"
        if self.day is not None and self.day.peak > 2 * self.day.mean:
            yield "day", "`peak` is more than twice `mean`: the rate would become negative", "lower `peak`, or use `trace`"
        if self.day is not None and self.day.peak < self.day.mean:
            yield "day", "`peak` is below `mean`", f"peak: {format_quantity(self.day.mean, '1/s')}"
        for key, value in (("bursts", self.bursts and self.bursts.size), ("think", self.think)):
            if isinstance(value, CountDraw | TimeDraw):
                yield from ((key, message, hint) for _, message, hint in value.problems())

    @property
    def closed(self) -> bool:
        """Whether clients wait for responses (closed loop), so that arrival times are not known in advance."""
        return self.clients is not None

    @property
    def rate(self) -> float | None:
        """Average arrival rate (1/s); None for a trace, clients and simultaneous arrivals."""
        if self.poisson is not None:
            return self.poisson
        if self.every is not None:
            return 1.0 / self.every if self.every else None
        if self.bursts is not None:
            return self.bursts.poisson * distribution_of(self.bursts.size).mean
        return None if self.day is None else self.day.mean

    @property
    def changes(self) -> bool:
        """Whether the arrival rate varies with time."""
        return self.day is not None or self.trace is not None

    @property
    def steady(self) -> float | None:
        """Arrival rate (1/s) if it is constant, else None."""
        return self.rate if self.day is None else None

    def part_of_load(self, whose: str, count: int, span: float) -> tuple[Warning, ...]:
        """Return a warning if a run ends before its daily cycle, its trace, or the ramp of its clients.

        Args:
            whose: name of the service, or "".
            count: number of requests that arrived.
            span: time from the start of the load to the last arrival (s).
        """
        if self.day is not None:
            cycle, span = self.day.cycle, max(span, self.day.lasts(count))
            if self.day.start and (self.day.at - self.day.start) % cycle <= span:  # the part with the peak was chosen
                return ()
            middle, peak = (format_quantity(rate, "1/s") for rate in (self.day.rate(span / 2), self.day.peak))
            needed = f"`requests: {math.ceil(self.day.mean * cycle)}` or a shorter `cycle`"
            whole = f"cycle of {{}}, at {middle} instead of the peak rate of {peak}; a whole cycle needs {needed}"
        elif self.trace is not None:
            arrivals = self.recorded().arrival
            cycle = int(arrivals[-1]) / FEMTO
            whole = f"trace of {{}}: {count:,} of its {len(arrivals):,} requests"
        else:
            cycle = 0.0 if self.clients is None else self.thinking.mean if self.ramp is None else self.ramp
            whole = "{} in which its clients send their first requests, so some clients send none"
        if span >= cycle * (1 - _WHOLE):
            return ()
        parts = f"the run covers {format_quantity(span, 's')} of the {whole.format(format_quantity(cycle, 's'))}"
        return (Warning("partial-cycle", f"{whose}{': ' if whose else ''}{parts}", self.place),)

    def recorded(self, *, tokens: bool = False, most: int | None = None) -> RequestTrace:
        """Return the requests of the trace; arguments as for `read_trace`."""
        assert self.trace is not None
        return read_trace(self.trace, self.place, tokens=tokens, most=most, share=self.share)

    @property
    def thinking(self) -> Distribution:
        """Distribution of the think time of a client (s)."""
        return Constant(0.0) if self.think is None else distribution_of(self.think)

    @property
    def beginning(self) -> Distribution:
        """Distribution of the time until the first request of a client (s), a random phase to desynchronize clients."""
        thinking = self.thinking
        within = thinking.value if self.ramp is None and isinstance(thinking, Constant) else self.ramp
        if within is None:
            return thinking
        return Uniform(0.0, within) if within > 0 else Constant(0.0)


def thoughts(keys: ArrivalKeys, seed: int, *names: str | int) -> RandomDraws:
    """Return the think times before requests (s)."""
    return RandomDraws(stream(seed, *names, "think"), keys.thinking)


def beginnings(keys: ArrivalKeys, seed: int, *names: str | int) -> RandomDraws:
    """Return the times until the first request of each client (s)."""
    return RandomDraws(stream(seed, *names, "think"), keys.beginning)


def instants(keys: ArrivalKeys, seed: int, *names: str | int) -> Iterator[int]:
    """Yield arrival times (fs after the start of the load) in order and without end; not for a trace or clients."""
    return chain.from_iterable(block.tolist() for block in blocks(keys, seed, *names))


def blocks(keys: ArrivalKeys, seed: int, *names: str | int) -> Iterator[Column]:
    """Yield the arrival times of `instants` in blocks.

    Raises:
        TooLong: an arrival is later than the longest accepted time.
    """
    if keys.poisson is not None:
        yield from _poisson(keys.poisson, stream(seed, *names, "arrival"))
    elif keys.every is not None:
        yield from _regular(keys.every)
    elif keys.bursts is not None:
        yield from _bursts(keys.bursts, stream(seed, *names, "arrival"), stream(seed, *names, "size"))
    elif keys.day is not None:
        yield from _daily(keys.day, stream(seed, *names, "arrival"))
    else:
        raise TypeError("a trace and clients have no stream of instants")


def _poisson(rate: float, key: int) -> Iterator[Column]:
    draws, since, number = RandomDraws(key, UNIT), 0, 0
    while True:
        gaps = ticks.rounded(np.rint(draws.many(number, BLOCK) * (FEMTO / rate)))
        block = ticks.add(ticks.running_total(gaps), since)
        yield from _in_time(block)
        since, number = int(block[-1]), number + BLOCK


def _regular(gap: float) -> Iterator[Column]:
    number = 0
    while True:
        count = BLOCK if gap <= 0 else min(BLOCK, int(ticks.LONGEST / FEMTO / gap) + 1 - number)
        if count <= 0:
            raise ticks.TooLong(number * gap)
        yield ticks.column([ticks.femtoseconds(index * gap) for index in range(number, number + count)])
        number += count


def _bursts(keys: BurstKeys, key: int, size: int) -> Iterator[Column]:
    sizes, number = RandomDraws(size, distribution_of(keys.size)), 0
    for block in _poisson(keys.poisson, key):
        counts = np.maximum(1, np.rint(sizes.many(number, len(block)))).astype(np.int64)
        number += len(block)
        if int(counts.max()) <= _SMALL:
            yield np.repeat(block, counts)
            continue
        for instant, count in zip(block.tolist(), counts.tolist(), strict=True):
            for done in range(0, count, BLOCK):
                yield ticks.column([instant] * min(BLOCK, count - done))


def _daily(keys: DayKeys, key: int) -> Iterator[Column]:
    cycle, expected = ticks.femtoseconds(keys.cycle), keys.mean * keys.cycle  # requests of a cycle
    expected_fs = max(1, round(expected * FEMTO))
    start, early = ticks.femtoseconds(keys.start), round(keys.share(keys.start) * expected_fs)
    for block in _poisson(1.0, key):  # arrivals in units of the expected request count, not of seconds
        split = [divmod(early + instant, expected_fs) for instant in block.tolist()]
        turns = keys.turns(np.array([rest / expected_fs for _, rest in split], np.float64))
        instants_of_block = [count * cycle + round(turn * cycle) for (count, _), turn in zip(split, turns.tolist(), strict=True)]
        yield from _in_time(ticks.column([max(0, instant - start) for instant in instants_of_block]))


def _in_time(block: Column) -> Iterator[Column]:
    """Yield the arrivals up to the longest accepted time; raise TooLong only when a later one is requested."""
    late = block > ticks.LONGEST
    if not late.any():
        yield block
        return
    first = int(late.argmax())
    if first:
        yield block[:first]
    raise ticks.TooLong(int(block[first]) / FEMTO)
