"""What came of served models."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hwsim.doors import Server, Told
from hwsim.families.serving.results.statistics import ServiceStatistics, expected_of
from hwsim.formats import format_count
from hwsim.results.checks import ROUNDING
from hwsim.results.invariants import numbers
from hwsim.results.unsteady import overloaded
from hwsim.spec import Warning

FILLS: Final = "as they do while a service fills: too few to say whether it keeps up, and with more of them times are longer"
STARTS: Final = "as they do while copies start: too few come after that to say whether it keeps up"


@dataclass(frozen=True)
class Served(Told):
    """The served models of a run."""

    found: tuple[ServiceStatistics, ...]
    of_kernels = True
    server: Server = "model"

    @property
    def timed(self) -> Collection[str]:
        """All of them."""
        return {each.name for each in self.found}

    @property
    def spans(self) -> Mapping[str, Sequence[Any]]:
        """When the copies were on that the load starts and stops."""
        return {each.name: [part.spans_fs for part in reversed(each.scalings)] for each in self.found}

    def expected(self) -> Mapping[str, float]:
        """Quantities of each model."""
        return expected_of(self.found)

    def warnings(self) -> Iterator[Warning]:
        """Models that do not keep up, or whose run is too short to tell."""
        for service in self.found:
            of = f"{service.name}: " if service.name else ""
            yield from service.parts
            if service.overloaded:
                came, answered = format_count(service.offered_per_s, 4), format_count(service.answered_per_s, 4)
                yield overloaded(f"{of}{came} requests/s came, {answered} were answered meanwhile", service.grows_per_s)
            elif service.unsettled:
                why = FILLS if service.scaling is None else STARTS
                yield Warning("still-filling", f"{of}those there grow until the last request comes, {why}")

    def breaches(self) -> Iterator[str]:
        """Requests there in the mean that are not their rate times their time (Little), and numbers that are none."""
        for served in self.found:
            area, stayed = served.in_system_mean * served.span_s, served.latency.mean * served.requests
            if not math.isclose(area, stayed, rel_tol=ROUNDING):
                yield f"{served.name}: requests are there for {area} s together, and stay {stayed} s"
        yield from numbers(self.found, "serving")
