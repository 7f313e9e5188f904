"""Services as an actor of a run: simulated separately, or on the clock of the engine if they share capacities with jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hwsim.demand import Capacity, Cost, Demand, Unit
from hwsim.engine import Actor, Host, IssuedOp, Waits
from hwsim.engine.driver import AFTER
from hwsim.engine.fast import Choice, uses_compiled_code
from hwsim.families.services.actors.arms import Arms
from hwsim.families.services.actors.simulation import ServiceSimulation
from hwsim.families.services.actors.stations import NEVER, Fifo, Member, Serves
from hwsim.families.services.results.responses import (
    GIVEN_UP,
    RETRYING,
    LruCacheResult,
    ServiceResponses,
    Services,
    Statement,
    ThroughputLimit,
    answers_of,
)
from hwsim.families.services.results.statistics import ServiceNotes
from hwsim.families.services.told import ServicesOutcome
from hwsim.families.services.workload.program import ENDLESS, Branch, ServedStatement, ServiceProgram, ServicesProgram, Station
from hwsim.families.services.workload.throughput_limits import Ladder, ladder, statements
from hwsim.graph.opgraph import Label, OpGraph, Queue
from hwsim.results.steady_state import refuse_empty
from hwsim.results.usage import Usage
from hwsim.spec import Warning
from hwsim.ticks import FEMTO

if TYPE_CHECKING:
    from hwsim.families.services.actors.compiled import CompiledSimulation

LARGE: Final = 500  # number of requests from which the C++ simulator is faster


def simulate_services(
    program: ServicesProgram, slower: float = 1.0, choice: Choice | None = None
) -> ServiceSimulation | CompiledSimulation:
    """Simulate a program to its end, in C++ if it has many requests; the results are identical.

    Args:
        program: services.
        slower: factor on the time of all work.
        choice: replaces the setting of HWSIM_FAST (see `hwsim.engine.fast`).
    """
    if program.compiles and uses_compiled_code(_requests(program), choice=choice, large=LARGE):
        from hwsim.families.services.actors.compiled import CompiledSimulation, TooFar

        try:
            compiled = CompiledSimulation(program, slower=slower)
            compiled.until(NEVER)
        except TooFar:  # integers of Python have no limit
            pass
        else:
            return compiled
    play = ServiceSimulation(program, slower=slower)
    play.until(NEVER)
    return play


def _requests(program: ServicesProgram) -> float:
    """Return the expected number of requests of a program; infinite if it is unknown."""
    result = 0.0
    for load in program.loads:
        rates = [keys.rate or 0.0 for number in load.services if (keys := program.services[number].arrivals) is not None]
        expected = math.fsum(rates) * load.until / FEMTO if load.until >= 0 else float("inf")
        result += min(expected, load.requests) if load.requests >= 0 else expected
    return result


class ServicesActor:
    """The services of a run: their simulation and, after it, their results."""

    def __init__(self, program: ServicesProgram, capacities: Mapping[str, Capacity], slower: float = 1.0) -> None:
        self.program, self._capacities, self._slower = program, capacities, slower
        self.play: ServiceSimulation | CompiledSimulation | None = None
        self._kept = False  # whether issued work becomes ops, which the run counts itself

    def actor(self, driver: Host) -> Waits:
        """Simulate the requests; each service becomes an op from its first request to its last response."""
        if not any(station.issued for station in self.program.stations):
            play = self.play = simulate_services(self.program, self._slower)
            for chain in _spans(driver, self.program, play):
                driver.issue(chain)
            yield driver.env.timeout(0)
            return
        beside = _Beside(driver, self.program)
        self._kept = not beside.visits
        self.play = play = ServiceSimulation(self.program, slower=self._slower, issue=beside.station)
        beside.begin(play)
        yield driver.env.timeout(0)

    def enter(self, graph: OpGraph, *, clocked: bool) -> tuple[OpGraph, Sequence[Actor]]:  # noqa: ARG002
        """Return the unchanged graph, and one actor for all services."""
        return graph, [self.actor]

    def told(self) -> ServicesOutcome:
        """Return the results after the run."""
        found = self.services()
        refuse_empty(answer.name for answer in found.answers if answer.is_warm_up)
        return ServicesOutcome(found, tuple(self.warnings()))

    @property
    def end_s(self) -> float:
        """Time at which the last request ended (s)."""
        return 0.0 if self.play is None else max((notes.end for notes in self.play.notes), default=0) / FEMTO

    def services(self) -> Services:
        """Return responses, limits and statements after the run."""
        play, program = self.play, self.program
        if play is None:
            raise RuntimeError("results of services are available after the run")
        steps = ladder(program, self._capacities)
        resources = [
            *program.resources,
            *(f"lock {lock.name}" for lock in program.locks),
            *(f"{service.name} workers" for service in program.services),
            RETRYING,
            GIVEN_UP,
        ]
        seconds = {name: time / self.end_s for name, time in self._seconds().items() if time and self.end_s}
        answers: list[ServiceResponses] = []
        closed = all(_is_closed(service) for service in program.services if service.arrivals is not None)
        even = not program.draws and all(_is_even(service) for service in program.services)
        kept = not any(notes.refused or notes.dropped or notes.failed or notes.timeouts for notes in play.notes)
        over = steps.overloaded(even=even) if kept and not closed and program.has_one_rate else frozenset()
        steady = program.may_be_steady(round(self.end_s * FEMTO))
        for service, notes in zip(program.services, play.notes, strict=True):
            answers += answers_of(
                notes,
                service,
                resources,
                steady=steady,
                closed=closed,
                overloaded=service.name in over,
                utilization=None if closed or even or not steady else _below_one([steps.utilization, *seconds.values()]),
            )
        return Services(
            answers=tuple(answers),
            throughput_limits=tuple(_rungs(steps, seconds)),
            unloaded_s=steps.alone,
            end_s=self.end_s,
            deadlock=_stuck(program, play),
            statements=tuple(Statement(*statement) for statement in statements(program)),
            endless=steps.never,
            caches=tuple(_held(program)),
        )

    def warnings(self) -> Iterator[Warning]:
        """Yield warnings after the run."""
        from hwsim.families.services.workload.suspicious import suspicions

        entered = {}
        for of, notes in zip(self.program.services, self._notes(), strict=True):
            entered[of.name] = notes.entered
            if of.arrivals is not None:
                yield from of.arrivals.part_of_load(of.name, notes.came_count, max(notes.last_came - of.start, 0) / FEMTO)
        yield from suspicions(self.program, self._capacities, dict(ladder(self.program, self._capacities).alone), entered)

    def _notes(self) -> Sequence[ServiceNotes]:
        return self.play.notes if self.play is not None else [ServiceNotes(0, 0) for _ in self.program.services]

    def usage(self, rows: Sequence[Usage], makespan_fs: int) -> tuple[Usage, ...]:
        """Return the usage of each capacity including the work of services; busy is the time at full rate."""
        seconds, moved = self._seconds(), self._moved()
        return tuple(self._added(row, seconds.get(row.capacity, 0.0), moved.get(row.capacity, {}), makespan_fs) for row in rows)

    def _moved(self) -> dict[str, dict[Unit, float]]:
        """Return the amounts that services, but not ops, moved through each capacity, by unit."""
        result: dict[str, dict[Unit, float]] = {}
        for served, worked in zip(self.program.served, () if self.play is None else self.play.worked, strict=True):
            if served.cost is not None and served.body and not self._is_kept(served):
                for name, amount, unit in served.cost.moved:
                    units = result.setdefault(name, {})
                    units[unit] = units.get(unit, 0.0) + amount * worked / served.body
        return result

    def _seconds(self) -> dict[str, float]:
        """Return the time that services, but not ops, used each entire capacity (s)."""
        play, drawn = self.play, dict[str, float]()
        if play is None:
            return drawn
        for served, worked in zip(self.program.served, play.worked, strict=True):
            if served.cost is None or not served.body or self._is_kept(served):
                continue
            for name, amount in served.cost.demand.amounts:
                drawn[name] = drawn.get(name, 0.0) + amount / self._capacities[name].rate * worked / served.body
        end = max((notes.end for notes in play.notes), default=0)
        stations: Sequence[Any] = play.stations
        for of, first in zip(self.program.stations, stations, strict=True):
            first.count(max(end, play.now))
            queues = {demand.crowd.capacity for demand in of.demands if demand.crowd is not None}
            in_turn, at_once = (
                of.kind == "arms" and not (of.issued and self._kept),
                of.kind == "shared" and queues and not of.issued,
            )
            if end > 0 and (in_turn or at_once):
                drawn[of.name] = first.used(end) * end / FEMTO  # less than the demand if an arm chooses near accesses
            drawn |= {
                name: min(drawn[name], end / FEMTO) for name in queues & drawn.keys()
            }  # concurrent accesses take less than their sum
        return drawn

    def _is_kept(self, served: ServedStatement) -> bool:
        return self._kept and served.station >= 0 and self.program.stations[served.station].issued

    def _added(self, row: Usage, seconds: float, moved: Mapping[Unit, float], makespan_fs: int) -> Usage:
        if seconds <= 0 or makespan_fs <= 0:
            return row
        capacity = self._capacities[row.capacity]
        units = set(moved) | ({row.unit} if row.moved else set())
        if moved and (len(units) == 1 or capacity.unit == "1"):
            unit: Unit = "1" if capacity.unit == "1" else units.pop()
            amount = math.fsum(moved.values())
        else:
            unit, amount = row.unit, seconds * capacity.rate
        return replace(
            row,
            unit=unit,
            busy_fs=min(row.busy_fs + round(seconds * FEMTO), makespan_fs),
            moved=row.moved + amount,
            utilization=row.utilization + seconds / (makespan_fs / FEMTO),
        )


def _held(program: ServicesProgram) -> Iterator[LruCacheResult]:
    for cache in program.caches:
        if cache.holds is not None and cache.filling is not None:
            yield LruCacheResult(program.services[cache.service].name, *cache.holds, cache.filling.hit, cache.filling.full)


def _below_one(utilizations: Sequence[float | None]) -> float | None:
    """Return the largest of the utilizations, at most 0.999; None if unknown or 0."""
    return min(max([utilization for utilization in utilizations if utilization is not None], default=0.0), 0.999) or None


def _is_closed(service: ServiceProgram) -> bool:
    return service.arrivals is not None and service.arrivals.closed


def _is_even(service: ServiceProgram) -> bool:
    """Whether requests arrive at constant intervals and execute the same steps."""
    comes = service.arrivals is None or service.arrivals.every is not None
    return comes and not any(isinstance(step, Branch) for step in service.steps)


def _rungs(steps: Ladder, used: Mapping[str, float]) -> Iterator[ThroughputLimit]:
    for step in steps.steps:
        service, demand = max(step.demands, key=lambda row: row[1])
        yield ThroughputLimit(step.name, step.kind, service, demand, step.limit(service), step.utilization, used.get(step.name))


def _stuck(program: ServicesProgram, play: ServiceSimulation | CompiledSimulation) -> str:
    """Return a description of requests that wait forever, or "" if there are none."""
    parts = []
    for service, notes in zip(program.services, play.notes, strict=True):
        left, waiting = notes.here, notes.line
        if not left:
            continue
        held = "" if service.workers == ENDLESS else f", all {service.workers:,} workers busy" if waiting else ""
        parts.append(f"{left:,} requests of {service.name} ({waiting:,} queued{held})")
    return "; ".join(parts)


class _Beside:
    """The simulation of services as a process of the engine."""

    def __init__(self, driver: Host, program: ServicesProgram) -> None:
        self._driver, self._env, self._program = driver, driver.env, program
        self._play: ServiceSimulation | None = None
        self._armed: Any = None
        self._armed_for = NEVER
        self._closed = False
        self.under_way = 0  # number of works in the engine
        demands = [demand for station in program.stations if station.issued for demand in station.demands]
        self.visits = not any(map(_is_lighter_together, demands))

    def begin(self, play: ServiceSimulation) -> None:
        """Begin the simulation now."""
        self._play = play
        self._go_on(int(self._env.now))

    def station(self, of: Station, number: int) -> Serves:
        """Return a station whose work the engine serves: all members, or those at a server."""
        engine = (_Visiting if self.visits else _Issuing)(self, self._driver, self._program, number)
        if of.kind not in ("fifo", "arms"):
            return engine
        line: Fifo | Arms = Fifo(of.servers, engine) if of.kind == "fifo" else Arms(of, self._program.seed, engine)

        def over(member: Member, now: int) -> None:
            line.over(member, now)
            if self._play is not None:
                self._play.leave_station(number, now)
                self._go_on(now)

        engine.over = over
        return line

    def ended(self, member: Member, now: int) -> None:
        """Continue a request whose work has ended."""
        play = self._play
        if play is not None:
            play.go_on(now, member)
            self._go_on(now)

    def _go_on(self, instant: int) -> None:
        """Schedule a wake-up at the next event; without further events, end the services."""
        play = self._play
        if play is None:
            return
        due = play.next()
        if due >= NEVER:
            if not self.under_way and not self._closed:
                self._closed = True
                for chain in _spans(self._driver, self._program, play):
                    self._driver.past(chain)
        elif due < self._armed_for:
            wake = self._env.event()
            wake._ok, wake._value = True, None  # noqa: SLF001  (a triggered event, like a Timeout of SimPy)
            wake.callbacks.append(self._wake)
            self._env.schedule(wake, AFTER, max(due, instant) - int(self._env.now))
            self._armed, self._armed_for = wake, due

    def _wake(self, wake: Any) -> None:
        if wake is self._armed and self._play is not None:
            now = int(self._env.now)
            self._armed, self._armed_for = None, NEVER
            self._play.until(now + 1)
            self._go_on(now)


def _is_lighter_together(demand: Demand) -> bool:
    """Whether concurrent work uses less of a device than alone; the share of jobs is then known only if all work is kept."""
    crowd = demand.crowd
    return crowd is not None and crowd.slowness(2 * crowd.depth)[1] < 1


class _Engine:
    """The base of stations whose work the engine serves, because jobs use their capacities, too."""

    def __init__(self, beside: _Beside, driver: Host, program: ServicesProgram, number: int) -> None:
        self._beside, self._driver, self.over = beside, driver, beside.ended
        self.due, self.area, self.busy = NEVER, 0, 0
        self._there = self._last = 0
        works = sorted((served for served in program.served if served.station == number), key=lambda served: served.flow)
        self._make([(work, _bare(work, program)) for work in works], program)

    def _make(self, works: Sequence[tuple[ServedStatement, Cost]], program: ServicesProgram) -> None:
        raise NotImplementedError

    def _begins(self, now: int) -> None:
        self.count(now)
        self._there += 1
        self._beside.under_way += 1

    def _ends(self, member: Member, now: int) -> None:
        self.count(now)
        self._there -= 1
        self._beside.under_way -= 1
        self.over(member, now)

    def leave(self, now: int) -> list[Member]:  # noqa: ARG002
        """Return no members, because the engine reports the end of work."""
        return []

    def count(self, now: int) -> int:
        """Update the statistics, and return the number of members."""
        self.area += self._there * (now - self._last)
        self._last = now
        return self._there

    def used(self, end: int) -> float:  # noqa: ARG002
        """Return 0: the run counts the usage of issued work."""
        return 0.0


class _Visiting(_Engine):
    """A station whose work leaves no ops in the run."""

    def _make(self, works: Sequence[tuple[ServedStatement, Cost]], program: ServicesProgram) -> None:  # noqa: ARG002
        self._visitors = [self._driver.visitor(cost) for _, cost in works]

    def join(self, flow: int, time: int, member: Member, now: int) -> None:
        """Begin work."""
        self._begins(now)
        self._driver.visit(self._visitors[flow], time, partial(self._ends, member))


class _Issuing(_Engine):
    """A station whose work becomes ops of the run."""

    def _make(self, works: Sequence[tuple[ServedStatement, Cost]], program: ServicesProgram) -> None:
        self._bodies = [max(work.body, 1) for work, _ in works]
        self._ops: list[IssuedOp] = []
        for work, cost in works:
            label = self._driver.label(Label(work.name, work.kind, work.device, program.services[work.service].name))
            self._ops.append(IssuedOp(label, -1, self._driver.cost(cost)))

    def join(self, flow: int, time: int, member: Member, now: int) -> None:
        """Issue the work of a member as an op."""
        self._begins(now)
        ended, _ = self._driver.issue([self._ops[flow]._replace(size=time / self._bodies[flow])])
        ended.callbacks.append(lambda _: self._ends(member, int(self._driver.env.now)))


def _bare(served: ServedStatement, program: ServicesProgram) -> Cost:
    """Return the cost of a statement without its latency, which the simulation of services adds."""
    demand = replace(program.stations[served.station].demands[served.flow], latency=0.0)
    return replace(served.cost or Cost(demand), demand=demand)


def _spans(driver: Host, program: ServicesProgram, play: ServiceSimulation | CompiledSimulation) -> Iterator[list[IssuedOp]]:
    """Yield for each service with requests an op before the first one, and an op until the last response."""
    for service, notes in zip(program.services, play.notes, strict=True):
        if notes.first >= 0:
            label = driver.label(Label("requests", "service", "", service.name))
            queue = driver.queue(Queue(f"{service.name}:requests", ""))
            waits = driver.label(Label("no request yet", "start", "", service.name))
            yield [IssuedOp(waits, queue, time=notes.first), IssuedOp(label, queue, time=max(notes.end - notes.first, 0))]
