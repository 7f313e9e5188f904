"""Results of services for checks, warnings and expectations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hwsim.families.services.results.responses import Services, expected_of
from hwsim.families_interface import FamilyResult, Server
from hwsim.results.checks import ROUNDING
from hwsim.results.result import Result
from hwsim.results.steady_state import overloaded
from hwsim.spec import Warning


@dataclass(frozen=True)
class ServicesOutcome(FamilyResult):
    """The services of a run."""

    found: Services
    said: tuple[Warning, ...] = ()  # warnings noted before the run ended
    has_ops = False
    server: Server = "program"

    @property
    def endless(self) -> bool:  # type: ignore[override]
        """Whether requests deadlock, or cause endless further requests."""
        return bool(self.found.deadlock or self.found.endless)

    def expected(self) -> Mapping[str, float]:
        """Return the quantities of each service and of its branches."""
        return expected_of(self.found)

    def warnings(self) -> Iterator[Warning]:
        """Yield warnings: probable mistakes, deadlocks and overloaded services."""
        yield from self.said
        if self.found.deadlock:
            yield Warning("service-deadlock", f"requests never complete: {self.found.deadlock}")
        for answers in self.found.answers:
            if answers.queue_growth_per_s > 0:
                yield overloaded(answers.name, answers.queue_growth_per_s)

    def half(self, result: Result) -> float:
        """Return the relative half width of the interval of the service time."""
        from hwsim.families.services.results.uncertainty import work_interval

        return work_interval(result).reach

    def violations(self) -> Iterator[str]:
        """Yield violations of conservation of requests and of Little's law over the whole run."""
        for answer in self.found.answers:
            gone = answer.completed + answer.refused + answer.failed + answer.wasted + answer.dropped  # integers
            if answer.arrived != gone + answer.unfinished:
                yield f"{answer.name}: {answer.arrived:,} requests arrived, {gone:,} left and {answer.unfinished:,} are in flight"
            area, stayed = answer.in_flight_mean * answer.span_s, answer.stay_s * gone
            if not (stayed <= area * (1 + ROUNDING) and (answer.unfinished or area <= stayed * (1 + ROUNDING))):
                yield f"{answer.name}: integral of requests in flight {area} s, sum of their times in the system {stayed} s"
            times = answer.latency
            if times is None:
                continue
            if times.count + times.dropped != answer.completed:
                yield f"{answer.name}: {answer.completed:,} responses, {times.count:,} with a latency, {times.dropped:,} left out"
            everyone = not times.dropped and answer.completed == answer.arrived and answer.stay_s
            if everyone and not math.isclose(times.mean.value, answer.stay_s, rel_tol=ROUNDING):
                yield f"{answer.name}: latency {times.mean.value} s on average, but time in the system {answer.stay_s} s"
            if times.most * (1 + ROUNDING) < times.mean.value:
                yield f"{answer.name}: maximum latency {times.most} s, average {times.mean.value} s"
