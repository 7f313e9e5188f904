"""Steady state of services in a run: intervals of percentiles, growing queues, and causes of waits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hwsim.api import Run
from hwsim.families_interface import family_reports
from hwsim.records import dataclass
from hwsim.results.batches import ConfidenceRange

TURNOVERS: Final = 10  # times that the requests which are there are all replaced, at least, in a run that tells of a steady state


@dataclass(frozen=True, slots=True)
class ServiceSteadiness:
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
    known: dict[str, tuple[ConfidenceRange, bool]]
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
        short = [self.known[quantity] for quantity in quantities if quantity in self.known and self.known[quantity][1]]
        if self.grows or not self.counted or not (self.brief or short):
            return None
        wanted = math.ceil(1.2 * TURNOVERS * self.there) if self.brief else 0
        wanted = max(wanted, self.needed or 0, 2 * self.requests) if short else wanted
        return min(wanted, self.most) if min(wanted, self.most) > self.requests else None


def states(run: Run) -> Iterator[ServiceSteadiness]:
    """The services of a run."""
    return (state for each in family_reports(run) for state in each.states(run))


def utilisation(run: Run) -> tuple[float, str]:
    """(part of the busiest capacity that those who come take, its name); 0 where only a run tells."""
    limits = (limit for each in family_reports(run) for limit in each.load(run))
    return max(((asked or 0.0, name) for name, asked, is_capacity in limits if is_capacity), default=(0.0, ""))
