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
        for each in self.found.answers:
            gone = each.served + each.refused + each.failed + each.wasted + each.dropped  # integers
            if each.came != gone + each.left:
                yield f"{each.name}: {each.came:,} requests came, {gone:,} have gone and {each.left:,} are there"
            area, stayed = each.there_mean * each.span_s, each.stay_s * gone
            if not (stayed <= area * (1 + ROUNDING) and (each.left or area <= stayed * (1 + ROUNDING))):
                yield f"{each.name}: requests are there for {area} s together, and stay {stayed} s"
            times = each.latency
            if times is None:
                continue
            if times.count + times.dropped != each.served:
                yield f"{each.name}: {each.served:,} answers, {times.count:,} with a time and {times.dropped:,} left out"
            everyone = not times.dropped and each.served == each.came and each.stay_s
            if everyone and not math.isclose(times.mean.value, each.stay_s, rel_tol=ROUNDING):
                yield f"{each.name}: a response takes {times.mean.value} s on average, but its request stays {each.stay_s} s"
            if times.most * (1 + ROUNDING) < times.mean.value:
                yield f"{each.name}: the longest answer takes {times.most} s, the mean {times.mean.value} s"
