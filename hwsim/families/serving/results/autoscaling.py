"""Statistics of autoscaling: replicas over time, and the GPU-hours that are paid for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.results.expect import HOUR


class ReplicaLifetime(NamedTuple):
    """The lifetime of a replica; seconds from the start of the run, None for times after the last completion.

    Args:
        copy: index of the replica.
        on_s: start.
        ready_s: time from which it takes requests.
        stopped_s: time from which it takes no more requests.
        off_s: completion of its last request.
    """

    copy: int
    on_s: float
    ready_s: float | None
    stopped_s: float | None
    off_s: float | None


class ReplicaCounts(NamedTuple):
    """The number of replicas from an instant on.

    Args:
        at_s: time from the start of the run (s).
        on: replicas that are paid for.
        ready: replicas that take requests.
    """

    at_s: float
    on: int
    ready: int


@dataclass(frozen=True, slots=True)
class AutoscalingStatistics:
    """The replicas during the entire run, including the warm-up.

    Args:
        least, most: minimum and maximum number of replicas.
        gpus: GPUs of a replica.
        span_s: time from the start of the service to its last completion (s).
        changes: number of replicas after each change.
        starts, stops: number of started and stopped replicas.
        paid_s: total time of all replicas, from the start of each to the completion of its last request (s).
        starting_s: part of `paid_s` before each replica was ready (s).
        lives: lifetime of each started replica, in order.
        waited: number of requests that waited for a replica with capacity.
        waited_s: total wait (s).
        longest_s: longest wait (s).
    """

    least: int
    most: int
    gpus: int
    span_s: float
    changes: tuple[ReplicaCounts, ...]
    starts: int
    stops: int
    paid_s: float
    starting_s: float
    lives: tuple[ReplicaLifetime, ...]
    waited: int
    waited_s: float
    longest_s: float

    @property
    def gpu_hours(self) -> float:
        """GPU-hours paid for."""
        return self.paid_s * self.gpus / HOUR

    @property
    def spans_fs(self) -> list[tuple[int, int, int | None]]:
        """(replica, start, end) of each started replica (fs); end None: the end of the run."""
        return [
            (life.copy, ticks.femtoseconds(life.on_s), None if life.off_s is None else ticks.femtoseconds(life.off_s))
            for life in self.lives
        ]

    @property
    def mean(self) -> float:
        """Average number of replicas."""
        return self.paid_s / self.span_s if self.span_s > 0 else float(self.least)

    @property
    def peak(self) -> int:
        """Maximum number of replicas at once."""
        return max((change.on for change in self.changes), default=self.least)

    @property
    def gpus_on(self) -> Iterator[tuple[float, int]]:
        """(time in s, change) of the number of GPUs paid for."""
        before = 0
        for change in self.changes:
            yield change.at_s, (change.on - before) * self.gpus
            before = change.on

    @property
    def saved(self) -> float:
        """Saved share of the cost of `most` replicas that are always on."""
        return 1.0 - self.paid_s / (self.most * self.span_s) if self.span_s > 0 else 0.0


def most_gpus(scalings: Sequence[AutoscalingStatistics]) -> int:
    """Return the maximum number of GPUs paid for at once, over all parts of a service."""
    steps: dict[float, int] = {}
    for time_s, more in (step for scaling in scalings for step in scaling.gpus_on):
        steps[time_s] = steps.get(time_s, 0) + more
    return max(accumulate(more for _, more in sorted(steps.items())), default=0)
