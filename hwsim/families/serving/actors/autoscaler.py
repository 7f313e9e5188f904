"""The autoscaler of a service: it starts and stops replicas by the load, and routes requests to ready replicas.

    number = scaled.asks(sequence, instant)       replica of a new request; -1: the request waits for one
    scaled.ended(number, instant)                 a request of a replica is complete
    scaled.until(instant)                         make the scaling decisions that are due
    scaled.released(instant, api)                 first waiting request, once a replica has capacity

Scaling decisions that are due are made before anything else at an instant, so the order of calls does not matter. A request stays
on its replica. A stopped replica takes no new requests and completes its own. Until then it is paid for; then its caches are
lost, and its GPUs can start a new replica. If no replica is ready or starting, a request starts one at once. While requests
wait, at least one replica stays on.

**Range**: replicas never fail to start, and requests do not move between replicas. A replica always starts on the first free
GPUs.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence as Many
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.families.serving.actors.router import Router
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results import autoscaling as results
from hwsim.families.serving.results.accounting import BATCH_SLOT_WAIT, REPLICA_START
from hwsim.families.serving.results.autoscaling import AutoscalingStatistics, ReplicaCounts
from hwsim.families.serving.results.log import Late
from hwsim.families.serving.workload.autoscaler import Scale
from hwsim.records import dataclass
from hwsim.spec.limits import LIMITS, LOOKS, refuse_beyond
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.serving.actors.continuous import ContinuousReplica
    from hwsim.families.serving.actors.static import StaticReplica

OFF: Final = -1


@dataclass(slots=True)
class ReplicaLife:
    """The lifetime of a replica; times in fs, -1 if not known yet.

    Args:
        copy: index of the replica.
        on: start.
        ready: time from which it takes requests.
        stopped: time from which it takes no more requests.
        off: completion of its last request.
    """

    copy: int
    on: int
    ready: int
    stopped: int = -1
    off: int = -1

    @property
    def is_used(self) -> bool:
        """Whether the replica was ever ready."""
        return self.stopped < 0 or self.ready < self.stopped

    def seconds(self, end: int) -> results.ReplicaLifetime:
        """Return the lifetime in seconds; None for times after `end`, the last completion."""
        times = (self.ready if self.is_used else -1, self.stopped, self.off)
        return results.ReplicaLifetime(
            self.copy, self.on / FEMTO, *(time_ / FEMTO if 0 <= time_ <= end else None for time_ in times)
        )


class WaitingRequest(NamedTuple):
    """A request that waits for a replica.

    Args:
        sequence: the request.
        since: start of the wait (fs).
        starting: total time in which replicas had been starting until then (fs).
    """

    sequence: Sequence
    since: int
    starting: int


@dataclass(slots=True)
class Autoscaler:
    """An autoscaler with its replicas; times in fs.

    Args:
        scale: rules of scaling.
        router: router among ready replicas.
        copies: all possible replicas.
        start: start of the service.
        ready: time from which each replica takes requests; -1: it takes none.
        since: time from which each replica is paid for; -1: it is not.
        has: number of requests of each replica.
        line: requests that wait for a replica.
        lives: lifetime of each started replica.
    """

    scale: Scale
    router: Router
    copies: Many[ContinuousReplica | StaticReplica]
    start: int = 0
    ready: list[int] = field(init=False)
    since: list[int] = field(init=False)
    has: list[int] = field(init=False)
    line: deque[WaitingRequest] = field(default_factory=deque)
    lives: list[ReplicaLife] = field(default_factory=list)
    _alive: list[ReplicaLife | None] = field(init=False)
    _waits: list[int] = field(default_factory=list)
    _counted: int = 0
    _area: int = 0  # integral of the load metric: count x fs, or arrivals x fs per second
    _now: int = 0
    _starting: int = 0  # total time in which replicas were starting
    _look: int = 0
    _made: int = 0  # decisions so far
    _areas: deque[int] = field(default_factory=deque)
    _wanted: deque[tuple[int, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        first = self.scale.first
        self.ready = [self.start if number < first else OFF for number in range(len(self.copies))]
        self.since, self.has = list(self.ready), [0] * len(self.copies)
        self._now = self.start
        self._look = self.start + self.scale.every
        self._areas.append(0)
        self._alive = [None] * len(self.copies)
        for number in range(first):
            self._add_life(number, self.start)

    # ------------------------------------------------------------ requests

    def asks(self, sequence: Sequence, instant: int) -> int:
        """Return the replica of a new request; -1 if the request waits for one."""
        self._advance_to(instant)
        if self.scale.by == "arrivals":
            self._area += FEMTO
        else:
            self._counted += 1
        number = OFF if self.line else self._ready_replica(sequence, instant)
        if number < 0:
            self.line.append(WaitingRequest(sequence, instant, self._starting))
            if all(ready < 0 for ready in self.ready):
                self._start_replicas(1, instant)
        return number

    def released(self, instant: int, api: int) -> tuple[Sequence, int, int, Late] | None:
        """Return (request, replica, arrival, causes of its wait) of the first waiting request; None if no replica has capacity.

        Args:
            instant: time (fs).
            api: time until the request reaches the queue of the replica (fs).
        """
        if not self.line:
            return None
        self.until(instant)
        number = self._ready_replica(self.line[0].sequence, instant)
        if number < 0:
            return None
        self._advance_to(instant)
        sequence, since, before = self.line.popleft()
        starting = self._starting - before
        self._waits.append(instant - since)
        sequence.at = instant + api
        return sequence, number, since, ((REPLICA_START, starting), (BATCH_SLOT_WAIT, instant - since - starting))

    def _ready_replica(self, sequence: Sequence, instant: int) -> int:
        """Return a ready replica below its limit of requests; -1 if there is none."""
        limit, has = self.scale.limit, self.has
        open_to = [number for number, ready in enumerate(self.ready) if 0 <= ready <= instant and has[number] < limit]
        if not open_to:
            return OFF
        number = self.router.choose(sequence, open_to)
        has[number] += 1
        return number

    def begins(self, instant: int) -> None:
        """Count a request that leaves the queue."""
        if self.scale.by == "waiting":
            self._advance_to(instant)
            self._counted -= 1

    def ended(self, number: int, instant: int) -> None:
        """Count a completed request of a replica."""
        self._advance_to(instant)
        if self.scale.by == "requests":
            self._counted -= 1
        self.has[number] -= 1
        if self.ready[number] < 0 and not self.has[number]:
            self._turn_off(number, instant)

    # ------------------------------------------------------------ time

    def next(self, instant: int) -> int:
        """Return the next instant at which a replica becomes ready or a decision is due."""
        later = [ready for ready in self.ready if instant < ready]
        return min([self._look, *later])

    def first(self, instant: int) -> int:
        """Return the time at which the first replica will be ready; -1 if one is ready, or none is starting."""
        there = [ready for ready in self.ready if ready >= 0]
        first = min(there, default=OFF)
        return first if instant < first else OFF

    def until(self, instant: int) -> None:
        """Make the scaling decisions that are due up to and including an instant."""
        while self._look <= instant:
            self._integrate_load(self._look)
            self._decide(self._look)
            self._look += self.scale.every
            self._made += 1
            if self._made > LIMITS[LOOKS].most:  # the length of a run is not known in advance
                refuse_beyond(LOOKS, self._made)

    def _advance_to(self, instant: int) -> None:
        """Advance to an instant, before an event other than a decision."""
        self.until(instant)
        self._integrate_load(instant)

    def _integrate_load(self, instant: int) -> None:
        self._area += self._counted * (instant - self._now)
        last = min(instant, max(self.ready))
        if last > self._now:
            self._starting += last - self._now
        self._now = instant

    # ------------------------------------------------------------ replicas

    def _decide(self, instant: int) -> None:
        """Make a scaling decision: start or stop replicas."""
        scale, areas = self.scale, self._areas
        wanted = self._desired_count(self._area - areas[0], len(areas))
        if self.line:
            wanted = max(wanted, 1)  # with any load metric: the replica that they wait for is not stopped
        areas.append(self._area)
        if len(areas) > scale.looks:
            areas.popleft()
        while self._wanted and self._wanted[-1][1] <= wanted:
            self._wanted.pop()
        self._wanted.append((instant, wanted))  # decreasing counts; the first is the maximum during the delay
        while self._wanted[0][0] < instant - scale.delay:
            self._wanted.popleft()
        taking = sum(ready >= 0 for ready in self.ready)  # count
        if wanted > taking:
            self._start_replicas(wanted - taking, instant)
        elif (most := self._wanted[0][1]) < taking:
            for _, number in sorted((ready, number) for number, ready in enumerate(self.ready) if ready >= 0)[most - taking :]:
                self._stop(number, instant)

    def _desired_count(self, area: int, looks: int) -> int:
        """Return the desired number of replicas for the load metric integrated over some decision intervals."""
        scale = self.scale
        return min(scale.most, max(scale.least, math.ceil(area / (looks * scale.every) / scale.target)))

    def _start_replicas(self, count: int, instant: int) -> None:
        """Start replicas on free GPUs, as many as there are."""
        off = [number for number, since in enumerate(self.since) if since < 0]
        for number in off[: min(count, self.scale.most - len(self.since) + len(off))]:
            self.since[number] = instant
            self.ready[number] = instant + self.scale.start
            self._add_life(number, instant)

    def _add_life(self, number: int, instant: int) -> None:
        life = self._alive[number] = ReplicaLife(number, instant, self.ready[number])
        self.lives.append(life)

    def _stop(self, number: int, instant: int) -> None:
        """Stop a replica: it takes no more requests."""
        self.ready[number] = OFF
        if (life := self._alive[number]) is not None:
            life.stopped = instant
        if not self.has[number]:
            self._turn_off(number, instant)

    def _turn_off(self, number: int, instant: int) -> None:
        self.since[number] = OFF
        if (life := self._alive[number]) is not None:
            life.off = instant
        self.copies[number].forgets()

    def risen(self, last: int) -> int:
        """Return when the last replica started before an instant was ready (fs); 0 if none was started."""
        return max((life.ready for life in self.lives if life.on <= last and life.ready > self.start and life.is_used), default=0)

    def statistics(self, gpus: int, end: int) -> AutoscalingStatistics:
        """Return the statistics of replicas up to the last completion."""
        self.until(end)
        lives = [life for life in self.lives if life.on <= end]
        steps: dict[int, list[int]] = {}
        for life in lives:
            for instant, kind, change in ((life.on, 0, 1), (life.off, 0, -1), (life.ready, 1, 1), (life.stopped, 1, -1)):
                if 0 <= instant <= end and (not kind or life.is_used):
                    steps.setdefault(instant, [0, 0])[kind] += change
        on, ready, changes = 0, 0, []
        for instant, (more, taking) in sorted(steps.items()):
            on, ready = on + more, ready + taking
            changes.append(ReplicaCounts(instant / FEMTO, on, ready))
        paid = [(end if life.off < 0 else min(life.off, end)) - life.on for life in lives]
        began = [min(life.ready, end if life.stopped < 0 else life.stopped) - life.on for life in lives]
        return AutoscalingStatistics(
            min_replicas=self.scale.least,
            max_replicas=self.scale.most,
            gpus=gpus,
            span_s=(end - self.start) / FEMTO,
            changes=tuple(changes),
            starts=len(lives) - self.scale.first,
            stops=sum(life.stopped >= 0 for life in lives),  # count
            paid_s=sum(paid) / FEMTO,  # integers
            starting_s=sum(began) / FEMTO,  # integers
            lifetimes=tuple(life.seconds(end) for life in lives),
            waits=len(self._waits),
            wait_s=sum(self._waits) / FEMTO,  # integers
            max_wait_s=max(self._waits, default=0) / FEMTO,
        )
