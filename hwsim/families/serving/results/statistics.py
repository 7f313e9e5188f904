"""Statistics of the requests of a service: waiting, reading and writing times, and how full its line and its cache were.

    first token   from a request's arrival to the first token of its answer (TTFT).
    each token    from the first to the last token, over the tokens between (TPOT); `gap`: from one token to the next.
    latency       from a request's arrival to its last token.

Percentiles are of requests (of tokens for `gap`), straight between the nearest two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from hwsim.families.serving.results.accounting import PARTS, named
from hwsim.families.serving.results.balance import balance
from hwsim.families.serving.results.course import Course
from hwsim.families.serving.results.log import MEASURES, Log, times_of
from hwsim.families.serving.results.piles import Pile
from hwsim.families.serving.results.scaling import Scaling
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.families.serving.workload.schema import SloKeys
from hwsim.machine.moved import Moved
from hwsim.origins import CASES, Case
from hwsim.records import dataclass
from hwsim.results.batches import STATISTICS
from hwsim.results.interval import COUNTS
from hwsim.results.invariants import BrokenInvariant
from hwsim.results.requests import Spread
from hwsim.spec import Warning
from hwsim.ticks import FEMTO, Column

PERCENTILES: Final = (50, 95, 99)
ENDLESS: Final = ("ttft_", "latency_")  # times that grow with the run where a service is overloaded
AROUND: Final = 0.05  # of all requests, on either side of a percentile, that say where its time goes; less where fewer are above


class RequestRow(NamedTuple):
    """One request: seconds from the start of the run, tokens, the copy that answered it, and where its time went."""

    arrival_s: float
    begin_s: float
    first_token_s: float
    end_s: float
    prompt_tokens: int
    output_tokens: int
    copy: int
    parts_fs: tuple[int, ...] = ()


class Moment(NamedTuple):
    """State at one instant: requests that waited, requests in work, part of the cache that was taken."""

    at_s: float
    waiting: int
    running: int
    cache: float


class Where(NamedTuple):
    """The time of the requests around a percentile, by where it goes.

    Args:
        measure: "ttft", "tpot" or "latency". value_s: the percentile.
        requests: around it. mean_s: their mean, which the parts add up to.
        parts: (name, seconds), the largest first; names are of `hwsim.families.serving.results.accounting`.
    """

    measure: str
    percentile: int
    value_s: float
    requests: int
    mean_s: float
    parts: tuple[tuple[str, float], ...]


class TierUse(NamedTuple):
    """A tier below the GPUs, of all copies: tokens that it holds, at most held, stored, and gave back to the GPUs.

    writing: part of the span in which what is stored is written, on the busiest way or disk; above 1 it falls behind.
    """

    name: str
    tokens: int
    peak_tokens: int
    stored_tokens: int
    brought_tokens: int
    writing: float


class AdapterUse(NamedTuple):
    """Use of the places for adapters, all copies together, warm-up included.

    Args:
        adapters: how many; places: for them on each copy. taken: times that a request took a place, again after it was put off.
        loads: times that its adapter had to be loaded for that; load_s: seconds of one.
        waited: requests that waited for a place; waited_s: together; longest_s: at most.
    """

    adapters: int
    places: int
    taken: int
    loads: int
    load_s: float
    waited: int
    waited_s: float
    longest_s: float


class Sampling(NamedTuple):
    """A mean or a percentile, and the range in which it would be in 95 of 100 runs of other requests, as many.

    Args:
        percentile: 0 for the mean. high_s: None without bound. short: the run is too short for it, the range too narrow.
    """

    measure: str
    percentile: int
    value_s: float
    low_s: float
    high_s: float | None
    short: bool

    @property
    def half(self) -> float | None:
        """The further end as a part of the value; None without bound."""
        if self.high_s is None or self.value_s <= 0:
            return None
        return max(self.value_s - self.low_s, self.high_s - self.value_s) / self.value_s


class Goal(NamedTuple):
    """A service level for each request, in seconds; None: any."""

    ttft: float | None = None
    tpot: float | None = None
    latency: float | None = None

    @classmethod
    def of(cls, keys: SloKeys | None) -> Goal:
        """As a file says it."""
        return cls() if keys is None else cls(keys.ttft, keys.tpot, keys.latency)

    @property
    def limits_fs(self) -> tuple[int | None, int | None, int | None]:
        """Limits in fs."""
        first, token, latency = (None if limit is None else round(limit * FEMTO) for limit in self)
        return first, token, latency


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
        course: at most 512 moments.
        where: for the first token, the time between tokens and the latency, at each of `PERCENTILES`.
        spent_s: time of all copies by what their iterations did, warm-up included; idle is the rest of `lasted_s` of each.
        lasted_s: from the very first arrival, of the warm-up, too, to the end of the last request.
        goal: what each request has to keep; good: requests that did.
        cached_tokens: tokens of prompts that need not be read because the cache has them.
        sampled: rows are a sample of the requests.
        warm_up: requests of the beginning that do not count; rows and course have them.
        grows_per_s: requests a second by which those in the system grow on and on; 0 in a steady state.
        unsettled: they grow while requests come, as in a service that fills or starts copies: the run is too short to tell.
        kind: "dense" or "experts", of a model that writes tokens; case: how well its GPU's kernels are known.
        paced: arrivals, and not answers, set its rate.
        tiers: below the GPUs, in order; their tokens are among `cached_tokens`.
        scaling: copies over time, where the load starts and stops them (of a split those that write answers); prompt_scaling:
            those that read prompts. adapters: those that are loaded when asked for.
        cache_format: number format of keys and values where it is narrower than 16 bits; "" else.
        parts: warnings that its run is a part of its load.
        stated_per_s: requests a second that come for ever, where the file says them: a steady rate, and no conversations.
        moved: it with each number of the machine that only whole runs follow at the ends of its range.
        sampling: for each measure, how far its mean and percentiles are known; none if all came at once.
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
    came_s: float
    where: tuple[Where, ...] = ()
    spent_s: tuple[tuple[str, float], ...] = ()
    goal: Goal = Goal()
    good: int = 0
    cached_tokens: int = 0
    sampled: bool = False
    warm_up: int = 0
    grows_per_s: float = 0.0
    unsettled: bool = False
    prompt_copies: int = 0
    prompt_gpus: int = 0
    sampling: tuple[Sampling, ...] = ()
    moved: Sequence[tuple[Moved, Sequence[ServiceStatistics]]] = field(default=(), repr=False, compare=False)
    kind: str = ""
    case: Case = "known"
    paced: bool = True
    tiers: tuple[TierUse, ...] = ()
    scaling: Scaling | None = None
    prompt_scaling: Scaling | None = None
    adapters: AdapterUse | None = None
    cache_format: str = ""
    stated_per_s: float | None = None
    lasted_s: float = 0.0
    parts: tuple[Warning, ...] = ()

    @property
    def offered_per_s(self) -> float:
        """Requests that came a second, from the first to the last; 0 if all came at once."""
        return (self.requests - 1) / self.came_s if self.came_s > 0 else 0.0

    @property
    def goodput_per_s(self) -> float | None:
        """Requests a second that kept the goal; None without one."""
        if not any(limit is not None for limit in self.goal):
            return None
        return self.good / self.span_s if self.span_s > 0 else 0.0

    @property
    def gpus(self) -> int:
        """All that it runs on."""
        return (self.copies - self.prompt_copies) * self.gpus_per_copy + self.prompt_copies * self.prompt_gpus

    @property
    def keeps_up(self) -> bool:
        """Whether arrivals, and not the machine, set its rate."""
        return self.paced and self.offered_per_s > 0 and not self.overloaded

    @property
    def overloaded(self) -> bool:
        """Whether more came than it can do: the longer it goes on, the more there are, and the longer they wait."""
        return self.grows_per_s > 0

    @property
    def answered_per_s(self) -> float:
        """Requests answered a second while they come: what comes, less those by which the ones there grow on and on."""
        return max(self.offered_per_s - self.grows_per_s, 0.0)

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.span_s if self.span_s > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Tokens written."""
        return self.output_tokens / self.span_s if self.span_s > 0 else 0.0

    @property
    def scalings(self) -> tuple[Scaling, ...]:
        """Copies over time of each part: of those that read prompts apart, if there are, and of the others."""
        return tuple(each for each in (self.prompt_scaling, self.scaling) if each is not None)

    @property
    def tokens_per_s_gpu(self) -> float:
        """Tokens written, on each GPU; of copies that come and go, on each in the mean."""
        if (gpus := math.fsum(scaling.mean * scaling.gpus for scaling in self.scalings)) > 0:
            return self.tokens_per_s / gpus
        return self.tokens_per_s / max(1, self.gpus)

    @property
    def settled_per_s(self) -> float:
        """Requests a second of a service that goes on: as many as come, where it keeps up; the last ones to end do not count.

        A run of few requests is over long after the last of them came, and a whole run's rate is too low for that. What comes is
        what the file says, where it says a rate: few requests happen to come faster or slower.
        """
        if not self.offered_per_s:
            return self.requests_per_s
        if self.overloaded:
            return self.answered_per_s
        return self.offered_per_s if self.stated_per_s is None else self.stated_per_s

    @property
    def settled_tokens_per_s(self) -> float:
        """Tokens written a second by a service that goes on."""
        return self.settled_per_s * self.output_tokens / self.requests if self.requests else 0.0

    def values(self) -> Mapping[str, float]:
        """Quantities for `expect:`, by name, in SI units; GPU-hours in hours."""
        values = {"requests_per_s": self.requests_per_s, "tokens_per_s": self.tokens_per_s}
        if every := self.scalings:
            hours, copies = (math.fsum(each) for each in zip(*((each.gpu_hours, each.mean) for each in every), strict=True))
            values |= {"gpu_hours": hours, "copies_mean": copies}
        if (goodput := self.goodput_per_s) is not None:
            values |= {"goodput": goodput}
        for name, spread in (("latency", self.latency), ("ttft", self.first_token), ("tpot", self.each_token)):
            if spread is not None:
                values |= {f"{name}_{part}": getattr(spread, part) for part in STATISTICS}
        return values


