"""Statistics of the requests of a service: waiting, reading and writing times, and how full its line and its cache were.

    first token   from a request's arrival to the first token of its answer (TTFT).
    each token    from the first to the last token, over the tokens between (TPOT); `gap`: from one token to the next.
    latency       from a request's arrival to its last token.

Percentiles are of requests (of tokens for `gap`), straight between the nearest two.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from hwsim.records import dataclass
from hwsim.results.requests import Spread
from hwsim.ticks import FEMTO

LEAST_QUARTER: Final = 5  # requests of a quarter, below which nothing is said of a trend
MUCH: Final = 1.25  # times as many
PART: Final = 0.1  # of the time in which requests came, that the last of them wait
SAMPLES: Final = 200  # instants of the course that is kept


class RequestRow(NamedTuple):
    """One request: seconds from the start of the run, tokens, the copy that answered it, how often it lost its cache."""

    arrival_s: float
    begin_s: float
    first_token_s: float
    end_s: float
    prompt_tokens: int
    output_tokens: int
    copy: int


class Moment(NamedTuple):
    """State at one instant: requests that waited, requests in work, part of the cache that was taken."""

    at_s: float
    waiting: int
    running: int
    cache: float


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """A service.

    Args:
        name: name of its job, "" if the workload is nothing else.
        span_s: from the first arrival to the end of the last request.
        wait: from arrival to the first iteration of the request.
        iterations: iterations of all copies; batch_mean: sequences of one.
        in_system_mean: requests that were there, over the span; queue_mean, queue_max: those that waited.
        put_off: times that a request lost its cache to others; read_again: tokens that were read once more because of that.
        cache_tokens: that the cache of a copy holds, None without bound; cache_bytes: on each GPU.
        cache_peak, cache_mean: part of the blocks of the fullest copy, and of all over the span.
        course: at most 200 moments.
    """

    name: str
    copies: int
    gpus_per_copy: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    span_s: float
    latency: Spread
    wait: Spread
    first_token: Spread | None
    each_token: Spread | None
    gap: Spread | None
    iterations: int
    batch_mean: float
    in_system_mean: float
    queue_mean: float
    queue_max: int
    put_off: int
    read_again: int
    cache_tokens: int | None
    cache_bytes: float
    cache_peak: float
    cache_mean: float
    course: tuple[Moment, ...]
    rows: tuple[RequestRow, ...]

    @property
    def offered_per_s(self) -> float:
        """Requests that came a second, from the first to the last; 0 if all came at once."""
        came = sorted(row.arrival_s for row in self.rows)
        between = came[-1] - came[0] if came else 0.0
        return (len(came) - 1) / between if between > 0 else 0.0

    @property
    def overloaded(self) -> bool:
        """Whether more came than it can do: it answered far fewer a second than came, and the last to come waited longest."""
        quarter = len(self.rows) // 4
        if quarter < LEAST_QUARTER or self.offered_per_s <= MUCH * self.requests_per_s:
            return False
        rows = sorted(self.rows, key=lambda row: row.arrival_s)
        first, last = (
            math.fsum(row.begin_s - row.arrival_s for row in some) / quarter for some in (rows[:quarter], rows[-quarter:])
        )
        return last > 2 * first and last > PART * (rows[-1].arrival_s - rows[0].arrival_s)

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.span_s if self.span_s > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens written."""
        return self.output_tokens / self.span_s if self.span_s > 0 else 0.0

    @property
    def settled_per_s(self) -> float:
        """Requests a second of a service that goes on: as many as come, where it keeps up; the last ones to end do not count.

        A run of few requests is over long after the last of them came, and a whole run's rate is too low for that.
        """
        return self.requests_per_s if self.overloaded or not self.offered_per_s else self.offered_per_s

    @property
    def settled_tokens_per_s(self) -> float:
        """Tokens written a second by a service that goes on."""
        return self.settled_per_s * self.output_tokens / self.requests if self.requests else 0.0

    def values(self) -> Mapping[str, float]:
        """Quantities for `expect:`, by name, in SI units."""
        values = {"requests_per_s": self.requests_per_s, "tokens_per_s": self.tokens_per_s}
        for name, spread in (("latency", self.latency), ("ttft", self.first_token), ("tpot", self.each_token)):
            if spread is not None:
                values |= {f"{name}_{part}": getattr(spread, part) for part in ("mean", "p50", "p95", "p99", "max")}
        return values


def expected_of(services: Sequence[ServiceStatistics]) -> dict[str, float]:
    """Quantities of all services for `expect:`: `NAME.ttft_p95`, or `ttft_p95` if the workload is nothing else."""
    return {f"{each.name}.{name}" if each.name else name: value for each in services for name, value in each.values().items()}


