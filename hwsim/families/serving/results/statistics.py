"""Statistics of a service: latency percentiles, throughput, queue depth and use of the KV cache.

    first_token   TTFT: from arrival to the first output token
    each_token    TPOT: time from the first to the last output token, per token after the first
    gap           ITL: time between two successive output tokens
    latency       from arrival to the last output token

Percentiles are over requests (over tokens for `gap`), with linear interpolation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.families.serving.results.accounting import PARTS, named
from hwsim.families.serving.results.autoscaling import AutoscalingStatistics
from hwsim.families.serving.results.balance import balance
from hwsim.families.serving.results.histograms import LatencyHistogram
from hwsim.families.serving.results.history import ServiceHistory
from hwsim.families.serving.results.log import MEASURES, Log, times_of
from hwsim.families.serving.results.measures import AdapterUse, Goal, LatencyBreakdown, Moment, RequestRow, Sampling, TierUse
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.machine.moved_numbers import MovedNumber
from hwsim.origins import CASES, Case
from hwsim.records import dataclass
from hwsim.results.batches import STATISTICS
from hwsim.results.interval import COUNTS
from hwsim.results.invariants import BrokenInvariant
from hwsim.results.requests import TimeStatistics
from hwsim.spec import Warning
from hwsim.ticks import FEMTO, Column

if TYPE_CHECKING:
    from hwsim.machine.scores import Scores

PERCENTILES: Final = (50, 95, 99)
ENDLESS: Final = ("ttft_", "latency_")  # latencies that grow with the length of an overloaded run
AROUND: Final = 0.05  # share of requests on either side of a percentile in its breakdown; less near 100 %


@dataclass(frozen=True, slots=True)
class ServiceStatistics:
    """The statistics of a service.

    Args:
        name: name of the job; "" if the workload is one service.
        replicas: number of replicas, including prefill replicas.
        gpus_per_replica: GPUs of a replica.
        requests: number of requests in the statistics.
        prompt_tokens, output_tokens: their number of tokens.
        span_s: time from the first arrival to the last completion (s).
        latency: time from arrival to the last output token.
        queueing: time from arrival to the first iteration.
        first_token: TTFT; None without output.
        each_token: TPOT; None without a request of several tokens.
        itl: ITL; None without such a request.
        iterations: iterations of all replicas.
        batch_mean: average batch size.
        in_flight_mean: average number of requests in the system.
        queued_mean, queued_max: average and maximum queue depth.
        preemptions: number of preemptions.
        recomputed_tokens: number of tokens recomputed after preemptions.
        kv_cache_tokens: capacity of a replica's KV cache in tokens; None: unlimited.
        kv_cache_bytes: bytes of the KV cache on each GPU.
        kv_cache_peak: maximum share of blocks in use on one replica.
        kv_cache_mean: average share of blocks in use on all replicas.
        time_series: state over time, at most 512 moments.
        rows: rows of requests.
        arrivals_s: time from the first to the last arrival (s).
        breakdowns: latency breakdown of TTFT, TPOT and latency at each of `PERCENTILES`.
        time_by_use: time of all replicas by use, including the warm-up (s); the rest of `duration_s` is idle.
        goal: latency limits of a request (SLO).
        good: number of requests that met them.
        cached_tokens: prompt tokens found in the prefix cache or in lower tiers.
        sampled: rows are a sample of the requests.
        warm_up: number of warm-up requests, which only rows and course contain.
        queue_growth_per_s: persistent growth of the requests in the system (requests/s); 0 in a steady state.
        unsettled: the number of requests grows, but the run is too short to tell overload from filling or replica starts.
        prefill_replicas: number of prefill replicas; 0 without `split:`.
        prefill_gpus: GPUs of a prefill replica.
        sampling_errors: sampling error of the mean and percentiles of each measure; empty if all requests arrived at once.
        moved: the statistics at both ends of the range of each uncertain input that needs a simulation.
        scores: measurements of earlier runs on the machine.
        kind: "dense" or "experts"; "" for a model that writes no tokens.
        case: case of the kernels on this GPU, which sets the width of intervals.
        paced: arrivals, not completions, set the rate (no clients).
        tiers: use of the tiers below GPU memory, in order; their tokens are included in `cached_tokens`.
        scaling: autoscaling of the replicas, or of the decode replicas; None without `scale:`.
        prompt_scaling: autoscaling of the prefill replicas.
        adapters: use of adapter slots; None if all adapters are on the GPUs.
        cache_format: number format of the KV cache if it is narrower than 16 bits; "" otherwise.
        stated_per_s: arrival rate in the file (requests/s), for a steady rate without conversations; None otherwise.
        duration_s: time from the first arrival, including the warm-up, to the last completion (s).
        parts: warnings that the run covers only a part of the load.
    """

    name: str
    replicas: int
    gpus_per_replica: int
    requests: int
    prompt_tokens: int
    output_tokens: int
    span_s: float
    latency: TimeStatistics
    queueing: TimeStatistics
    first_token: TimeStatistics | None
    each_token: TimeStatistics | None
    itl: TimeStatistics | None
    iterations: int
    batch_mean: float
    in_flight_mean: float
    queued_mean: float
    queued_max: int
    preemptions: int
    recomputed_tokens: int
    kv_cache_tokens: int | None
    kv_cache_bytes: float
    kv_cache_peak: float
    kv_cache_mean: float
    time_series: tuple[Moment, ...]
    rows: tuple[RequestRow, ...]
    arrivals_s: float
    breakdowns: tuple[LatencyBreakdown, ...] = ()
    time_by_use: tuple[tuple[str, float], ...] = ()
    goal: Goal = Goal()
    good: int = 0
    cached_tokens: int = 0
    sampled: bool = False
    warm_up: int = 0
    queue_growth_per_s: float = 0.0
    unsettled: bool = False
    prefill_replicas: int = 0
    prefill_gpus: int = 0
    sampling_errors: tuple[Sampling, ...] = ()
    moved: Sequence[tuple[MovedNumber, Sequence[ServiceStatistics]]] = field(default=(), repr=False, compare=False)
    scores: Scores | None = field(default=None, repr=False, compare=False)
    kind: str = ""
    case: Case = "known"
    paced: bool = True
    tiers: tuple[TierUse, ...] = ()
    scaling: AutoscalingStatistics | None = None
    prompt_scaling: AutoscalingStatistics | None = None
    adapters: AdapterUse | None = None
    cache_format: str = ""
    stated_per_s: float | None = None
    duration_s: float = 0.0
    parts: tuple[Warning, ...] = ()

    @property
    def offered_per_s(self) -> float:
        """Arrival rate (requests/s); 0 if all requests arrived at once."""
        return (self.requests - 1) / self.arrivals_s if self.arrivals_s > 0 else 0.0

    @property
    def goodput_per_s(self) -> float | None:
        """Goodput (requests/s): rate of requests that meet all limits; None without limits."""
        if not any(limit is not None for limit in self.goal):
            return None
        return self.good / self.span_s if self.span_s > 0 else 0.0

    @property
    def gpus(self) -> int:
        """Number of GPUs of all replicas."""
        return (self.replicas - self.prefill_replicas) * self.gpus_per_replica + self.prefill_replicas * self.prefill_gpus

    @property
    def stable(self) -> bool:
        """Whether arrivals, and not the machine, determine the throughput."""
        return self.paced and self.offered_per_s > 0 and not self.overloaded

    @property
    def overloaded(self) -> bool:
        """Whether the arrival rate exceeds the capacity, so that queue and latencies grow with the length of the run."""
        return self.queue_growth_per_s > 0

    @property
    def answered_per_s(self) -> float:
        """Completion rate during the arrivals (requests/s): arrival rate minus persistent growth."""
        return max(self.offered_per_s - self.queue_growth_per_s, 0.0)

    @property
    def requests_per_s(self) -> float:
        return self.requests / self.span_s if self.span_s > 0 else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Throughput (output tokens/s)."""
        return self.output_tokens / self.span_s if self.span_s > 0 else 0.0

    @property
    def scalings(self) -> tuple[AutoscalingStatistics, ...]:
        """Autoscaling of each part: of prefill replicas, if there are any, and of decode or mixed replicas."""
        return tuple(scaling for scaling in (self.prompt_scaling, self.scaling) if scaling is not None)

    @property
    def tokens_per_s_gpu(self) -> float:
        """Throughput per GPU (output tokens/s); with autoscaling, per GPU on average."""
        if (gpus := math.fsum(scaling.replicas_mean * scaling.gpus for scaling in self.scalings)) > 0:
            return self.tokens_per_s / gpus
        return self.tokens_per_s / max(1, self.gpus)

    @property
    def settled_per_s(self) -> float:
        """Throughput in steady state (requests/s): the arrival rate, if the service keeps up.

        The rate of a short run is too low, because its last requests complete long after the last arrival. The arrival rate is
        that of the file, if it states one, because the rate of few random arrivals differs from it.
        """
        if not self.offered_per_s:
            return self.requests_per_s
        if self.overloaded:
            return self.answered_per_s
        return self.offered_per_s if self.stated_per_s is None else self.stated_per_s

    @property
    def settled_tokens_per_s(self) -> float:
        """Throughput in steady state (output tokens/s)."""
        return self.settled_per_s * self.output_tokens / self.requests if self.requests else 0.0

    def values(self) -> Mapping[str, float]:
        """Return the quantities for `expect:` by name, in SI units; GPU-hours in hours."""
        values = {"requests_per_s": self.requests_per_s, "tokens_per_s": self.tokens_per_s}
        if scalings := self.scalings:
            values |= {name: math.fsum(getattr(scaling, name) for scaling in scalings) for name in ("gpu_hours", "replicas_mean")}
        if (goodput := self.goodput_per_s) is not None:
            values |= {"goodput": goodput}
        for name, spread in (("latency", self.latency), ("ttft", self.first_token), ("tpot", self.each_token)):
            if spread is not None:
                values |= {f"{name}_{part}": getattr(spread, part) for part in STATISTICS}
        return values