def expected_of(services: Sequence[ServiceStatistics]) -> dict[str, float]:
    """Quantities of all services for `expect:`: `NAME.ttft_p95`, or `ttft_p95` if the workload is nothing else.

    Times that grow with the run are infinite.
    """
    return {
        f"{service.name}.{name}" if service.name else name: math.inf if service.overloaded and name.startswith(ENDLESS) else value
        for service in services
        for name, value in service.values().items()
    }


def statistics(log: Log, plan: ServicePlan, exchanged: Case = "known", *, risen: int = 0) -> ServiceStatistics:
    """Statistics of the notes.

    Args:
        exchanged: case of the exchanges between GPUs. risen: fs from which on no more copies start.

    Raises:
        BrokenInvariant: not all requests of the plan came to a copy, left it, were answered, and count or are of the warm-up.
    """
    columns, totals = log.finish(), log.totals
    came, left = (sum(counts.values()) for counts in (log.course.came, log.course.ended))  # integers
    asked, name = len(plan.requests), plan.name
    if {asked} != {came, left, log.requests, log.cut + totals.requests}:
        gone = (
            f"{left:,} left it, {log.requests:,} were answered, and {log.cut:,} + {totals.requests:,} are of the warm-up or count"
        )
        raise BrokenInvariant(f"{name or 'the service'}: of {asked:,} requests {came:,} came to a copy, {gone}")
    began = totals.first_arrival if totals.requests else log.first_arrival
    span = max(1, log.last_end - began)
    lasted = max(1, log.last_end - log.first_arrival)
    spreads = {name: _binned(pile) for name, pile in totals.piles.items()} if log.sampled else _spreads(columns, log.cut)
    stages_of = [part.stages for part in plan.parts for _ in part.copies]
    copy_of = [copy for copy, stages in enumerate(stages_of) for _ in range(stages)]  # by batch
    batches, blocks = len(plan.copies) * plan.stages, plan.blocks
    held = None if blocks is None else blocks * plan.settings.block * plan.stages
    course = _course(log.course, blocks, batches)
    rows = _rows(columns, copy_of)
    came = log.last_arrival - began
    keeps = balance(log, columns, risen)
    spent = _spent(log, [copy_of.count(copy) for copy in copy_of])
    prompts, arrivals = plan.prompts, plan.keys.arrivals
    load = None if isinstance(arrivals, str) else arrivals
    return ServiceStatistics(
        name=name,
        copies=len(stages_of),
        gpus_per_copy=len(plan.copies[0]),
        requests=totals.requests,
        prompt_tokens=totals.prompt_tokens,
        output_tokens=totals.output_tokens,
        span_s=span / FEMTO,
        latency=spreads["latency"],
        wait=spreads["wait"],
        first_token=spreads["ttft"] if totals.output_tokens else None,
        each_token=spreads["tpot"] if totals.piles["tpot"].count else None,
        gap=_binned(log.gaps) if log.gaps.count else None,
        iterations=log.iterations,
        batch_mean=log.worked / max(1, log.iterations),
        in_system_mean=totals.latencies / span,
        queue_mean=totals.waits / span,
        queue_max=max((moment.waiting for moment in course), default=0) if log.sampled else _longest_queue(columns),
        put_off=log.put_off,
        read_again=log.read_again,
        cache_tokens=held,
        cache_bytes=plan.token_bytes * (blocks or 0) * plan.settings.block * plan.stages,
        cache_peak=log.course.most / blocks if blocks else 0.0,
        cache_mean=log.course.area / (blocks * batches * lasted) if blocks else 0.0,
        course=course,
        rows=rows,
        came_s=came / FEMTO,
        where=tuple(_where(log, spreads)),
        spent_s=spent,
        goal=Goal.of(plan.keys.slo),
        good=totals.good,
        cached_tokens=totals.cached_tokens,
        sampled=log.sampled,
        warm_up=log.cut,
        grows_per_s=keeps.grows_per_s,
        unsettled=keeps.unsettled,
        prompt_copies=0 if prompts is None else len(prompts.copies),
        prompt_gpus=0 if prompts is None else len(prompts.copies[0]),
        sampling=tuple(_sampling(log)) if came > 0 else (),
        kind=plan.kind,
        case=_case(dict(spent), exchanged, plan),
        paced=load is not None and load.clients is None,
        cache_format=plan.cache_format,
        stated_per_s=None if load is None or plan.keys.sessions is not None else load.steady,
        lasted_s=lasted / FEMTO,
        parts=() if load is None else load.part_of_load(name, asked, rows[-1].arrival_s - plan.start / FEMTO),
    )


