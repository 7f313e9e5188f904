"""The steady state of services in a run: intervals of percentiles, growing queues, and causes of waits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hwsim.api import Run
from hwsim.formats import format_count, percent
from hwsim.records import dataclass
from hwsim.results.batches import Known
from hwsim.results.services.answers import Answers, Services
from hwsim.results.serving import ServiceStatistics
from hwsim.results.serving_errors import sure_of
from hwsim.views.serving.parts import limited_by

MOST: Final = 100_000  # requests of a program's service that are tried
TURNOVERS: Final = 10  # times that the requests which are there are all replaced, at least, in a run that tells of a steady state


@dataclass(frozen=True, slots=True)
class State:
    """A service in one run.

    Args:
        requests: that came; there: at once, in the mean, at the rate at which they came.
        counted: where the file says how many come, as `--set` has it.
        known: by quantity of `expect:`: how far, and whether the run is too short for it.
        grows: why there is no steady state; "" if there may be one.
        where: for each quantity, the cause of most of its time, in words.
        needed: requests that would do. most: requests that are tried.
        halves: how far off such services are, by what their quantities begin with: half widths, as logarithms.
        excess: part by which more comes than is answered, where it grows.
    """

    name: str
    requests: int
    there: float
    counted: str
    known: dict[str, tuple[Known, bool]]
    grows: str
    where: dict[str, str]
    needed: int | None = None
    most: int = 5_000
    halves: tuple[tuple[str, float], ...] = ()
    excess: float = 0.0

    @property
    def brief(self) -> bool:
        """Whether the run was over before those who were there at once had been replaced often enough."""
        return self.requests < TURNOVERS * self.there

    def more(self, quantities: list[str]) -> int | None:
        """Requests with which a run could tell these quantities; None if this one can, or no run that is made here."""
        short = [self.known[each] for each in quantities if each in self.known and self.known[each][1]]
        if self.grows or not self.counted or not (self.brief or short):
            return None
        wanted = math.ceil(1.2 * TURNOVERS * self.there) if self.brief else 0
        wanted = max(wanted, self.needed or 0, 2 * self.requests) if short else wanted
        return min(wanted, self.most) if min(wanted, self.most) > self.requests else None


def states(run: Run) -> Iterator[State]:
    """The services of a run."""
    for service in run.serving:
        yield _of_model(service)
    if run.services is not None:
        for answers in run.services.answers:
            yield _of_program(run.services, answers)


def utilisation(run: Run) -> tuple[float, str]:
    """(part of the busiest capacity that those who come take, its name); 0 where only a run tells."""
    rungs = () if run.services is None else run.services.ladder
    return max(((rung.utilisation or 0.0, rung.name) for rung in rungs if rung.kind == "capacity"), default=(0.0, ""))


def _of_model(service: ServiceStatistics) -> State:
    start = f"{service.name}." if service.name else ""
    knowns = {}
    for each in service.sampling:
        part = f"p{each.percentile}" if each.percentile else "mean"
        high = math.inf if each.high_s is None else each.high_s
        knowns[f"{start}{each.measure}_{part}"] = Known(each.value_s, each.low_s, high), each.short
    grows, excess = "", 0.0
    if service.overloaded:
        came, answered = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
        grows = f"{came} requests/s come, {answered} are answered"
        excess = service.grows_per_s / max(service.answered_per_s, 1e-300)
    where = {
        f"{start}{each.measure}_p{each.percentile}": limited_by(each) for each in service.where if each.parts and each.mean_s > 0
    }
    place = f"workload.jobs.{service.name}.infer" if service.name else "workload.infer"
    in_system = service.offered_per_s * service.latency.mean
    counted = f"{place}.requests" if service.came_s > 0 else ""
    halves = tuple((f"{start}{each.measure}", each.half) for each in sure_of(service))
    return State(service.name, service.requests, in_system, counted, knowns, grows, where, halves=halves, excess=excess)


def _of_program(services: Services, answers: Answers) -> State:
    """A service of `services:`, or one of its choices."""
    settled = answers.latency
    knowns = {}
    if settled is not None:
        knowns[f"{answers.name}.latency_mean"] = settled.mean, 0.0 in settled.short
        for share, percentile in settled.percentiles:
            knowns[f"{answers.name}.latency_p{100 * share:.0f}"] = percentile, share in settled.short
    full = next((rung for rung in services.ladder if rung.kind == "capacity" and (rung.utilisation or 0.0) >= 1), None)
    grows, excess = services.stuck, math.inf if services.stuck else 0.0
    if full is not None and answers.outside and answers.offered_per_s > full.limit_per_s:
        limit, came = format_count(full.limit_per_s, 4), format_count(answers.offered_per_s, 4)
        grows = f"{full.name} does {limit} requests/s at most, {came} come"
        excess = answers.offered_per_s / full.limit_per_s - 1.0
    elif answers.growth_per_s > 0:
        excess = answers.growth_per_s / max(answers.offered_per_s - answers.growth_per_s, 1e-300)
        grows = f"those there grow by {format_count(answers.growth_per_s)} requests a second"
    total = math.fsum(wait.seconds for wait in answers.waits_above)
    where = {}
    if total > 0:
        first = answers.waits_above[0]
        cause = "its own work" if first.what == "work" else f"waits for {first.what}"
        where[f"{answers.name}.latency_p99"] = f"{percent(first.seconds / total, '.0f')} of the time of those above it: {cause}"
    job, dot, _ = answers.name.rpartition(".")
    counted = f"workload.jobs.{job}.requests" if dot else "workload.requests"
    counted = "" if answers.closed or not answers.outside or not answers.steady else counted  # more dilute what happens
    needed = None if settled is None else settled.needed
    return State(answers.name, answers.outside, answers.there_mean, counted, knowns, grows, where, needed, MOST, excess=excess)
