"""Slowdown of each job by the others: the run again with the other jobs skipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim.doors import FAMILIES, door
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.results.result import Again, Result
from hwsim.spec import SpecError

MOST: Final = 8  # jobs; each is a run more


@dataclass(frozen=True, slots=True)
class Alone:
    """A job, and its seconds from start to end together with the others, and alone."""

    job: str
    together_s: float
    alone_s: float

    @property
    def slowdown(self) -> float:
        """Seconds together with the others / seconds alone."""
        return self.together_s / self.alone_s


def alone(result: Result) -> tuple[Alone, ...]:
    """Every job that ends by itself; none for more than `MOST` jobs, or where there is one alone.

    A job whose requests decide when it ends (a service) is left out: it lasts as long as they come.
    """
    if result.again is None or not 2 <= len(result.jobs) <= MOST:
        return ()
    answering = _answering(result.again)
    jobs = [job for job in result.jobs if job.name not in answering]
    slowdowns = []
    for job in jobs:
        others = {f"workload.jobs.{other.name}.skip": "true" for other in result.jobs if other is not job}
        try:
            [span] = result.again.simulate(others).jobs
        except (SpecError, ValueError):  # what it needs of the others is not there
            continue
        if span.makespan_s > 0:
            slowdowns.append(Alone(job.name, job.makespan_s, span.makespan_s))
    return tuple(slowdowns)


def lines(found: tuple[Alone, ...]) -> Iterator[str]:
    """A sentence for each job."""
    for each in found:
        together, own = format_quantity(each.together_s, "s"), format_quantity(each.alone_s, "s")
        yield f"{each.job} takes {together} with the others, {own} with the machine to itself: {each.slowdown:.2f} times as long."


def _answering(again: Again) -> frozenset[str]:
    """Jobs that answer requests."""
    jobs = again.workload.get("jobs")
    named = () if jobs is None else jobs.items()
    return frozenset(name for name, job in named if any(job.get(key) is not None and door(key).answers for key in FAMILIES))