def expected_of(services: Sequence[ServiceStatistics]) -> dict[str, float]:
    """Return the quantities of all services for `expect:`: `NAME.ttft_p95`, or `ttft_p95` if the workload is one service.

    Latencies that grow with the length of an overloaded run are infinite.
    """
    return {
        f"{service.name}.{name}" if service.name else name: math.inf if service.overloaded and name.startswith(ENDLESS) else value
        for service in services
        for name, value in service.values().items()
    }


def statistics(log: Log, plan: ServicePlan, exchanged: Case = "known", *, risen: int = 0) -> ServiceStatistics:
    """Return the statistics of a log.

    Args:
        log: log of the service.
        plan: plan of the service.
        exchanged: case of the collectives between GPUs.
        risen: time of the last replica start (fs).

    Raises:
        BrokenInvariant: Some request of the plan did not arrive, did not complete, or is missing in the statistics.
    """
    columns, totals = log.finish(), log.totals
    came, left = (sum(counts.values()) for counts in (log.course.came, log.course.ended))  # integers
    asked, name = len(plan.requests), plan.name
    if {asked} != {came, left, log.requests, log.cut + totals.requests}:
        gone = f"{left:,} left, {log.requests:,} completed, {log.cut:,} are warm-up and {totals.requests:,} are in the statistics"
        raise BrokenInvariant(f"{name or 'the service'}: {came:,} of {asked:,} requests arrived at a replica, {gone}")
    began = totals.first_arrival if totals.requests else log.first_arrival
    span = max(1, log.last_end - began)
    lasted = max(1, log.last_end - log.first_arrival)
    spreads = {name: _pile_spread(pile) for name, pile in totals.piles.items()} if log.sampled else _spreads(columns, log.cut)
    stages_of = [part.stages for part in plan.parts for _ in part.copies]
    copy_of = [copy for copy, stages in enumerate(stages_of) for _ in range(stages)]  # by batch
    batches, blocks = len(plan.copies) * plan.stages, plan.blocks
    cache_tokens = None if blocks is None else blocks * plan.settings.block * plan.stages
    course = _moments(log.course, blocks, batches)
    rows = _rows(columns, copy_of)
    came = log.last_arrival - began
    keeps = balance(log, columns, risen)
    spent = _time_by_use(log, [copy_of.count(copy) for copy in copy_of])
    prompts, arrivals = plan.prompts, plan.keys.arrivals
    load = None if isinstance(arrivals, str) else arrivals
    return ServiceStatistics(
        name=name,
        replicas=len(stages_of),
        gpus_per_replica=len(plan.copies[0]),
        requests=totals.requests,
        prompt_tokens=totals.prompt_tokens,
        output_tokens=totals.output_tokens,
        span_s=span / FEMTO,
        latency=spreads["latency"],
        queueing=spreads["wait"],
        first_token=spreads["ttft"] if totals.output_tokens else None,
        each_token=spreads["tpot"] if totals.piles["tpot"].count else None,
        itl=_pile_spread(log.gaps) if log.gaps.count else None,
        iterations=log.iterations,
        batch_mean=log.worked / max(1, log.iterations),
        in_flight_mean=totals.latencies / span,
        queued_mean=totals.waits / span,
        queued_max=max((moment.queued for moment in course), default=0) if log.sampled else _longest_queue(columns),
        preemptions=log.preemptions,
        recomputed_tokens=log.recomputed_tokens,
        kv_cache_tokens=cache_tokens,
        kv_cache_bytes=plan.token_bytes * (blocks or 0) * plan.settings.block * plan.stages,
        kv_cache_peak=log.course.most / blocks if blocks else 0.0,
        kv_cache_mean=log.course.area / (blocks * batches * lasted) if blocks else 0.0,
        time_series=course,
        rows=rows,
        arrivals_s=came / FEMTO,
        breakdowns=tuple(_breakdowns(log, spreads)),
        time_by_use=spent,
        goal=Goal.of(plan.keys.slo),
        good=totals.good,
        cached_tokens=totals.cached_tokens,
        sampled=log.sampled,
        warm_up=log.cut,
        queue_growth_per_s=keeps.queue_growth_per_s,
        unsettled=keeps.unsettled,
        prefill_replicas=0 if prompts is None else len(prompts.copies),
        prefill_gpus=0 if prompts is None else len(prompts.copies[0]),
        sampling_errors=tuple(_sampling_errors(log)) if came > 0 else (),
        kind=plan.kind,
        case=_service_case(dict(spent), exchanged, plan),
        paced=load is not None and load.clients is None,
        cache_format=plan.cache_format,
        stated_per_s=None if load is None or plan.keys.sessions is not None else load.steady,
        duration_s=lasted / FEMTO,
        parts=() if load is None else load.part_of_load(name, asked, rows[-1].arrival_s - plan.start / FEMTO),
    )


