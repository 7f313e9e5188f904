"""Results of services: responses, rejections, latency percentiles with intervals, waits, and throughput limits.

Goodput counts responses that are neither rejected nor timed out, with a latency of at most `within`. Requests in flight include
queued ones. The waits above p99 are those of the slowest 1 % of the requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.families.services.results.statistics import BIN, ServiceNotes
from hwsim.families.services.workload.program import ENDLESS, ServiceProgram
from hwsim.records import dataclass
from hwsim.results.batches import PERCENTILES, STATISTICS, BatchedSamples, SteadyStatistics
from hwsim.ticks import FEMTO

GROWING: Final = 0.05  # share of arrivals by which the queue may grow in a steady state
MANY: Final = 200  # requests below which no growth of the queue is reported
FEWEST: Final = 0.005  # smallest share of the responses in the bins above p99
SERVICE_TIME, RETRYING, GIVEN_UP = "service_time", "retry_backoff", "timed_out_attempts"  # parts of a latency in JSON


class ThroughputLimit(NamedTuple):
    """A resource and the throughput limit that it sets.

    Args:
        kind: capacity, workers or lock.
        service: service with arrivals that needs most of the resource per request.
        service_demand_s: service demand: time of the entire resource that a request of this service takes (s).
        limit_per_s: maximum rate of this service (1/s), with the rates of the others in proportion.
        utilization: utilization at the arrival rates of the file; None if only a run determines them.
        measured_utilization: utilization in the run; None for workers and locks.
    """

    name: str
    kind: str
    service: str
    service_demand_s: float
    limit_per_s: float
    utilization: float | None
    measured_utilization: float | None

    @property
    def called(self) -> str:
        """Name in figures and titles."""
        return {"workers": f"workers of {self.name}", "lock": f"lock {self.name}"}.get(self.kind, self.name)


class ServiceWait(NamedTuple):
    """A resource, and the average time that requests waited for it (s); `SERVICE_TIME` is the time without waiting."""

    what: str
    seconds: float


class ServiceInterval(NamedTuple):
    """An interval of the run: its end, responses per second, their percentiles, average requests in flight and queued."""

    until_s: float
    throughput_per_s: float
    p50_s: float
    p99_s: float
    in_flight: float
    queued: float


@dataclass(frozen=True, slots=True)
class ServiceResponses:
    """The responses of a service, or of one branch of its `choose`.

    Args:
        name: name of the service ("web") or branch ("store.small").
        span_s: time from the first request to the last response, or to the last arrival if the run never settles (s).
        arrived: number of requests, from outside and from other services.
        external: number of requests from outside.
        offered_per_s: arrival rate of requests from outside (1/s).
        completed: number of responses.
        refused: requests rejected by a full queue.
        failed: requests of which a call timed out, was rejected or failed.
        wasted: requests completed after their caller timed out.
        dropped: queued requests dropped because their caller had timed out.
        timeouts: attempts that timed out.
        retries: retries.
        good: responses within the latency limit.
        latency: latencies; None without a steady state or without responses.
        queue_growth_per_s: growth of the number of requests in flight (1/s); 0 in a steady state.
        waits: average waits of all responses.
        waits_above: average waits of the responses above p99.
        in_flight_mean: average number of requests in flight.
        in_flight_max: maximum number of requests in flight.
        queued_mean: average number of requests queued for a worker.
        queued_max: maximum number of requests queued for a worker.
        closed_loop: whether closed-loop clients send the requests.
        time_series: intervals of the run.
        workers: number of workers; None: unlimited.
        unfinished: requests still in flight at the end.
        steady: whether the arrival rate is constant and no event occurs during the run.
        stay_s: average time in the system, over all requests that left it (s).
    """

    name: str
    span_s: float
    arrived: int
    external: int
    offered_per_s: float
    completed: int
    refused: int
    failed: int
    wasted: int
    dropped: int
    timeouts: int
    retries: int
    good: int
    latency: SteadyStatistics | None
    queue_growth_per_s: float
    waits: tuple[ServiceWait, ...]
    waits_above: tuple[ServiceWait, ...]
    in_flight_mean: float
    in_flight_max: int
    queued_mean: float
    queued_max: int
    closed_loop: bool
    time_series: tuple[ServiceInterval, ...]
    workers: int | None = None
    unfinished: int = 0
    steady: bool = True
    stay_s: float = 0.0

    @property
    def is_warm_up(self) -> bool:
        """Whether all responses belong to the warm-up, so that there are no latencies."""
        return self.completed > 0 and self.latency is None and self.queue_growth_per_s <= 0

    @property
    def stable(self) -> bool:
        """Whether the throughput equals the arrival rate, in an open loop."""
        return not self.closed_loop and self.offered_per_s > 0 and self.queue_growth_per_s <= 0

    @property
    def throughput_per_s(self) -> float:
        """Throughput: responses per second, including late ones."""
        return self.completed / self.span_s if self.span_s > 0 else 0.0

    @property
    def goodput_per_s(self) -> float:
        """Goodput: responses per second within the latency limit."""
        return self.good / self.span_s if self.span_s > 0 else 0.0

    def values(self) -> Mapping[str, float]:
        """Return the quantities for `expect:` by name, in SI units."""
        values = {"requests_per_s": self.throughput_per_s, "goodput": self.goodput_per_s, "in_flight_mean": self.in_flight_mean}
        values |= {name: _share(getattr(self, name), self.arrived) for name in ("refused", "failed", "wasted")}
        settled = self.latency
        if self.queue_growth_per_s > 0:
            return values | dict.fromkeys((f"latency_{name}" for name in STATISTICS), math.inf)
        if settled is not None:
            values |= {"latency_mean": settled.mean.value, "latency_max": settled.most}
            values |= {f"latency_{name}": settled.at(share).value for name, share in PERCENTILES.items()}
        return values


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


class Statement(NamedTuple):
    """A statement of a service.

    Args:
        seconds: average service time without waiting (s).
        times: average number of executions per request of the service.
        random: whether its time is random.
        cost: cost of its op.
    """

    service: str
    name: str
    device: str
    seconds: float
    times: float
    random: bool
    cost: Cost | None


class LruCacheResult(NamedTuple):
    """A cache of a service, whose hit rate follows from its capacity.

    Args:
        entries: capacity in items.
        distinct_items: number of distinct items.
        zipf: exponent of the popularity.
        hit_rate: hit rate when it is full.
        lookups_to_fill: lookups until it is full, from empty.
    """

    service: str
    entries: int
    distinct_items: int
    zipf: float
    hit_rate: float
    lookups_to_fill: float


@dataclass(frozen=True, slots=True)
class Services:
    """All services of a run.

    Args:
        answers: responses of each service, followed by those of its branches.
        throughput_limits: throughput limits, the lowest first.
        unloaded_s: service time of a request of each service without waiting (s).
        end_s: time at which the last request ended (s).
        statements: statements of all services.
        stuck: description of requests that wait for each other (deadlock); "" without a deadlock.
        endless: services whose requests cause endless further requests.
        caches: caches whose hit rate follows from their capacity.
    """

    answers: tuple[ServiceResponses, ...]
    throughput_limits: tuple[ThroughputLimit, ...]
    unloaded_s: tuple[tuple[str, float], ...]
    end_s: float
    statements: tuple[Statement, ...] = ()
    deadlock: str = ""
    endless: tuple[str, ...] = ()
    caches: tuple[LruCacheResult, ...] = ()


def expected_of(services: Services) -> dict[str, float]:
    """Return the quantities of all services for `expect:`, such as `web.latency_p99`."""
    return {f"{answer.name}.{name}": value for answer in services.answers for name, value in answer.values().items()}


def answers_of(
    notes: ServiceNotes,
    service: ServiceProgram,
    resources: Sequence[str],
    *,
    closed: bool,
    steady: bool,
    overloaded: bool,
    utilization: float | None,
) -> list[ServiceResponses]:
    """Return the results of a service, and of each branch of its `choose`.

    Args:
        resources: names of the causes of waits, by number.
        closed: see `ServiceResponses`.
        steady: see `ServiceResponses`.
        overloaded: whether the arrival rate exceeds a limit.
        utilization: utilization of the busiest resource; None if unknown.
    """
    notes.flush()
    begin, end = max(notes.first, 0), max(notes.end, notes.last_came, 0)
    span = max(end - begin, 0) / FEMTO
    between = (notes.last_came - notes.first) / FEMTO if notes.came_count > 1 else 0.0
    growth = _growth(notes) if steady and not closed else 0.0
    if overloaded and not growth and between > 0 and notes.came_count >= MANY:
        growth = notes.most / between
    settled = _settled(notes, notes.answers, utilization) if not growth else None
    name = service.name
    total = ServiceResponses(
        name=name,
        span_s=span,
        arrived=notes.entered,
        external=notes.came_count,
        offered_per_s=(notes.came_count - 1) / between if between > 0 else 0.0,
        completed=notes.answers.count + notes.early,
        refused=notes.refused,
        failed=notes.failed,
        wasted=notes.wasted,
        dropped=notes.dropped,
        timeouts=notes.timeouts,
        retries=notes.retries,
        good=notes.good,
        latency=settled,
        queue_growth_per_s=growth,
        waits=_waits(notes, resources, 0.0),
        waits_above=() if settled is None else _waits(notes, resources, settled.at(0.99).value, settled.most),
        in_flight_mean=notes.area / FEMTO / span if span > 0 else 0.0,
        in_flight_max=notes.most,
        queued_mean=notes.line_area / FEMTO / span if span > 0 else 0.0,
        queued_max=notes.line_most,
        closed_loop=closed,
        time_series=_course(notes),
        workers=None if service.workers == ENDLESS else service.workers,
        unfinished=notes.here,
        steady=steady,
        stay_s=notes.stay / FEMTO / max(notes.entered - notes.here, 1),
    )
    return [
        total,
        *(
            _of_choice(notes, total, f"{name}.{choice}", batched)
            for choice, batched in zip(service.choices, notes.by_choice, strict=True)
        ),
    ]


def _settled(notes: ServiceNotes, batched: BatchedSamples, utilization: float | None = None) -> SteadyStatistics | None:
    """Return the latencies after the warm-up, or None without responses."""
    if not batched.count:
        return None
    settled = batched.estimate(warm_up=0 if notes.since >= 0 else None, utilization=utilization)
    return replace(settled, dropped=settled.dropped + notes.early)


def _of_choice(notes: ServiceNotes, total: ServiceResponses, name: str, batched: BatchedSamples) -> ServiceResponses:
    settled = None if total.queue_growth_per_s else _settled(notes, batched)
    if settled is not None and total.latency is not None and total.latency.short:
        settled = replace(settled, short=tuple(sorted({*settled.short, *total.latency.short})))
    return ServiceResponses(
        name, total.span_s, batched.count, 0, 0.0, batched.count, 0, 0, 0, 0, 0, 0, batched.count, settled,
        total.queue_growth_per_s, (), (), 0.0, 0, 0.0, 0, total.closed_loop, (), steady=total.steady,
    )  # fmt: skip


def _growth(notes: ServiceNotes) -> float:
    """Return the growth of the requests in flight (1/s) while requests arrive; 0 if a steady state is possible."""
    windows = [window.there for window in notes.windows[:-1]]
    until = notes.last_came // notes.width
    windows = windows[:until]
    if len(windows) < 16 or notes.came_count < MANY:
        return 0.0
    quarter = len(windows) // 4
    edges = [0, *windows]

    def mean(first: int, last: int) -> float:
        return (edges[last] - edges[first]) / ((last - first) * notes.width)

    parts = [mean(index * quarter, (index + 1) * quarter) for index in range(4)]
    slope = (parts[3] - parts[1]) / (2 * quarter * notes.width / FEMTO)
    rate = notes.came_count / (notes.last_came / FEMTO)
    rising = parts[0] < parts[1] < parts[2] < parts[3]
    return slope if rising and slope > GROWING * rate else 0.0


def _waits(notes: ServiceNotes, resources: Sequence[str], above: float, most: float = math.inf) -> tuple[ServiceWait, ...]:
    """Return the average waits of the responses in the bins above a latency, the longest first.

    Args:
        above: latency (s).
        most: longest latency after the warm-up (s); longer ones belong to the warm-up.
    """
    first, last = (int(np.array([end], np.float64).view(np.int64)[0]) >> BIN if end > 0 else -1 for end in (above, most))
    bins = {number: bin_ for number, bin_ in notes.above.items() if number <= last}
    total_count = sum(bin_.count for bin_ in bins.values())  # integers
    if sum(bin_.count for number, bin_ in bins.items() if number > first) < FEWEST * total_count:  # integers
        first -= 1  # the bin of p99 contains most of the slower responses
    count = 0
    waits: dict[int, int] = {}
    for number, bin_ in bins.items():
        if number > first:
            count += bin_.count
            for resource, time in bin_.waits.items():
                waits[resource] = waits.get(resource, 0) + time
    if not count:
        return ()
    total = sum(waits.values())  # integers
    spent = math.fsum(bin_.spent for number, bin_ in bins.items() if number > first)  # exact in any order of the bins
    rows = [ServiceWait(resources[resource], time / FEMTO / count) for resource, time in waits.items()]
    rows.append(ServiceWait(SERVICE_TIME, max(0.0, spent / count - total / FEMTO / count)))
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _course(notes: ServiceNotes) -> tuple[ServiceInterval, ...]:
    stretches, before = [], (0, 0)
    width = notes.width / FEMTO
    for number, window in enumerate(notes.windows[:-1]):
        inside, waiting = window.there - before[0], window.waiting - before[1]
        before = window.there, window.waiting
        bins = window.answers
        stretches.append(
            ServiceInterval(
                until_s=(number + 1) * width,
                throughput_per_s=len(bins) / width,
                p50_s=bins.percentile(0.5),
                p99_s=bins.percentile(0.99),
                in_flight=inside / notes.width,
                queued=waiting / notes.width,
            )
        )
    return tuple(stretches)
