"""When requests come: as a file says it, and as a stream of instants whose memory does not grow with the requests.

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
from hwsim.workload.load.draws import Constant, Distribution, Draws, Exponential, Uniform
from hwsim.workload.load.keys import CountDraw, TimeDraw, distribution_of
from hwsim.workload.load.numbers import Floats, sine, stream
from hwsim.workload.load.traces import read_trace

UNSTEADY: Final = "there is no steady state to wait for: requests come now more and now less, or something happens in the run"
FIXED: Final = "warm_up: 10 s, or without it"
BLOCK: Final = 4096  # instants that are drawn together
UNIT: Final = Exponential(1.0)
_WAYS: Final = ("poisson", "every", "bursts", "day", "trace", "clients")
_SMALL: Final = 64  # requests of a burst, up to which a block of bursts is made at once
_CLOSE: Final = 2.0**-50  # of a cycle
_WHOLE: Final = 0.05  # of a cycle, by which chance may cut it short


@dataclass(frozen=True, slots=True)
class BurstKeys:
    """Requests that come together."""

    poisson: PerSecond = field("bursts per second on average, at random", exclusive_minimum=0.0)
    size: int | CountDraw = field("requests of a burst", minimum=1, example="20")


@dataclass(frozen=True, slots=True)
class DayKeys:
    """Requests at random, more by day than by night: the rate is a cosine around its mean. The run begins at 0 h."""

    mean: PerSecond = field("so many a second, over the whole cycle", exclusive_minimum=0.0)
    peak: PerSecond = field("so many a second at the busiest time; at most twice the mean", exclusive_minimum=0.0)
    at: Seconds = field("the busiest time", default=14 * 3600.0, example="14 h")
    cycle: Seconds = field("length of the cycle", default=DAY, minimum=1e-6, example="24 h")

    @property
    def swing(self) -> float:
        """Largest distance of the rate from its mean, as a part of the mean."""
        return self.peak / self.mean - 1.0

    def lasts(self, requests: float) -> float:
        """Seconds in which so many requests come, in the mean."""
        past, rest = divmod(requests, self.mean * self.cycle)
        return self.cycle * (past + float(self.turns(np.array([rest / (self.mean * self.cycle)], np.float64))[0]))

    def rate(self, seconds: float) -> float:
        """Requests a second at an instant."""
        return self.mean * (1.0 + self.swing * sine((seconds - self.at) / self.cycle + 0.25))

    def turns(self, shares: Floats) -> Floats:
        """The part of a cycle after which these shares of its requests have come: the inverse of the cumulative rate."""
        swing, phase = self.swing / (2 * math.pi), math.fmod(self.at, self.cycle) / self.cycle
        start = sine(-phase)
        low = np.maximum(shares - 2 * abs(swing), 0.0)
        high = np.minimum(shares + 2 * abs(swing), 1.0)
        turns = shares.copy()
        for _ in range(64):
            over = turns + swing * (sine(turns - phase) - start) - shares
            low, high = np.where(over <= 0, turns, low), np.where(over >= 0, turns, high)
            slope = 1.0 + self.swing * sine(turns - phase + 0.25)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = turns - over / slope
            inside = (newton > low) & (newton < high)
            after = np.where(inside, newton, np.where(over == 0, turns, (low + high) / 2))
            if float(np.abs(after - turns).max(initial=0.0)) <= _CLOSE:
                return after
            turns = after
        return turns


@dataclass(frozen=True, slots=True)
class ArrivalKeys:
    """Arrivals of requests: one of these keys, and `think` with `clients`."""

    poisson: PerSecond | None = field("random arrivals: average number per second", default=None, exclusive_minimum=0.0,
                                      example="4 1/s")  # fmt: skip
    every: Seconds | None = field("one after another, so far apart", default=None, example="100 ms")
    bursts: BurstKeys | None = field("at random, several at once", default=None, example="{poisson: 20 1/s, size: 20}")
    day: DayKeys | None = field(
        "at random, more by day than by night", default=None, example="{mean: 300 1/s, peak: 500 1/s, at: 14 h}"
    )
    trace: str | None = field(
        "a file with a line for each: a CSV with the columns arrival (seconds), prompt and output (tokens), one of Azure's, "
        "or Mooncake's JSONL; paths start from the workload's",
        default=None,
        example="requests.csv",
    )
    clients: int | None = field(
        "so many clients; each asks again once it is answered and has thought", default=None, minimum=1, example="64"
    )
    think: Seconds | TimeDraw | None = field("of a client between answer and next request (default: none)", default=None,
                                             example="{exponential: 2 s}")  # fmt: skip
    ramp: Seconds | None = field(
        "clients begin at random within this time (default: within `think`; where that is drawn, after one)",
        default=None,
        example="30 s",
    )
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        given = [name for name in _WAYS if getattr(self, name) is not None]
        if len(given) != 1:
            hint = "poisson: 4 1/s, every: 100 ms, bursts, day, trace: FILE, or clients: 64"
            yield "", f"requests come in one way, not in {len(given)}", hint
        if self.think is not None and self.clients is None:
            yield "think", "only clients think between their requests", "clients: 64, think: 2 s"
        if self.ramp is not None and self.clients is None:
            yield "ramp", "only clients begin one after another", "clients: 64, ramp: 30 s"
        if self.day is not None and self.day.peak > 2 * self.day.mean:
            yield "day", "its peak is more than twice its mean: the rate would be negative by night", "bursts, or a trace"
        if self.day is not None and self.day.peak < self.day.mean:
            yield "day", "its peak is below its mean", "peak at or above mean"
        for key, value in (("bursts", self.bursts and self.bursts.size), ("think", self.think)):
            if isinstance(value, CountDraw | TimeDraw):
                yield from ((key, message, hint) for _, message, hint in value.problems())

    @property
    def closed(self) -> bool:
        """Whether the next request waits for an answer: no stream of instants."""
        return self.clients is not None

    @property
    def rate(self) -> float | None:
        """Requests a second in the mean; None where the file does not say it: a trace, clients, all at once."""
        if self.poisson is not None:
            return self.poisson
        if self.every is not None:
            return 1.0 / self.every if self.every else None
        if self.bursts is not None:
            return self.bursts.poisson * distribution_of(self.bursts.size).mean
        return None if self.day is None else self.day.mean

    @property
    def changes(self) -> bool:
        """Whether more come at one time than at another, not by chance alone."""
        return self.day is not None or self.trace is not None

    @property
    def steady(self) -> float | None:
        """Requests a second of arrivals that are the same at all times; None of others."""
        return self.rate if self.day is None else None

    def part_of_load(self, whose: str, count: int, span: float) -> tuple[Warning, ...]:
        """A warning if a run ends before its day, its trace, or the ramp of its clients: it says nothing of the rest.

        Args:
            count: requests that came. span: seconds from the begin of the load to the last of them.
        """
        if self.day is not None:
            cycle, span = self.day.cycle, max(span, self.day.lasts(count))
            middle, peak = (format_quantity(rate, "1/s") for rate in (self.day.rate(span / 2), self.day.peak))
            whole = f"{math.ceil(self.day.mean * cycle):,} requests are a whole cycle, fewer with a shorter `cycle`"
            what = f"a cycle of {{}}: {middle} in the middle of it, {peak} at the busiest time; {whole}"
        elif self.trace is not None:
            came = read_trace(self.trace, self.place, tokens=False).arrival
            cycle = int(came[-1]) / FEMTO
            what = f"a trace of {{}}: {count:,} of its {len(came):,} requests"
        else:
            cycle = 0.0 if self.clients is None else self.thinking.mean if self.ramp is None else self.ramp
            what = "the {} within which its clients begin: fewer of them ask than it has"
        if span >= cycle * (1 - _WHOLE):
            return ()
        parts = f"the run is {format_quantity(span, 's')} of {what.format(format_quantity(cycle, 's'))}"
        return (Warning("part-of-a-day", f"{whose}{': ' if whose else ''}{parts}", self.place),)

    @property
    def thinking(self) -> Distribution:
        """Seconds of a client between an answer and its next request."""
        return Constant(0.0) if self.think is None else distribution_of(self.think)

    @property
    def beginning(self) -> Distribution:
        """Seconds until a client's first request: where it would be in its cycle, so that clients are not in step."""
        thinking = self.thinking
        within = thinking.value if self.ramp is None and isinstance(thinking, Constant) else self.ramp
        if within is None:
            return thinking
        return Uniform(0.0, within) if within > 0 else Constant(0.0)


