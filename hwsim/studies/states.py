"""Steady state of services in a run: intervals of percentiles, growing queues, and causes of waits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from hwsim.api import Run
from hwsim.families_interface import family_reports
from hwsim.records import dataclass
from hwsim.results.batches import ConfidenceRange

TURNOVERS: Final = 10  # minimum number of times that all requests in flight are replaced in a steady run


@dataclass(frozen=True, slots=True)
class ServiceSteadiness:
    """The steady state of a service in one run.

    Args:
        requests: number of arrived requests.
        there: average number in flight at the arrival rate.
        counted: path of the request count in the file, as for `--set`.
        known: by quantity of `expect:`, its confidence range and whether the run is too short for it.
        grows: reason why there is no steady state; "" if there may be one.
        where: cause of most of the time, as text, by quantity.
        needed: number of requests that is sufficient.
        most: largest number of requests that is tried.
        halves: half width of the 90 % interval of the logarithm, by first letters of the quantity.
        excess: arrival rate / completion rate - 1, if the queue grows.
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
        """Whether the run ended before the requests in flight had been replaced often enough."""
        return self.requests < TURNOVERS * self.there

    def more(self, quantities: list[str]) -> int | None:
        """Return the request count needed to know these quantities; None if this run suffices, or if too many would be needed."""
        short = [self.known[quantity] for quantity in quantities if quantity in self.known and self.known[quantity][1]]
        if self.grows or not self.counted or not (self.brief or short):
            return None
        wanted = math.ceil(1.2 * TURNOVERS * self.there) if self.brief else 0
        wanted = max(wanted, self.needed or 0, 2 * self.requests) if short else wanted
        return min(wanted, self.most) if min(wanted, self.most) > self.requests else None


def states(run: Run) -> Iterator[ServiceSteadiness]:
    """Return the steady state of each service of a run."""
    return (state for report in family_reports(run) for state in report.states(run))


def utilization(run: Run) -> tuple[float, str]:
    """Return (offered load of the busiest capacity, its name); 0 if it is known only after a simulation."""
    limits = (limit for report in family_reports(run) for limit in report.load(run))
    return max(((asked or 0.0, name) for name, asked, is_capacity in limits if is_capacity), default=(0.0, ""))