def _service_case(spent: Mapping[str, float], exchanged: Case, plan: ServicePlan) -> Case:
    """Return the case of the kernels, or of the collectives if they are more uncertain and take a relevant share of time."""
    of_network: Case = exchanged if spent.get("communication", 0.0) > COUNTS * math.fsum(spent.values()) else "known"
    return max(of_network, *(part.case for part in plan.parts), key=CASES.index)


def _sampling_errors(log: Log) -> Iterator[Sampling]:
    for measure, series in log.totals.series.items():
        if not series.count:
            continue
        settled = series.estimate(warm_up=0)
        for share, value in ((0.0, settled.mean), *settled.percentiles):
            high = value.high if math.isfinite(value.high) else None
            yield Sampling(measure, round(100 * share), value.value, value.low, high, share in settled.short)


def _spreads(columns: Mapping[str, Column], cut: int) -> dict[str, TimeStatistics]:
    """Return the latencies of requests after the warm-up, if all rows are kept."""
    order = np.argsort(columns["arrival"], kind="stable")[cut:]
    counted = {name: column[order] for name, column in columns.items()}
    return {name: TimeStatistics.of(times / FEMTO) for name, times in times_of(counted).items()}


def _pile_spread(pile: LatencyHistogram) -> TimeStatistics:
    """Return the spread of a histogram, to 0.4 %."""
    p50, p95, p99 = (pile.at(part / 100) / FEMTO for part in PERCENTILES)
    return TimeStatistics(pile.total / max(1, pile.number) / FEMTO, p50, p95, p99, pile.most / FEMTO)


