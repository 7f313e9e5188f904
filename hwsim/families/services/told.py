"""What came of services."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hwsim.doors import Server, Told
from hwsim.families.services.results.answers import Services, expected_of
from hwsim.results.checks import ROUNDING
from hwsim.results.result import Result
from hwsim.results.unsteady import overloaded
from hwsim.spec import Warning


@dataclass(frozen=True)
class Answered(Told):
    """The services of a run."""

    found: Services
    said: tuple[Warning, ...] = ()  # what is probably not meant
    has_ops = False
    server: Server = "program"

    @property
    def endless(self) -> bool:  # type: ignore[override]
        """Whether requests wait for each other for ever, or ask on without an end."""
        return bool(self.found.stuck or self.found.never)

    def expected(self) -> Mapping[str, float]:
        """Quantities of each service, and of its choices."""
        return expected_of(self.found)

    def warnings(self) -> Iterator[Warning]:
        """What is probably not meant, and services that do not keep up."""
        yield from self.said
        if self.found.stuck:
            yield Warning("services-stuck", f"never answered: {self.found.stuck}")
        for answers in self.found.answers:
            if answers.growth_per_s > 0:
                yield overloaded(answers.name, answers.growth_per_s)

    def half(self, result: Result) -> float:
        """Of the work of all statements."""
        from hwsim.families.services.results.unsure import work_interval

        return work_interval(result).half

    def breaches(self) -> Iterator[str]:
        """Requests that are nowhere, or there in the mean but for their rate times their time (Little), over the whole run."""
        for answer in self.found.answers:
            gone = answer.served + answer.refused + answer.failed + answer.wasted + answer.dropped  # integers
            if answer.came != gone + answer.left:
                yield f"{answer.name}: {answer.came:,} requests came, {gone:,} have gone and {answer.left:,} are there"
            area, stayed = answer.there_mean * answer.span_s, answer.stay_s * gone
            if not (stayed <= area * (1 + ROUNDING) and (answer.left or area <= stayed * (1 + ROUNDING))):
                yield f"{answer.name}: requests are there for {area} s together, and stay {stayed} s"
            times = answer.latency
            if times is None:
                continue
            if times.count + times.dropped != answer.served:
                yield f"{answer.name}: {answer.served:,} answers, {times.count:,} with a time and {times.dropped:,} left out"
            everyone = not times.dropped and answer.served == answer.came and answer.stay_s
            if everyone and not math.isclose(times.mean.value, answer.stay_s, rel_tol=ROUNDING):
                yield f"{answer.name}: a response takes {times.mean.value} s on average, but its request stays {answer.stay_s} s"
            if times.most * (1 + ROUNDING) < times.mean.value:
                yield f"{answer.name}: the longest answer takes {times.most} s, the mean {times.mean.value} s"
