"""Results of services: answers, refusals, percentiles with their intervals, waits, and limits.

Goodput counts answers in time: neither refused nor given up, and not after `within`. Requests in a line are there, too. Above p99
are the requests whose answer took longest, one in a hundred.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from hwsim.demand import Cost
from hwsim.families.services.results.notes import BIN, ServiceNotes
from hwsim.families.services.workload.program import ENDLESS, ServiceProgram
from hwsim.records import dataclass
from hwsim.results.batches import PERCENTILES, STATISTICS, Batched, Settled
from hwsim.ticks import FEMTO

GROWING: Final = 0.05  # of those who come: more of them left over is no steady state
MANY: Final = 200  # that come: of fewer nothing is said
FEWEST: Final = 0.005  # of all answers, that are in bins above p99


class Rung(NamedTuple):
    """A resource of the ladder of limits.

    Args:
        kind: capacity, workers or lock.
        per_request_s: seconds of all of it that a request takes, of the service with arrivals that takes most.
        limit_per_s: requests a second of that service that it allows, the others in proportion.
        utilisation: at the rates of the file; None where only the run tells.
        used: part of it that was used in the run; None of workers and locks.
    """

    name: str
    kind: str
    service: str
    per_request_s: float
    limit_per_s: float
    utilisation: float | None
    used: float | None

    @property
    def called(self) -> str:
        """Its name in tables and titles."""
        return {"workers": f"workers of {self.name}", "lock": f"lock {self.name}"}.get(self.kind, self.name)


class Wait(NamedTuple):
    """A resource that requests waited for, and how long in the mean; "work" is the time that they take alone."""

    what: str
    seconds: float


class Stretch(NamedTuple):
    """A part of the run: its end, answers a second, percentiles of those answers, requests there and in the line in the mean."""

    until_s: float
    answers_per_s: float
    p50_s: float
    p99_s: float
    there: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of a service, or of one of its choices.

    Args:
        name: "web", or "store.small".
        span_s: from the first request to the last answer, or to the last arrival in a run that never settles.
        came: requests, from outside and from other services.
        outside: those from outside. offered_per_s: their rate, from the first to the last.
        served, refused, failed, wasted, dropped: answered; sent away at once; given up by what it asked; worked on to the end in
            vain; thrown away at its turn because its caller had given up.
        timeouts: attempts that a caller gave up.  asked_again: attempts that were not the first.
        good: answers that were in time.
        latency: None where the run has no steady state, or nothing was answered.
        growth_per_s: requests by which those there grow a second; 0 in a steady state.
        waits: means of all answers; waits_above: means of those above p99.
        there_mean, there_most, waiting_mean, waiting_most: requests at once; of them, in the line for a worker.
        closed: it is asked by clients that wait for their answers.  steady: requests come at one rate all the time, and nothing
            happens to services and parts meanwhile.
        stay_s: seconds that a request was there in the mean, of all that have left, whatever became of them.
        course: stretches of the run.
    """

    name: str
    span_s: float
    came: int
    outside: int
    offered_per_s: float
    served: int
    refused: int
    failed: int
    wasted: int
    dropped: int
    timeouts: int
    asked_again: int
    good: int
    latency: Settled | None
    growth_per_s: float
    waits: tuple[Wait, ...]
    waits_above: tuple[Wait, ...]
    there_mean: float
    there_most: int
    waiting_mean: float
    waiting_most: int
    closed: bool
    course: tuple[Stretch, ...]
    workers: int | None = None
    left: int = 0
    steady: bool = True
    stay_s: float = 0.0

    @property
    def is_warm_up(self) -> bool:
        """Whether every answer is of the warm-up, so that none has a time."""
        return self.served > 0 and self.latency is None and self.growth_per_s <= 0

    @property
    def keeps_up(self) -> bool:
        """Whether arrivals, and not the machine, set its rate."""
        return not self.closed and self.offered_per_s > 0 and self.growth_per_s <= 0

    @property
    def per_s(self) -> float:
        """Answers a second, late ones included."""
        return self.served / self.span_s if self.span_s > 0 else 0.0

    @property
    def goodput(self) -> float:
        """Answers in time, a second."""
        return self.good / self.span_s if self.span_s > 0 else 0.0

    def values(self) -> Mapping[str, float]:
        """Quantities for `expect:`, by name, in SI units."""
        values = {"requests_per_s": self.per_s, "goodput": self.goodput, "refused": _part(self.refused, self.came)}
        values |= {"failed": _part(self.failed, self.came), "wasted": _part(self.wasted, self.came)}
        values |= {"there_mean": self.there_mean}
        settled = self.latency
        if self.growth_per_s > 0:
            return values | dict.fromkeys((f"latency_{name}" for name in STATISTICS), math.inf)
        if settled is not None:
            values |= {"latency_mean": settled.mean.value, "latency_max": settled.most}
            values |= {f"latency_{name}": settled.at(share).value for name, share in PERCENTILES.items()}
        return values