def _case(spent: Mapping[str, float], exchanged: Case, plan: ServicePlan) -> Case:
    """The case of its kernels, or of its exchanges if they are less sure and take time worth the name."""
    of_network: Case = exchanged if spent.get("network", 0.0) > COUNTS * math.fsum(spent.values()) else "known"
    return max(of_network, *(part.case for part in plan.parts), key=CASES.index)


def _sampling(log: Log) -> Iterator[Sampling]:
    """The range of each mean and percentile with other requests."""
    for measure, series in log.totals.series.items():
        if not series.count:
            continue
        settled = series.estimate(warm_up=0)
        for share, value in ((0.0, settled.mean), *settled.percentiles):
            high = value.high if math.isfinite(value.high) else None
            yield Sampling(measure, round(100 * share), value.value, value.low, high, share in settled.short)


def _spreads(columns: Mapping[str, Column], cut: int) -> dict[str, Spread]:
    """Times of requests whose rows are all kept, without the first ones."""
    order = np.argsort(columns["arrival"], kind="stable")[cut:]
    counted = {name: column[order] for name, column in columns.items()}
    return {name: Spread.of(times / FEMTO) for name, times in times_of(counted).items()}


def _binned(pile: Pile) -> Spread:
    """The spread of values in bins, to 0.4 %."""
    p50, p95, p99 = (pile.at(part / 100) / FEMTO for part in PERCENTILES)
    return Spread(pile.total / max(1, pile.number) / FEMTO, p50, p95, p99, pile.most / FEMTO)


