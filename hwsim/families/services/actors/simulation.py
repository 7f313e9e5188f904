"""Simulation of services in Python: requests execute steps, wait in queues, and hold workers and locks.

At one instant, the ends at stations are processed first, in the order of the stations and, within a station, of joining; each
request then continues until it waits again. Timers (arrivals, timeouts, latencies) follow in the order in which they were set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Final

from hwsim import ticks
from hwsim.engine.verdict import Deadlock
from hwsim.families.services.actors.stations import NEVER, Issue, Serves, station
from hwsim.families.services.actors.steps import step_function
from hwsim.families.services.actors.strands import LockState, ServiceState, Strand
from hwsim.families.services.results.statistics import ServiceNotes
from hwsim.families.services.workload.program import NONE, Ask, ServicesProgram, Take
from hwsim.spec.limits import LIMITS, REQUESTS, refuse_beyond
from hwsim.workload.load.arrivals import beginnings, instants, thoughts
from hwsim.workload.load.draws import RandomDraws
from hwsim.workload.load.numbers import mixed, stream

AT_ONCE: Final = 1 << 22  # maximum number of requests in flight of a called service


class ServiceSimulation:
    """A simulation of a program with its own event queue, which `until` continues."""

    def __init__(self, program: ServicesProgram, *, slower: float = 1.0, issue: Issue | None = None) -> None:
        """Create the simulation.

        Args:
            program: services.
            slower: factor on the time of all work.
            issue: constructor of the stations whose work the engine serves, from station and index.
        """
        self.program, self.now = program, 0
        self.stations: list[Serves] = [station(of, number, program.seed, issue) for number, of in enumerate(program.stations)]
        self.dues = [NEVER] * len(self.stations)
        self._timers: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._ready: deque[tuple[Strand, int]] = deque()
        self._set = 0
        self._locks = [LockState(lock.group) for lock in program.locks]
        first = len(program.resources) + len(self._locks)
        self._retrying, self._given_up = first + len(program.services), first + len(program.services) + 1
        self.notes = [ServiceNotes(len(of.choices), of.within, of.since) for of in program.services]
        self.services = [
            ServiceState(of, number, first + number, self.notes[number]) for number, of in enumerate(program.services)
        ]
        self.draws = [RandomDraws(stream(program.seed, *draw.names), draw.distribution) for draw in program.draws]
        self.hits: list[float | None] = [None] * len(program.caches)
        self.lookups = [NONE] * len(program.caches)  # lookups of each cache since it was empty; NONE: it is full
        self.slower = slower
        self.worked = [0] * len(program.served)  # time of all work of each statement without contention (fs)
        for service in self.services:
            service.do = [step_function(self, step, index, service) for index, step in enumerate(service.of.steps)]
        for event in program.events:
            self.when(event.at, self._begins, event)
            self.when(event.until, self._over, event)
        self._entries = [number for load in program.loads for number in load.services]
        self._left = {number: load for load in program.loads for number in load.services}
        self._came = {id(load): 0 for load in program.loads}
        self._streams: dict[int, Iterator[int]] = {}
        self._thoughts: dict[
            int, tuple[RandomDraws, RandomDraws]
        ] = {}  # think times before the first request of a client, and between two
        for number in self._entries:
            self._open(number)

    # ---- the calendar

    def when(self, time: int, call: Callable[[Any], None], given: Any) -> None:
        self._set += 1
        heappush(self._timers, (time, self._set, call, given))

    def next(self) -> int:
        """Return the time of the next event (fs), or NEVER."""
        timers = self._timers
        soonest = min(self.dues) if self.dues else NEVER
        return min(soonest, timers[0][0]) if timers else soonest

    def until(self, limit: int) -> None:
        """Simulate all events before a limit (fs)."""
        timers, dues, ready, run = self._timers, self.dues, self._ready, self._run
        while True:
            soonest = min(dues) if dues else NEVER
            if timers and timers[0][0] < soonest:
                if timers[0][0] >= limit:
                    return
                self.now, _, call, given = heappop(timers)
                call(given)
                while ready:
                    run(*ready.popleft())
                continue
            if soonest >= limit:
                return
            self.leave_station(dues.index(soonest), soonest)

    def leave_station(self, number: int, instant: int) -> None:
        """End work at a station, and continue its requests."""
        self.now = instant
        first, ready = self.stations[number], self._ready
        ended = first.leave(instant)
        self.dues[number] = first.due
        for strand in ended:
            self._served(strand)
            while ready:
                self._run(*ready.popleft())

    def later(self, time: int, strand: Strand) -> None:
        """Continue a strand after a time (fs)."""
        self.when(self.now + time, self._goes_on, strand)

    def _goes_on(self, strand: Strand) -> None:
        self._run(strand, strand.pc)

    def go_on(self, now: int, strand: Strand) -> None:
        """Continue a strand whose work the engine has completed."""
        self.now = now
        self._served(strand)
        while self._ready:
            self._run(*self._ready.popleft())

    # ---- arrivals

    def _open(self, number: int) -> None:
        """Begin the arrivals of a service from outside."""
        of = self.program.services[number]
        keys = of.arrivals
        if keys is None:
            return
        if keys.clients is None:
            came = keys.recorded().arrival.tolist() if keys.trace is not None else None
            self._streams[number] = iter(came) if came is not None else instants(keys, self.program.seed, of.name)
            self._next_arrival((number, 0))
            return
        given = keys, self.program.seed, of.name
        self._thoughts[number] = beginnings(*given), thoughts(*given)
        for client in range(keys.clients):
            self._think(number, client)

    def _next_arrival(self, given: tuple[int, int]) -> None:
        """Set the timer of the next arrival of a service."""
        number, count = given
        time = next(self._streams[number], None)
        if time is not None:
            self.when(self.program.services[number].start + time, self._arrives, (number, count))

    def _arrives(self, given: tuple[int, int]) -> None:
        number, count = given
        if not self._counts(number):
            return
        self._next_arrival((number, count + 1))
        self._begin(number, count)

    def _counts(self, number: int) -> bool:
        """Whether a request that arrives now belongs to the run."""
        load = self._left[number]
        if 0 <= load.until <= self.now or self._came[id(load)] == load.requests:
            return False
        self._came[id(load)] += 1
        if self._came[id(load)] > LIMITS[REQUESTS].most:  # the number of requests of clients is not known in advance
            refuse_beyond(REQUESTS, self._came[id(load)])
        return True

    def _begin(self, number: int, count: int) -> None:
        service = self.services[number]
        service.notes.came(self.now)
        self._enter(Strand(service, count, 0, self.now))

    def _think(self, number: int, count: int) -> None:
        """Schedule the `count`-th request of the run after the think time of a client."""
        keys = self.program.services[number].arrivals
        later = keys is not None and count >= (keys.clients or 0)
        wait = ticks.femtoseconds(self._thoughts[number][later].at(count))
        self.when(max(self.now, self.program.services[number].start) + wait, self._asks, (number, count))

    def _asks(self, given: tuple[int, int]) -> None:
        if self._counts(given[0]):
            self._begin(*given)

    def _enter(self, strand: Strand) -> bool:
        """Add a request to its service; return False if the full queue rejects it."""
        service = strand.service
        service.notes.enters(self.now)
        if service.free > 0 and not service.down:
            service.free -= 1
            self._ready.append((strand, 0))
            return True
        if len(service.line) >= service.of.limit:
            strand.failed, strand.why = True, "refused"
            self._answer(strand)
            return False
        service.notes.waits(self.now, 1)
        strand.since = self.now
        service.line.append(strand)
        return True

    # ---- strands

    def _run(self, strand: Strand, index: int) -> None:
        do = strand.service.do
        if strand.service.down:
            strand.pc = index
            strand.service.parked.append(strand)
            return
        while index >= 0:
            index = do[index](strand)

    def _served(self, strand: Strand) -> None:
        """Continue a strand whose work has ended."""
        waited = self.now - strand.since - strand.alone
        if waited > 0:
            self._waited(strand, strand.resource, waited)
        self._run(strand, strand.pc)

    @staticmethod
    def _waited(strand: Strand, what: int, time: int) -> None:
        waits = strand.waits
        if waits is None:
            strand.waits = {what: time}
        else:
            waits[what] = waits.get(what, 0) + time

    def _answer(self, strand: Strand) -> None:
        """End a request, count it, and continue its caller."""
        strand.service.notes.ends(self.now, strand)
        caller = strand.caller
        if caller is None:
            self._answered(strand)
            return
        if strand.gone or caller.asking != strand.attempt:
            return
        caller.asking = 0
        if strand.waits:
            for resource, time in strand.waits.items():
                self._waited(caller, resource, time)
        step = caller.service.of.steps[caller.pc]
        assert isinstance(step, Ask)
        if not strand.failed:
            self._ready.append((caller, caller.pc + 1))
        elif step.again and caller.attempts <= step.retries:
            self._again(caller, step)
        else:
            self._fail(caller, strand.why)

    def _answered(self, strand: Strand) -> None:
        """Start the think time of the client of an external request."""
        keys = strand.service.of.arrivals
        if keys is not None and keys.clients is not None:
            self._think(strand.service.number, strand.root + keys.clients)

    def leave(self, strand: Strand) -> None:
        """Release the worker of a request, and admit the first queued request."""
        service = strand.service
        service.free += 1
        self._answer(strand)
        self._admit(service)

    def _admit(self, service: ServiceState) -> None:
        while service.line and service.free > 0 and not service.down:
            following = service.line.popleft()
            service.notes.waits(self.now, -1)
            if following.gone and service.of.drops:
                following.why = "dropped"
                following.failed = True
                self._answer(following)
                continue
            waited = self.now - following.since
            if waited:
                self._waited(following, service.resource, waited)
            service.free -= 1
            self._ready.append((following, 0))

    def _fail(self, strand: Strand, why: str) -> None:
        """Fail a request: release its locks, and end it."""
        main = strand.main
        main.failed, main.why = True, main.why or why
        if strand.held:
            for lock in reversed(strand.held):
                self.give_back(lock)
            strand.held = None
        if main is strand:
            self.leave(strand)
        else:
            self.joined(strand)

    def joined(self, strand: Strand) -> None:
        """End a branch; after the last one, continue the request."""
        main = strand.caller
        assert main is not None
        main.left -= 1
        if main.left:
            return
        if strand.waits:
            for resource, time in strand.waits.items():
                self._waited(main, resource, time)
        if main.main.failed:
            self._fail(main, main.main.why)
        else:
            self._ready.append((main, main.pc))

    # ---- asking

    def ask(self, strand: Strand, step: Ask) -> None:
        attempts = strand.attempts
        strand.attempts = attempts + 1
        self._set += 1
        strand.asking = self._set
        visit = mixed(mixed(strand.main.visit, step.key), attempts)
        child = Strand(self.services[step.service], strand.main.root, visit, self.now)
        child.caller, child.attempt = strand, strand.asking
        if attempts:
            child.service.notes.retries += 1
        if child.service.notes.here >= AT_ONCE:
            name = child.service.of.name
            raise Deadlock(f"{AT_ONCE:,} requests of {name} are in flight and none can finish (deadlock)")
        if step.timeout >= 0:
            self.when(self.now + step.timeout, self._late, (strand, strand.asking, child, step))
        self._enter(child)

    def _late(self, given: tuple[Strand, int, Strand, Ask]) -> None:
        """Time out an attempt that is still in flight."""
        strand, attempt, child, step = given
        if strand.asking != attempt:
            return
        strand.asking = 0
        child.gone = True
        child.service.notes.timed_out()
        self._waited(strand, self._given_up, step.timeout)
        if strand.attempts <= step.retries:
            self._again(strand, step)
        else:
            self._fail(strand, "timed out")

    def _again(self, strand: Strand, step: Ask) -> None:
        wait = step.first * step.times ** (strand.attempts - 1)
        if step.jitter and wait:
            main = strand.main
            wait *= 1.0 - step.jitter * self.draws[step.draw].at(main.root, mixed(main.visit, strand.attempts))
        wait = round(wait)
        if wait:
            self._waited(strand, self._retrying, wait)
        self.when(self.now + wait, self._retry, (strand, step))

    def _retry(self, given: tuple[Strand, Ask]) -> None:
        self.ask(*given)

    # ---- branches and locks

    def fork(self, strand: Strand, begins: Sequence[int]) -> None:
        """Begin branches."""
        for begin in begins:
            branch = Strand(strand.service, strand.root, strand.visit, self.now)
            branch.main, branch.caller = strand.main, strand
            self._ready.append((branch, begin))

    def taken(self, strand: Strand, step: Take) -> bool:
        """Acquire a lock; False if the strand has to wait for it."""
        lock = self._locks[step.lock]
        if not lock.taken:
            lock.taken = True
            strand.held = [*(strand.held or ()), step.lock]
            return True
        strand.since = self.now
        lock.line.append((strand, step.end))
        return False

    def give_back(self, number: int) -> None:
        lock = self._locks[number]
        lock.taken = False
        along, lock.along = lock.along, []
        self._ready.extend((strand, strand.pc) for strand in along)
        if not lock.line:
            return
        lock.taken = True
        first, _ = lock.line.popleft()
        self._locked(first, number)
        while lock.line and len(lock.along) < lock.group - 1:
            follower, end = lock.line.popleft()
            self._locked(follower, number, along=True)
            follower.pc = end
            follower.since = self.now
            lock.along.append(follower)
        self._ready.append((first, first.pc))

    def _locked(self, strand: Strand, number: int, *, along: bool = False) -> None:
        waited = self.now - strand.since
        if waited:
            self._waited(strand, len(self.program.resources) + number, waited)
        if not along:
            strand.held = [*(strand.held or ()), number]

    # ---- events

    def _begins(self, event: Any) -> None:
        service = self.services[event.service]
        if event.emptied >= 0:
            self.lookups[event.emptied] = 0
        elif event.hit is None:
            service.down = True
        else:
            for cache, whose in enumerate(self.program.caches):
                if whose.service == event.service:
                    self.hits[cache] = event.hit

    def _over(self, event: Any) -> None:
        service = self.services[event.service]
        if event.emptied >= 0:
            return
        if event.hit is None:
            service.down = False
            parked, service.parked = service.parked, []
            self._ready.extend((strand, strand.pc) for strand in parked)
            self._admit(service)
        else:
            for cache, whose in enumerate(self.program.caches):
                if whose.service == event.service:
                    self.hits[cache] = None