def _part(some: int, of: int) -> float:
    return some / of if of else 0.0


class Statement(NamedTuple):
    """A statement of a service.

    Args:
        seconds: it takes alone, in the mean; times: as often as a request of the service does it, in the mean.
        cost: behind it.  drawn: it differs from request to request.
    """

    service: str
    name: str
    device: str
    seconds: float
    times: float
    drawn: bool
    cost: Cost | None


class Held(NamedTuple):
    """A cache of a service and its hit rate.

    Args:
        hit: part of the lookups that find it when it is full; full: lookups until then, since it was empty.
    """

    service: str
    entries: int
    of: int
    zipf: float
    hit: float
    full: float


@dataclass(frozen=True, slots=True)
class Services:
    """All services of a run.

    Args:
        answers: each service's, and after it its choices'.
        ladder: limits, the lowest first.
        alone: seconds that a request of each service takes if it never waits.
        end_s: when the last request was over.
        stuck: requests that wait for each other, in words; "" if none do.
        never: services whose requests ask on without an end.
        caches: those whose hit rate follows from what they hold.
    """

    answers: tuple[Answers, ...]
    ladder: tuple[Rung, ...]
    alone: tuple[tuple[str, float], ...]
    end_s: float
    statements: tuple[Statement, ...] = ()
    stuck: str = ""
    never: tuple[str, ...] = ()
    caches: tuple[Held, ...] = ()


def expected_of(services: Services) -> dict[str, float]:
    """Quantities of all services for `expect:`: `web.latency_p99`."""
    return {f"{answer.name}.{name}": value for answer in services.answers for name, value in answer.values().items()}


def answers_of(
    notes: ServiceNotes,
    service: ServiceProgram,
    resources: Sequence[str],
    *,
    closed: bool,
    steady: bool,
    overloaded: bool,
    utilisation: float | None,
) -> list[Answers]:
    """The answers of a service, and of each of its choices.

    Args:
        resources: names of what was waited for, by number.
        steady: as of `Answers`.
        overloaded: whether more of them come than the limits allow.
        utilisation: the busiest resource's.
    """
    notes.flush()
    begin, end = max(notes.first, 0), max(notes.end, notes.last_came, 0)
    span = max(end - begin, 0) / FEMTO
    between = (notes.last_came - notes.first) / FEMTO if notes.came_count > 1 else 0.0
    growth = _growth(notes) if steady and not closed else 0.0
    if overloaded and not growth and between > 0 and notes.came_count >= MANY:
        growth = notes.most / between
    settled = _settled(notes, notes.answers, utilisation) if not growth else None
    name = service.name
    total = Answers(
        name=name,
        span_s=span,
        came=notes.entered,
        outside=notes.came_count,
        offered_per_s=(notes.came_count - 1) / between if between > 0 else 0.0,
        served=notes.answers.count + notes.early,
        refused=notes.refused,
        failed=notes.failed,
        wasted=notes.wasted,
        dropped=notes.dropped,
        timeouts=notes.timeouts,
        asked_again=notes.asked_again,
        good=notes.good,
        latency=settled,
        growth_per_s=growth,
        waits=_waits(notes, resources, 0.0),
        waits_above=() if settled is None else _waits(notes, resources, settled.at(0.99).value, settled.most),
        there_mean=notes.area / FEMTO / span if span > 0 else 0.0,
        there_most=notes.most,
        waiting_mean=notes.line_area / FEMTO / span if span > 0 else 0.0,
        waiting_most=notes.line_most,
        closed=closed,
        course=_course(notes),
        workers=None if service.workers == ENDLESS else service.workers,
        left=notes.here,
        steady=steady,
        stay_s=notes.stay / FEMTO / max(notes.entered - notes.here, 1),
    )
    return [
        total,
        *(
            _of_choice(notes, total, f"{name}.{choice}", each)
            for choice, each in zip(service.choices, notes.by_choice, strict=True)
        ),
    ]