def _where(log: Log, spreads: Mapping[str, Spread]) -> Iterator[Where]:
    """The time around each percentile, by where it goes."""
    for measure in MEASURES:
        pile = log.totals.piles[measure]
        if not pile.parts:
            continue
        for percentile in PERCENTILES:
            part = percentile / 100
            width = min(AROUND, (1 - part) / 2)
            requests, shared_by, sums = pile.around(part - width, part + width, pile.at(part))
            if shared_by:
                times = [total / shared_by / FEMTO for total in sums]
                value = getattr(spreads[measure], f"p{percentile}")
                yield Where(measure, percentile, value, requests, sum(sums) / shared_by / FEMTO, tuple(named(times)))  # integers


def _spent(log: Log, stages: Sequence[int]) -> tuple[tuple[str, float], ...]:
    """Seconds of all copies by what they did, the mean of their batches. stages: of the copy of each batch."""
    pairs = tuple(zip(log.meters, stages, strict=True))
    sums = [sum(meters.spent[kind] // many for meters, many in pairs) for kind in range(5)]  # integers
    return tuple(zip(("prompts", "answers", "network", "shared", "host"), (total / FEMTO for total in sums), strict=True))


def _rows(columns: Mapping[str, Column], copy_of: Sequence[int]) -> tuple[RequestRow, ...]:
    times = ([time / FEMTO for time in columns[name].tolist()] for name in ("arrival", "begin", "first", "end"))
    parts = zip(*(columns[name].tolist() for name in PARTS), strict=True)
    counts = (columns[name].tolist() for name in ("prompt", "output", "copy"))
    return tuple(
        RequestRow(came, begun, max(first, 0.0), went, prompt, output, copy_of[copy], spent)
        for came, begun, first, went, prompt, output, copy, spent in zip(*times, *counts, parts, strict=True)
    )


def _longest_queue(columns: Mapping[str, Column]) -> int:
    """Most requests that had come and were not yet worked on; those that are at once do not wait."""
    begins, arrivals = columns["begin"].tolist(), columns["arrival"].tolist()
    changes = sorted([*((time, -1) for time in begins), *((time, 1) for time in arrivals)])
    return max(accumulate((change for _, change in changes), initial=0))


def _course(course: Course, blocks: int | None, copies: int) -> tuple[Moment, ...]:
    """The state at the end of each stretch of time, all copies together; the cache in its mean."""
    cells = [cell for column in (course.came, course.began, course.ended) for cell in column]
    length, moments = 1 << course.bits, []
    waiting = running = 0
    for cell in range(min(cells, default=0), max(cells, default=-1) + 1):
        came, begun, gone = (column.get(cell, 0) for column in (course.came, course.began, course.ended))
        waiting, running = waiting + came - begun, running + begun - gone
        cache = course.taken.get(cell, 0) / (blocks * copies * length) if blocks else 0.0
        moments.append(Moment((cell + 1) * length / FEMTO, waiting, running, cache))
    return tuple(moments)