def thoughts(keys: ArrivalKeys, seed: int, *names: str | int) -> Draws:
    """Times that the client of a request thinks before it."""
    return Draws(stream(seed, *names, "think"), keys.thinking)


def beginnings(keys: ArrivalKeys, seed: int, *names: str | int) -> Draws:
    """Times until the first request of each client."""
    return Draws(stream(seed, *names, "think"), keys.beginning)


def instants(keys: ArrivalKeys, seed: int, *names: str | int) -> Iterator[int]:
    """When requests come, in fs after the load began, in order and without end (not of a trace or of clients)."""
    return chain.from_iterable(block.tolist() for block in blocks(keys, seed, *names))


def blocks(keys: ArrivalKeys, seed: int, *names: str | int) -> Iterator[Column]:
    """The same, several at a time.

    Raises:
        TooLong: it comes after the longest time that is accepted.
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
    draws, since, number = Draws(key, UNIT), 0, 0
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
    sizes, number = Draws(size, distribution_of(keys.size)), 0
    for block in _poisson(keys.poisson, key):
        many = np.maximum(1, np.rint(sizes.many(number, len(block)))).astype(np.int64)
        number += len(block)
        if int(many.max()) <= _SMALL:
            yield np.repeat(block, many)
            continue
        for instant, count in zip(block.tolist(), many.tolist(), strict=True):
            for done in range(0, count, BLOCK):
                yield ticks.column([instant] * min(BLOCK, count - done))


def _daily(keys: DayKeys, key: int) -> Iterator[Column]:
    cycle, expected = ticks.femtoseconds(keys.cycle), keys.mean * keys.cycle  # requests of a cycle
    expected_fs = max(1, round(expected * FEMTO))
    for block in _poisson(1.0, key):  # instants of as many requests as come in the mean, not of seconds
        split = [divmod(each, expected_fs) for each in block.tolist()]
        turns = keys.turns(np.array([rest / expected_fs for _, rest in split], np.float64))
        instants_of_block = [past * cycle + round(turn * cycle) for (past, _), turn in zip(split, turns.tolist(), strict=True)]
        yield from _in_time(ticks.column(instants_of_block))


def _in_time(block: Column) -> Iterator[Column]:
    """The instants up to the longest time that is accepted; a later one is refused once it is asked for."""
    late = block > ticks.LONGEST
    if not late.any():
        yield block
        return
    first = int(late.argmax())
    if first:
        yield block[:first]
    raise ticks.TooLong(int(block[first]) / FEMTO)
