"""The log of a service: events of its requests, in memory that does not grow with their number.

Requests in flight are kept individually. Completed requests are added, in blocks, to histograms of TTFT, TPOT and latency, with
the latency breakdown of each bin. Rows of all requests are kept up to `ROWS`; of more, a sample by a hash of their number. The
history has a fixed number of time intervals, which double in length as it grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.families.serving.results.accounting import COMMUNICATION, HOST, PARTS, Meters, Refusal, RequestAccount
from hwsim.families.serving.results.histograms import LatencyHistogram
from hwsim.families.serving.results.history import ServiceHistory
from hwsim.records import dataclass
from hwsim.results.batches import BatchedSamples
from hwsim.ticks import FEMTO, Column

ROWS: Final = 20_000  # maximum requests with a row each
SAMPLE: Final = 2_000  # rows of a larger run
BLOCK: Final = 4_096  # requests, or runs, added at once
MANY: Final = 1 << 16  # maximum iterations of runs added at once
MEASURES: Final = ("ttft", "tpot", "latency")
COLUMNS: Final = ("number", "arrival", "copy", "prompt", "output", "begin", "first", "end", "cached")
Columns: TypeAlias = dict[str, Column]
Late: TypeAlias = Iterable[tuple[int, int]]
Limits: TypeAlias = tuple[int | None, int | None, int | None]  # fs of `MEASURES`


@dataclass(slots=True)
class Totals:
    """The totals of the requests in the statistics.

    Args:
        piles: histogram of each measure, and of the wait.
        series: latencies in the order of requests, for their sampling error.
        requests: number of requests.
        prompt_tokens, output_tokens, cached_tokens: number of tokens.
        latencies, waits: sums (fs).
        good: number of requests that met the SLO.
        first_arrival: earliest arrival (fs); -1 without requests.
    """

    piles: dict[str, LatencyHistogram] = field(default_factory=lambda: {name: LatencyHistogram() for name in (*MEASURES, "wait")})
    series: dict[str, BatchedSamples] = field(default_factory=lambda: {name: BatchedSamples() for name in MEASURES})
    requests: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    latencies: int = 0
    waits: int = 0
    good: int = 0
    first_arrival: int = -1

    def add(self, columns: Columns, goal: Limits) -> None:
        """Add completed requests, in order."""
        if not len(columns["number"]):
            return
        times = times_of(columns)
        first = int(columns["arrival"].min())
        self.first_arrival = first if self.first_arrival < 0 else min(first, self.first_arrival)
        self.requests += len(columns["number"])
        self.prompt_tokens += ticks.total(columns["prompt"])
        self.output_tokens += ticks.total(columns["output"])
        self.cached_tokens += ticks.total(columns["cached"])
        self.latencies += ticks.total(columns["end"] - columns["arrival"])
        self.waits += ticks.total(columns["begin"] - columns["arrival"])
        several, writes = columns["output"] > 1, columns["output"] > 0
        parts = [columns[name] for name in PARTS]
        early = [columns[f"first_{name}"] for name in PARTS]
        later = [(part - before)[several] for part, before in zip(parts, early, strict=True)]
        self.piles["latency"].add_all(times["latency"], parts)
        self.piles["wait"].add_all(times["wait"], ())
        self.piles["ttft"].add_all(times["ttft"], [part[writes] for part in early])
        self.piles["tpot"].add_all(times["tpot"], later, columns["output"][several] - 1)
        for name, series in self.series.items():
            series.extend(times[name] / FEMTO)
        keeps = np.ones(len(several), np.bool_)
        for name, limit, where in zip(MEASURES, goal, (writes, several, keeps.copy()), strict=True):
            if limit is not None:
                keeps[np.flatnonzero(where)] &= times[name] <= limit
        self.good += int(keeps.sum())


def times_of(columns: Columns) -> dict[str, NDArray[np.float64]]:
    """Return latencies (fs): `ttft` of requests with output, `tpot` of requests with several tokens, others of all."""
    arrival, end, first, output = (columns[name] for name in ("arrival", "end", "first", "output"))
    several = output > 1
    writing = (end - first)[several].astype(np.float64)
    return {
        "latency": (end - arrival).astype(np.float64),
        "wait": (columns["begin"] - arrival).astype(np.float64),
        "ttft": (first - arrival)[output > 0].astype(np.float64),
        "tpot": writing / (output[several] - 1).astype(np.float64),
    }


@dataclass(slots=True)
class Log:
    """The log of a running service; times in fs.

    The simulation calls `came` for each request. For each iteration it calls `refuses` and `begins` when the iteration is
    decided; and when it has ended `reads`, `iterated`, `Meters.iterated`, `writes` and `ends`. Calls of one replica are in order
    of time.

    Args:
        copies: number of replicas.
        goal: limits of (TTFT, TPOT, latency); None: no limit.
        warm_up: time from the first arrival that is excluded from the statistics; None: until the steady state.
        meters: meters of each replica.
        live: requests in flight by number.
        totals: totals of the requests in the statistics.
        gaps: histogram of inter-token latencies.
        course: history.
        sampled: rows are a sample.
        cut: number of warm-up requests.
        requests: number of completed requests.
        iterations: number of iterations of all replicas.
        worked: sum of the batch sizes of all iterations.
        preemptions: number of preemptions.
        recomputed_tokens: number of recomputed tokens.
        begun: function called with the start time of each request.
        over: function called with (replica, time) of each completed request.
        below: prompt tokens loaded from each tier below GPU memory.
    """

    copies: int
    goal: Limits = (None, None, None)
    warm_up: int | None = 0
    meters: list[Meters] = field(init=False)
    live: dict[int, RequestAccount] = field(default_factory=dict)
    totals: Totals = field(default_factory=Totals)
    gaps: LatencyHistogram = field(default_factory=LatencyHistogram)
    course: ServiceHistory = field(default_factory=ServiceHistory)
    sampled: bool = False
    cut: int = 0
    requests: int = 0
    first_arrival: int = -1
    last_arrival: int = 0
    last_end: int = 0
    iterations: int = 0
    worked: int = 0
    preemptions: int = 0
    recomputed_tokens: int = 0
    begun: Callable[[int], None] | None = None
    over: Callable[[int, int], None] | None = None
    below: list[int] = field(default_factory=list)
    _ended: list[RequestAccount] = field(default_factory=list)
    _kept: list[Columns] = field(default_factory=list)
    _since: int = 0
    _joined: list[dict[int, int]] = field(init=False)
    _wrote: list[int] = field(init=False)
    _runs: list[tuple[int, ...]] = field(default_factory=list)
    _later: list[int] = field(default_factory=list)
    _early: list[int] = field(default_factory=list)  # inter-token latencies after first tokens and preemptions
    _stopped: dict[int, int] = field(default_factory=dict)  # time of the last token of each preempted request
    _many: int = 0  # iterations of `_runs`

    def __post_init__(self) -> None:
        self.meters = [Meters() for _ in range(self.copies)]
        self._joined = [{} for _ in range(self.copies)]
        self._wrote = [0] * self.copies

    def came(self, arrival: int, request: int, copy: int, prompt: int, output: int, seen: int = -1, late: Late = ()) -> None:
        """Record a request that is queued at a replica from `seen` on.

        Args:
            arrival: arrival time.
            request: number of the request.
            copy: index of the replica.
            prompt, output: number of tokens.
            seen: queueing time; default: the arrival.
            late: (part, fs) of waits before that.
        """
        stay = RequestAccount(request, arrival, copy, prompt, output, max(arrival, seen))
        for part, time in late:
            stay.parts[HOST] -= time
            stay.parts[part] += time
        self.live[request] = stay
        self.meters[copy].came(stay)
        self.course.counts(self.course.came, arrival)
        self.first_arrival = arrival if self.first_arrival < 0 else min(self.first_arrival, arrival)
        self.last_arrival = max(self.last_arrival, arrival)

    def refuses(self, copy: int, refusal: Refusal) -> None:
        """Record why the head of the queue did not join the iteration; "" if it did, or if the queue is empty."""
        self.meters[copy].refusal = refusal

    def begins(self, time: int, requests: Iterable[int], cached: int = 0) -> None:
        """Record an iteration with prefill of these requests; `cached`: prompt tokens found in the prefix cache."""
        for request in requests:
            stay = self.live[request]
            if stay.begin < 0:
                if self.begun is not None:
                    self.begun(time)
                stay.cached = cached
                self.meters[stay.copy].begins(stay, time)
                self.course.counts(self.course.began, time)

    def holds(self, time: int, request: int, tokens: Sequence[int] = ()) -> None:
        """Record the start of a wait for an adapter slot, or for a load of `tokens` tokens from each lower tier."""
        stay = self.live[request]
        if stay.begin < 0:
            self.meters[stay.copy].loads(stay, time)
            if tokens:
                self.below = [a + b for a, b in zip(self.below or [0] * len(tokens), tokens, strict=True)]

    def frees(self, time: int, request: int, part: int) -> None:
        """Record the end of such a wait, which is charged to `part`."""
        stay = self.live[request]
        if stay.begin < 0:
            self.meters[stay.copy].loaded(stay, time, part)

    def reads(self, request: int, time: int) -> None:
        """Record the time of an iteration spent on a prefill chunk of a request."""
        stay = self.live[request]
        if stay.put_off < 0:
            stay.alone += time

    def iterated(
        self, copy: int, start: int, end: int, answers: int, worked: int, blocks: int = 0, count: int = 1,
        first: int = 0, slope: int = 0, later: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Record an iteration, or a run of equal iterations.

        Args:
            copy: index of the replica.
            start, end: start of the first and end of the last iteration.
            answers: number of sequences in decode, without requests that end their prefill.
            worked: batch size.
            blocks: KV-cache blocks in use at the end.
            count: number of iterations.
            first: duration of the first iteration.
            slope: growth of the duration from one iteration to the next.
            later: blocks allocated in each iteration after the first.
        """
        self.iterations += count
        self.worked += worked * count
        first, before, gap = first or end - start, answers, 0
        if answers:
            joined, next_end = self._joined[copy], start + first
            if joined:
                self._early += [next_end - since for since in joined.values()]
                before -= len(joined)
                joined.clear()
            if before > 0:
                gap = next_end - self._wrote[copy]
            self._wrote[copy] = end
        self._runs.append((start, end, blocks, first, slope, len(later), count - 1, answers, max(0, before), gap))
        self._later += later
        self._many += count
        if len(self._runs) > BLOCK or self._many > MANY:
            self._adds()

    def _adds(self) -> None:
        """Add the recorded runs to the totals, as if each iteration had been added separately."""
        early, self._early = ticks.column(self._early), []
        self.gaps.add(early, np.ones(len(early), np.int64))
        if not self._runs:
            return
        starts, ends, taken, *rest = zip(*self._runs, strict=True)
        first, slope, grown, more, answers, before, gap = (ticks.column(column) for column in rest)
        self.course.takes(starts, ends, taken)
        if self._later:
            self.course.grows(starts, first, slope, grown, self._later)
        waits, writes = before > 0, (more > 0) & (answers > 0)
        self.gaps.add(gap[waits], before[waits])
        if writes.any():
            self.gaps.add_runs(ticks.add(first, slope)[writes], slope[writes], more[writes], answers[writes])
        self._runs, self._later, self._many = [], [], 0

    def writes(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """Record the end of prefill and an output token of these requests; `out`: time until the client has it."""
        for request in requests:
            stay = self.live[request]
            if (since := self._stopped.pop(request, -1)) >= 0:
                self._early.append(time - since)
            self.meters[stay.copy].writes(stay, time + out)
            self._joined[stay.copy][request] = time

    def ends(self, time: int, requests: Iterable[int], out: int = 0) -> None:
        """Record the completion of these requests; `out`: time until the client has the last token."""
        for request in requests:
            stay = self.live.pop(request)
            self._joined[stay.copy].pop(request, None)
            self.meters[stay.copy].ends(stay, time + out)
            self.course.counts(self.course.ended, time + out)
            self._ended.append(stay)
            if self.over is not None:
                self.over(stay.copy, time)
        if len(self._ended) >= BLOCK:
            self.settle()

    def is_read(self, time: int, request: int) -> None:
        """Record the end of a prefill whose decode is on another replica."""
        stay = self.live[request]
        self.meters[stay.copy].is_read(stay, time)

    def hands_over(self, time: int, request: int, *, out: bool = True) -> None:
        """Record the end of a KV-cache transfer; `out`: the first token is available with it."""
        stay = self.live[request]
        stay.parts[COMMUNICATION] += time - stay.since
        stay.since = time
        if out:
            stay.first, stay.to_first = time, tuple(stay.parts)

    def goes_on(self, time: int, request: int, copy: int) -> None:
        """Record the start of decode on another replica."""
        stay = self.live[request]
        if stay.first >= 0:
            self._joined[copy][request] = stay.since
        stay.copy = copy
        self.meters[copy].goes_on(stay, time)

    def puts_off(self, time: int, request: int, lost: int) -> None:
        """Record a preemption; `lost`: number of tokens to recompute."""
        stay = self.live[request]
        if stay.first >= 0 and stay.put_off < 0:
            self._stopped[request] = self._joined[stay.copy].pop(request, self._wrote[stay.copy])
        self.meters[stay.copy].puts_off(stay, time)
        self.preemptions += 1
        self.recomputed_tokens += lost

    def settle(self) -> None:
        """Add the completed requests to rows and totals."""
        if not self._ended:
            return
        stays, self._ended = self._ended, []
        rows = zip(*map(attrgetter(*COLUMNS), stays), strict=True)
        columns = {name: ticks.column(row) for name, row in zip(COLUMNS, rows, strict=True)}
        for first, parts in (("", [stay.parts for stay in stays]), ("first_", [stay.to_first for stay in stays])):
            for name, part in zip(PARTS, zip(*parts, strict=True), strict=True):
                columns[first + name] = ticks.column(part)
        self.settles(columns)

    def settles(self, columns: Columns) -> None:
        """Add completed requests, in order; columns: `COLUMNS`, `PARTS`, and `PARTS` up to the first token ("first_...")."""
        self.requests += len(columns["number"])
        self.last_end = max(self.last_end, int(columns["end"].max()))
        self._kept.append(columns)
        if self.requests <= ROWS:
            return
        joined = self._join()
        if self.sampled:
            self.totals.add(self._counted(_sorted(columns)), self.goal)
        else:
            self._starts(joined)
            self.totals.add(self._counted(joined), self.goal)
            self.sampled = True
        from hwsim.graph.fold.refine import mixed  # imported only if rows are sampled

        order = np.argsort(mixed(joined["number"].astype(np.uint64)), kind="stable")[:SAMPLE]
        self._kept = [{name: column[order] for name, column in joined.items()}]

    def finish(self) -> Columns:
        """Complete the totals; return the columns of the rows, by number."""
        self.settle()
        self._adds()
        if not self._kept:
            return {}
        joined = self._join()
        if not self.sampled:
            self._starts(joined)
            self.totals.add(self._counted(joined), self.goal)
        return joined

    def _starts(self, columns: Columns) -> None:
        """Determine the end of the warm-up."""
        if self.warm_up is not None:
            self._since = self.first_arrival + self.warm_up
        else:
            series = BatchedSamples()
            series.extend(times_of(columns)["latency"] / FEMTO)
            first, _ = series.warm_up
            self._since = int(columns["arrival"][min(first, len(columns["arrival"]) - 1)])

    def _counted(self, columns: Columns) -> Columns:
        """Return the requests after the warm-up."""
        late = columns["arrival"] >= self._since
        self.cut += int((~late).sum())  # count
        return columns if late.all() else {name: column[late] for name, column in columns.items()}

    def _join(self) -> Columns:
        """Return the columns of the rows, by number."""
        columns = {}
        for name in self._kept[0]:
            blocks = [block[name] for block in self._kept]
            columns[name] = np.concatenate([ticks.matching(block, *blocks) for block in blocks])
        self._kept = [_sorted(columns)]
        return self._kept[0]


def _sorted(columns: Columns) -> Columns:
    order = np.argsort(columns["number"], kind="stable")
    return {name: column[order] for name, column in columns.items()}
