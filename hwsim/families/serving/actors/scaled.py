"""Copies that are started and stopped by the load: the autoscaler of a service, and its router to copies that are there.

    number = scaled.asks(sequence, at)       the copy of a request that comes; -1: it waits for one
    scaled.ended(number, at)                 a request of a copy is answered
    scaled.until(at)                         make the looks that are due up to an instant
    scaled.released(at)                      the first that waits, once a copy has room for it

Looks that are due are made before anything else at an instant, so it makes no difference who calls first. A request stays with
its copy. A copy that is stopped takes no more requests and answers those it has; it is paid for until then, and its caches are
lost. Its GPUs start a new copy only after that. While none is there, or on its way, a request starts one without a look; while
requests wait, one stays.

**Range**: a copy never fails to start, and no request is moved from one to another. Where a copy starts is not a choice: the
first GPUs that are free.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence as Many
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.families.serving.actors.router import Router
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results import scaling as results
from hwsim.families.serving.results.accounting import SEATS, STARTING
from hwsim.families.serving.results.log import Late
from hwsim.families.serving.results.scaling import Copies, Scaling
from hwsim.families.serving.workload.scaling import Scale
from hwsim.records import dataclass
from hwsim.spec.limits import LIMITS, LOOKS, refuse_beyond
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.serving.actors.copy import Copy
    from hwsim.families.serving.actors.static import Static

OFF: Final = -1


@dataclass(slots=True)
class Life:
    """A copy from its start to its end; fs, -1 until it is known. As of `hwsim.families.serving.results.scaling.Life`."""

    copy: int
    on: int
    ready: int
    stopped: int = -1
    off: int = -1

    @property
    def is_used(self) -> bool:
        """Whether it was ever ready."""
        return self.stopped < 0 or self.ready < self.stopped

    def seconds(self, end: int) -> results.Life:
        """The same in seconds, as far as it is known at the last answer."""
        times = (self.ready if self.is_used else -1, self.stopped, self.off)
        return results.Life(self.copy, self.on / FEMTO, *(time_ / FEMTO if 0 <= time_ <= end else None for time_ in times))


class Held(NamedTuple):
    """A request that waits for a copy: since when, and how long copies had been starting until then; fs."""

    sequence: Sequence
    since: int
    starting: int


@dataclass(slots=True)
class Scaled:
    """The copies that are there, and who gets a request.

    Args:
        start: when the service begins, fs. ready: for each copy from when on it takes requests, -1 if it takes none.
        since: from when on it is paid for, -1 if it is not. has: requests of each. line: requests that wait for a copy.
    """

    scale: Scale
    router: Router
    copies: Many[Copy | Static]
    start: int = 0
    ready: list[int] = field(init=False)
    since: list[int] = field(init=False)
    has: list[int] = field(init=False)
    line: deque[Held] = field(default_factory=deque)
    lives: list[Life] = field(default_factory=list)
    _alive: list[Life | None] = field(init=False)
    _waits: list[int] = field(default_factory=list)
    _counted: int = 0
    _area: int = 0  # count x fs; arrivals x fs a second
    _now: int = 0
    _starting: int = 0  # fs in which copies were starting
    _look: int = 0
    _made: int = 0  # looks
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
            self._lives(number, self.start)

    # ------------------------------------------------------------ requests

    def asks(self, sequence: Sequence, at: int) -> int:
        """The number of the copy of a request that comes; -1: it waits."""
        self._happens(at)
        if self.scale.by == "arrivals":
            self._area += FEMTO
        else:
            self._counted += 1
        number = OFF if self.line else self._free(sequence, at)
        if number < 0:
            self.line.append(Held(sequence, at, self._starting))
            if all(ready < 0 for ready in self.ready):
                self._more(1, at)
        return number

    def released(self, at: int, api: int) -> tuple[Sequence, int, int, Late] | None:
        """(a request that waited, its copy, its arrival, for what it waited) if there is room now.

        api: fs until it stands in the line of the copy.
        """
        if not self.line:
            return None
        self.until(at)
        number = self._free(self.line[0].sequence, at)
        if number < 0:
            return None
        self._happens(at)
        sequence, since, before = self.line.popleft()
        starting = self._starting - before
        self._waits.append(at - since)
        sequence.at = at + api
        return sequence, number, since, ((STARTING, starting), (SEATS, at - since - starting))

    def _free(self, sequence: Sequence, at: int) -> int:
        """The number of a copy that is ready and has room; -1: none is."""
        limit, has = self.scale.limit, self.has
        open_to = [number for number, ready in enumerate(self.ready) if 0 <= ready <= at and has[number] < limit]
        if not open_to:
            return OFF
        number = open_to[self.router.choose([self.copies[each] for each in open_to], sequence)]
        has[number] += 1
        return number

    def begins(self, at: int) -> None:
        """A request no longer waits."""
        if self.scale.by == "waiting":
            self._happens(at)
            self._counted -= 1

    def ended(self, number: int, at: int) -> None:
        """A request of a copy is answered."""
        self._happens(at)
        if self.scale.by == "requests":
            self._counted -= 1
        self.has[number] -= 1
        if self.ready[number] < 0 and not self.has[number]:
            self._leaves(number, at)

    # ------------------------------------------------------------ time

    def next(self, at: int) -> int:
        """The first instant after this one at which a copy may become ready or another be started."""
        later = [ready for ready in self.ready if at < ready]
        return min([self._look, *later])

    def first(self, at: int) -> int:
        """When the first copy will be ready where none is; -1 else."""
        there = [ready for ready in self.ready if ready >= 0]
        first = min(there, default=OFF)
        return first if at < first else OFF

    def until(self, at: int) -> None:
        """Make the looks that are due before an instant, and at it."""
        while self._look <= at:
            self._passes(self._look)
            self._looks(self._look)
            self._look += self.scale.every
            self._made += 1
            if self._made > LIMITS[LOOKS].most:  # how long a run lasts is not known before
                refuse_beyond(LOOKS, self._made)

    def _happens(self, at: int) -> None:
        """Something else than a look happens at an instant."""
        self.until(at)
        self._passes(at)

    def _passes(self, at: int) -> None:
        self._area += self._counted * (at - self._now)
        last = min(at, max(self.ready))
        if last > self._now:
            self._starting += last - self._now
        self._now = at

    # ------------------------------------------------------------ copies

    def _looks(self, at: int) -> None:
        """Start or stop copies."""
        scale, areas = self.scale, self._areas
        wanted = self._for(self._area - areas[0], len(areas))
        if self.line:
            wanted = max(wanted, 1)  # whatever counts: a copy that is on its way for them is not stopped
        areas.append(self._area)
        if len(areas) > scale.looks:
            areas.popleft()
        while self._wanted and self._wanted[-1][1] <= wanted:
            self._wanted.pop()
        self._wanted.append((at, wanted))  # those after which none wanted as many: the first is the most of the delay
        while self._wanted[0][0] < at - scale.delay:
            self._wanted.popleft()
        taking = sum(each >= 0 for each in self.ready)  # count
        if wanted > taking:
            self._more(wanted - taking, at)
        elif (most := self._wanted[0][1]) < taking:
            for _, number in sorted((each, number) for number, each in enumerate(self.ready) if each >= 0)[most - taking :]:
                self._stop(number, at)

    def _for(self, area: int, looks: int) -> int:
        """Copies wanted for a count over a number of looks."""
        scale = self.scale
        return min(scale.most, max(scale.least, math.ceil(area / (looks * scale.every) / scale.target)))

    def _more(self, count: int, at: int) -> None:
        """Start copies on GPUs that are free, as many as there are."""
        off = [number for number, since in enumerate(self.since) if since < 0]
        for number in off[: min(count, self.scale.most - len(self.since) + len(off))]:
            self.since[number] = at
            self.ready[number] = at + self.scale.start
            self._lives(number, at)

    def _lives(self, number: int, at: int) -> None:
        life = self._alive[number] = Life(number, at, self.ready[number])
        self.lives.append(life)

    def _stop(self, number: int, at: int) -> None:
        """Let a copy take no more requests."""
        self.ready[number] = OFF
        if (life := self._alive[number]) is not None:
            life.stopped = at
        if not self.has[number]:
            self._leaves(number, at)

    def _leaves(self, number: int, at: int) -> None:
        self.since[number] = OFF
        if (life := self._alive[number]) is not None:
            life.off = at
        self.copies[number].forgets()

    def risen(self, last: int) -> int:
        """When the last copy that was started before an instant was ready; 0 where none was started."""
        return max((life.ready for life in self.lives if life.on <= last and life.ready > self.start and life.is_used), default=0)

    def statistics(self, gpus: int, end: int) -> Scaling:
        """The copies up to the last answer."""
        self.until(end)
        lives = [life for life in self.lives if life.on <= end]
        steps: dict[int, list[int]] = {}
        for life in lives:
            for at, kind, change in ((life.on, 0, 1), (life.off, 0, -1), (life.ready, 1, 1), (life.stopped, 1, -1)):
                if 0 <= at <= end and (not kind or life.is_used):
                    steps.setdefault(at, [0, 0])[kind] += change
        on, ready, changes = 0, 0, []
        for at, (more, taking) in sorted(steps.items()):
            on, ready = on + more, ready + taking
            changes.append(Copies(at / FEMTO, on, ready))
        paid = [(end if life.off < 0 else min(life.off, end)) - life.on for life in lives]
        began = [min(life.ready, end if life.stopped < 0 else life.stopped) - life.on for life in lives]
        return Scaling(
            least=self.scale.least,
            most=self.scale.most,
            gpus=gpus,
            span_s=(end - self.start) / FEMTO,
            changes=tuple(changes),
            starts=len(lives) - self.scale.first,
            stops=sum(life.stopped >= 0 for life in lives),  # count
            paid_s=sum(paid) / FEMTO,  # integers
            starting_s=sum(began) / FEMTO,  # integers
            lives=tuple(life.seconds(end) for life in lives),
            waited=len(self._waits),
            waited_s=sum(self._waits) / FEMTO,  # integers
            longest_s=max(self._waits, default=0) / FEMTO,
        )