def _settled(notes: ServiceNotes, batched: Batched, utilisation: float | None = None) -> Settled | None:
    """Times of the answers after the warm-up; None if there is none."""
    if not batched.count:
        return None
    settled = batched.estimate(warm_up=0 if notes.since >= 0 else None, utilisation=utilisation)
    return replace(settled, dropped=settled.dropped + notes.early)


def _of_choice(notes: ServiceNotes, total: Answers, name: str, batched: Batched) -> Answers:
    settled = None if total.growth_per_s else _settled(notes, batched)
    if settled is not None and total.latency is not None and total.latency.short:
        settled = replace(settled, short=tuple(sorted({*settled.short, *total.latency.short})))
    return Answers(
        name, total.span_s, batched.count, 0, 0.0, batched.count, 0, 0, 0, 0, 0, 0, batched.count, settled, total.growth_per_s,
        (), (), 0.0, 0, 0.0, 0, total.closed, (), steady=total.steady,
    )  # fmt: skip


def _growth(notes: ServiceNotes) -> float:
    """Requests by which those there grow a second, while requests come; 0 in what may be a steady state."""
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


def _waits(notes: ServiceNotes, resources: Sequence[str], above: float, most: float = math.inf) -> tuple[Wait, ...]:
    """Mean waits of the answers whose bin lies above a number of seconds, the longest first.

    most: seconds of the longest answer after the warm-up; longer ones are of the warm-up.
    """
    first, last = (int(np.array([each], np.float64).view(np.int64)[0]) >> BIN if each > 0 else -1 for each in (above, most))
    bins = {at: each for at, each in notes.above.items() if at <= last}
    everything = sum(bin_.count for bin_ in bins.values())  # integers
    if sum(each.count for at, each in bins.items() if at > first) < FEWEST * everything:  # integers
        first -= 1  # most of those above are in its bin
    count = 0
    waits: dict[int, int] = {}
    for at, each in bins.items():
        if at > first:
            count += each.count
            for resource, time in each.waits.items():
                waits[resource] = waits.get(resource, 0) + time
    if not count:
        return ()
    total = sum(waits.values())  # integers
    spent = math.fsum(each.spent for at, each in bins.items() if at > first)  # whatever the order of the bins
    rows = [Wait(resources[resource], time / FEMTO / count) for resource, time in waits.items()]
    rows.append(Wait("work", max(0.0, spent / count - total / FEMTO / count)))
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _course(notes: ServiceNotes) -> tuple[Stretch, ...]:
    stretches, before = [], (0, 0)
    width = notes.width / FEMTO
    for number, window in enumerate(notes.windows[:-1]):
        inside, waiting = window.there - before[0], window.waiting - before[1]
        before = window.there, window.waiting
        bins = window.answers
        stretches.append(
            Stretch(
                until_s=(number + 1) * width,
                answers_per_s=len(bins) / width,
                p50_s=bins.percentile(0.5),
                p99_s=bins.percentile(0.99),
                there=inside / notes.width,
                waiting=waiting / notes.width,
            )
        )
    return tuple(stretches)
