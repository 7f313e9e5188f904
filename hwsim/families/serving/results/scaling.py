"""Copies of a service that were started and stopped by its load: how many there were, and what is paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.results.expect import HOUR


class Life(NamedTuple):
    """A copy from its start to its end; seconds from the start of the run, None for what is after the last answer.

    Args:
        ready_s: from when on it takes requests; stopped_s: until when; off_s: its last request is answered.
    """

    copy: int
    on_s: float
    ready_s: float | None
    stopped_s: float | None
    off_s: float | None


class Copies(NamedTuple):
    """From an instant (seconds from the start of the run) on: copies that are paid for, and those that take requests."""

    at_s: float
    on: int
    ready: int


@dataclass(frozen=True, slots=True)
class Scaling:
    """Copies over the whole run, warm-up included.

    Args:
        least, most: that there may be. span_s: from the start of the service to its last answer.
        changes: each new number of copies. starts, stops: how many. lives: one for each start, in order.
        paid_s: seconds of all copies, from the start of each until it has answered its last request.
        starting_s: the part of it before each was ready. gpus: on which a copy runs.
        waited: requests that waited for a copy with room; waited_s: together; longest_s: at most.
    """

    least: int
    most: int
    gpus: int
    span_s: float
    changes: tuple[Copies, ...]
    starts: int
    stops: int
    paid_s: float
    starting_s: float
    lives: tuple[Life, ...]
    waited: int
    waited_s: float
    longest_s: float

    @property
    def gpu_hours(self) -> float:
        """GPU-hours that are paid for."""
        return self.paid_s * self.gpus / HOUR

    @property
    def spans_fs(self) -> list[tuple[int, int, int | None]]:
        """(copy, from when on, until when) of each start; fs, None for the end of the run."""
        return [
            (life.copy, ticks.femtoseconds(life.on_s), None if life.off_s is None else ticks.femtoseconds(life.off_s))
            for life in self.lives
        ]

    @property
    def mean(self) -> float:
        """Copies in the mean."""
        return self.paid_s / self.span_s if self.span_s > 0 else float(self.least)

    @property
    def peak(self) -> int:
        """The most copies at once."""
        return max((change.on for change in self.changes), default=self.least)

    @property
    def gpus_on(self) -> Iterator[tuple[float, int]]:
        """(from when on, how many more) of the GPUs of copies that are paid for."""
        before = 0
        for change in self.changes:
            yield change.at_s, (change.on - before) * self.gpus
            before = change.on

    @property
    def saved(self) -> float:
        """Part of the time of all copies that is not paid for."""
        return 1.0 - self.paid_s / (self.most * self.span_s) if self.span_s > 0 else 0.0


def most_gpus(every: Sequence[Scaling]) -> int:
    """The most GPUs that copies of all parts of a service have at once."""
    steps: dict[float, int] = {}
    for at, more in (step for each in every for step in each.gpus_on):
        steps[at] = steps.get(at, 0) + more
    return max(accumulate(more for _, more in sorted(steps.items())), default=0)
