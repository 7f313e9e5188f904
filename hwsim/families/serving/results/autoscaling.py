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
        replica: index of the replica.
        start_s: start.
        ready_s: time from which it takes requests.
        stop_s: time from which it takes no more requests.
        end_s: completion of its last request.
    """

    replica: int
    start_s: float
    ready_s: float | None
    stop_s: float | None
    end_s: float | None


class ReplicaCounts(NamedTuple):
    """The number of replicas from an instant on.

    Args:
        at_s: time from the start of the run (s).
        paid: replicas that are paid for.
        ready: replicas that take requests.
    """

    at_s: float
    paid: int
    ready: int


@dataclass(frozen=True, slots=True)
class AutoscalingStatistics:
    """The replicas during the entire run, including the warm-up.

    Args:
        min_replicas, max_replicas: minimum and maximum number of replicas.
        gpus: GPUs of a replica.
        span_s: time from the start of the service to its last completion (s).
        changes: number of replicas after each change.
        starts, stops: number of started and stopped replicas.
        paid_s: total time of all replicas, from the start of each to the completion of its last request (s).
        starting_s: part of `paid_s` before each replica was ready (s).
        lifetimes: lifetime of each started replica, in order.
        waits: number of requests that waited for a replica with capacity.
        wait_s: total wait (s).
        max_wait_s: longest wait (s).
    """

    min_replicas: int
    max_replicas: int
    gpus: int
    span_s: float
    changes: tuple[ReplicaCounts, ...]
    starts: int
    stops: int
    paid_s: float
    starting_s: float
    lifetimes: tuple[ReplicaLifetime, ...]
    waits: int
    wait_s: float
    max_wait_s: float

    @property
    def gpu_hours(self) -> float:
        """GPU-hours paid for."""
        return self.paid_s * self.gpus / HOUR

    @property
    def spans_fs(self) -> list[tuple[int, int, int | None]]:
        """(replica, start, end) of each started replica (fs); end None: the end of the run."""
        return [
            (life.replica, ticks.femtoseconds(life.start_s), None if life.end_s is None else ticks.femtoseconds(life.end_s))
            for life in self.lifetimes
        ]

    @property
    def replicas_mean(self) -> float:
        """Average number of replicas."""
        return self.paid_s / self.span_s if self.span_s > 0 else float(self.min_replicas)

    @property
    def replicas_peak(self) -> int:
        """Maximum number of replicas at once."""
        return max((change.paid for change in self.changes), default=self.min_replicas)

    @property
    def gpus_on(self) -> Iterator[tuple[float, int]]:
        """(time in s, change) of the number of GPUs paid for."""
        before = 0
        for change in self.changes:
            yield change.at_s, (change.paid - before) * self.gpus
            before = change.paid

    @property
    def saved_share(self) -> float:
        """Saved share of the cost of `max_replicas` replicas that are always on."""
        return 1.0 - self.paid_s / (self.max_replicas * self.span_s) if self.span_s > 0 else 0.0


def most_gpus(scalings: Sequence[AutoscalingStatistics]) -> int:
    """Return the maximum number of GPUs paid for at once, over all parts of a service."""
    steps: dict[float, int] = {}
    for time_s, more in (step for scaling in scalings for step in scaling.gpus_on):
        steps[time_s] = steps.get(time_s, 0) + more
    return max(accumulate(more for _, more in sorted(steps.items())), default=0)