@dataclass(slots=True)
class Log:
    """Notes of a service while it runs; times in fs."""

    requests: Sequence[tuple[int, int, int]]
    begin: list[int]
    first: list[int]
    last: list[int]
    end: list[int]
    copy: list[int]
    gaps: array[int] = field(default_factory=lambda: array("q"))
    moments: list[tuple[int, int, int]] = field(default_factory=list)  # time, copy, blocks of its cache that are taken
    iterations: int = 0
    worked: int = 0
    area: int = 0  # requests in the system x fs
    _held: int = 0
    _since: int = 0

    @classmethod
    def of(cls, requests: Sequence[tuple[int, int, int]]) -> Log:
        """For these: (arrival, tokens of the prompt, tokens of the answer)."""
        begin, first, last, end, copy = ([-1] * len(requests) for _ in range(5))
        return cls(requests, begin, first, last, end, copy)

    def came(self, time: int, request: int, copy: int) -> None:
        """A request is in a copy's line."""
        self._count(time, 1)
        self.copy[request] = copy

    def begins(self, time: int, copy: int, starting: Iterable[int], running: int, blocks: int) -> None:
        """An iteration, in which these requests are worked on, perhaps for the first time."""
        for request in starting:
            if self.begin[request] < 0:
                self.begin[request] = time
        self.iterations += 1
        self.worked += running
        self.moments.append((time, copy, blocks))

    def rests(self, time: int, copy: int, blocks: int) -> None:
        """A copy has nothing to do."""
        self.moments.append((time, copy, blocks))

    def writes(self, time: int, requests: Iterable[int]) -> None:
        """A token of each is out."""
        for request in requests:
            if self.first[request] < 0:
                self.first[request] = time
            else:
                self.gaps.append(time - self.last[request])
            self.last[request] = time

    def ends(self, time: int, requests: Iterable[int]) -> None:
        """These are answered."""
        for request in requests:
            self.end[request] = time
            self._count(time, -1)

    def _count(self, time: int, change: int) -> None:
        self.area += self._held * (time - self._since)
        self._since = time
        self._held += change


def statistics(
    log: Log,
    *,
    name: str,
    copies: int,
    gpus: int,
    block: int,
    blocks: int | None,
    token_bytes: float,
    put_off: int,
    read_again: int,
) -> ServiceStatistics | None:
    """Statistics of the notes; None without a request."""
    if not log.requests:
        return None
    arrival = [each[0] for each in log.requests]
    prompts, outputs = sum(each[1] for each in log.requests), sum(each[2] for each in log.requests)  # integers
    begin, end = min(arrival), max(log.end)
    span = max(1, end - begin)
    waits = [start - came for start, came in zip(log.begin, arrival, strict=True)]
    several = [number for number, (_, _, output) in enumerate(log.requests) if output > 1]
    cache_peak, cache_mean = _cache(log, blocks, copies, begin, end)
    return ServiceStatistics(
        name=name,
        copies=copies,
        gpus_per_copy=gpus,
        requests=len(arrival),
        prompt_tokens=prompts,
        output_tokens=outputs,
        span_s=span / FEMTO,
        latency=_spread([went - came for came, went in zip(arrival, log.end, strict=True)]),
        wait=_spread(waits),
        first_token=_spread([went - came for came, went in zip(arrival, log.first, strict=True)]) if outputs else None,
        each_token=_spread([(log.end[each] - log.first[each]) / (log.requests[each][2] - 1) for each in several])
        if several
        else None,
        gap=_spread(log.gaps) if len(log.gaps) else None,
        iterations=log.iterations,
        batch_mean=log.worked / max(1, log.iterations),
        in_system_mean=log.area / span,
        queue_mean=sum(waits) / span,  # integers
        queue_max=_longest_queue(arrival, log.begin),
        put_off=put_off,
        read_again=read_again,
        cache_tokens=None if blocks is None else blocks * block,
        cache_bytes=token_bytes * (blocks or 0) * block,
        cache_peak=cache_peak,
        cache_mean=cache_mean,
        course=_course(log, blocks, copies),
        rows=tuple(
            RequestRow(came / FEMTO, start / FEMTO, max(first, 0) / FEMTO, went / FEMTO, prompt, output, copy)
            for (came, prompt, output), start, first, went, copy in zip(
                log.requests, log.begin, log.first, log.end, log.copy, strict=True
            )
        ),
    )


def _spread(times_fs: Iterable[float]) -> Spread:
    return Spread.of(np.array(list(times_fs), np.float64) / FEMTO)


def _cache(log: Log, blocks: int | None, copies: int, begin: int, end: int) -> tuple[float, float]:
    """(peak of one copy, mean of all) of the part that is taken."""
    if not blocks:
        return 0.0, 0.0
    area, most = 0, 0
    for copy in range(copies):
        of_copy = [(time, used) for time, number, used in log.moments if number == copy]
        area += sum(used * (after - time) for (time, used), (after, _) in pairwise([*of_copy, (end, 0)]))  # integers
        most = max([most, *(used for _, used in of_copy)])
    return most / blocks, area / (blocks * copies * max(1, end - begin))


def _longest_queue(arrivals: Sequence[int], begins: Sequence[int]) -> int:
    """Most requests that had come and were not yet worked on; those that are at once do not wait."""
    waiting = longest = 0
    for _, change in sorted([*((time, -1) for time in begins), *((time, 1) for time in arrivals)]):
        waiting += change
        longest = max(longest, waiting)
    return longest


def _course(log: Log, blocks: int | None, copies: int) -> tuple[Moment, ...]:
    """The state at equal steps of time, all copies together."""
    if not log.moments:
        return ()
    end, moments, at = max(log.end), [], 0
    arrivals, begins, ends = sorted(each[0] for each in log.requests), sorted(log.begin), sorted(log.end)
    used = [0] * copies
    for number in range(SAMPLES + 1):
        time = end * number // SAMPLES
        while at < len(log.moments) and log.moments[at][0] <= time:
            _, copy, taken = log.moments[at]
            used[copy] = taken
            at += 1
        came, begun, gone = (bisect_right(column, time) for column in (arrivals, begins, ends))
        cache = sum(used) / (blocks * copies) if blocks else 0.0  # integers
        moments.append(Moment(time / FEMTO, came - begun, begun - gone, cache))
    return tuple(moments)