def _breakdowns(log: Log, spreads: Mapping[str, TimeStatistics]) -> Iterator[LatencyBreakdown]:
    """Yield the latency breakdown around each percentile."""
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
                latency_s = sum(sums) / shared_by / FEMTO  # integers
                yield LatencyBreakdown(measure, percentile, value, requests, latency_s, tuple(named(times)))


def _time_by_use(log: Log, stages: Sequence[int]) -> tuple[tuple[str, float], ...]:
    """Return the time of all replicas by use (s), averaged over the batches of a pipeline; `stages`: of each batch's replica."""
    pairs = tuple(zip(log.meters, stages, strict=True))
    sums = [sum(meters.spent[kind] // many for meters, many in pairs) for kind in range(5)]  # integers
    return tuple(
        zip(("prefill", "decode", "communication", "contention", "host"), (total / FEMTO for total in sums), strict=True)
    )


def _rows(columns: Mapping[str, Column], copy_of: Sequence[int]) -> tuple[RequestRow, ...]:
    times = ([time / FEMTO for time in columns[name].tolist()] for name in ("arrival", "begin", "first", "end"))
    parts = zip(*(columns[name].tolist() for name in PARTS), strict=True)
    counts = (columns[name].tolist() for name in ("prompt", "output", "copy"))
    return tuple(
        RequestRow(came, begun, max(first, 0.0), went, prompt, output, copy_of[copy], spent)
        for came, begun, first, went, prompt, output, copy, spent in zip(*times, *counts, parts, strict=True)
    )


def _longest_queue(columns: Mapping[str, Column]) -> int:
    """Return the maximum queue depth; a request that starts at its arrival is not queued."""
    begins, arrivals = columns["begin"].tolist(), columns["arrival"].tolist()
    changes = sorted([*((time, -1) for time in begins), *((time, 1) for time in arrivals)])
    return max(accumulate((change for _, change in changes), initial=0))


def _moments(course: ServiceHistory, blocks: int | None, copies: int) -> tuple[Moment, ...]:
    """Return the state of all replicas at the end of each interval; the cache is its average."""
    cells = [cell for column in (course.came, course.began, course.ended) for cell in column]
    length, moments = 1 << course.bits, []
    waiting = running = 0
    for cell in range(min(cells, default=0), max(cells, default=-1) + 1):
        came, begun, gone = (column.get(cell, 0) for column in (course.came, course.began, course.ended))
        waiting, running = waiting + came - begun, running + begun - gone
        cache = course.taken.get(cell, 0) / (blocks * copies * length) if blocks else 0.0
        moments.append(Moment((cell + 1) * length / FEMTO, waiting, running, cache))
    return tuple(moments)
