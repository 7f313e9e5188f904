"""Services in a run: alone they are played at once; where they share capacities with others, on SimPy's clock with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hwsim.actors.services.play import Play
from hwsim.actors.services.stations import NEVER, Counts, Member, Serves
from hwsim.demand import Capacity, Cost
from hwsim.engine import Host, IssuedOp, Waits
from hwsim.engine.fast import Choice, choice_of, is_there
from hwsim.graph.opgraph import Label, Queue
from hwsim.results.services.answers import Answers, Rung, Services, Statement, answers_of
from hwsim.results.usage import Usage
from hwsim.spec.shelf import shared_by
from hwsim.ticks import FEMTO
from hwsim.workload.services.ladder import Ladder, ladder, statements
from hwsim.workload.services.program import ENDLESS, Program, Served, ServiceProgram, Station

if TYPE_CHECKING:
    from hwsim.actors.services.compiled import CompiledPlay

SLOW: Final = 3_000_000  # requests from which it pays even if it has to be compiled first, which takes half a minute
LARGE: Final = 100_000  # requests of a study from which compiled code pays, if it is there
RETRYING, GIVEN_UP = "the wait before a retry", "attempts that were given up"


def played(program: Program, slower: float = 1.0, choice: Choice | None = None) -> Play | CompiledPlay:
    """A program played to its end: many requests by compiled code, where there is some; the notes do not depend on it.

    choice: instead of what HWSIM_FAST says (see `hwsim.engine.fast`).
    """
    wanted = choice_of(choice)
    if program.compiles and is_there() and (wanted == "always" or (wanted == "auto" and _is_large(program))):
        from hwsim.actors.services.compiled import CompiledPlay, TooFar, is_kept

        if wanted == "always" or _requests(program) >= SLOW or is_kept():
            try:
                compiled = CompiledPlay(program, slower=slower)
                compiled.until(NEVER)
            except TooFar:  # Python's numbers have no end
                pass
            else:
                return compiled
    play = Play(program, slower=slower)
    play.until(NEVER)
    return play


def _is_large(program: Program) -> bool:
    """Whether the requests of the study so far are many."""
    tally = shared_by("requests")
    requests = _requests(program)
    if tally is None:
        return requests >= LARGE
    tally[""] = tally.get("", 0) + requests
    return int(tally[""]) >= LARGE


def _requests(program: Program) -> float:
    """Requests of a program, as far as that is known."""
    result = 0.0
    for load in program.loads:
        rates = [keys.rate or 0.0 for number in load.services if (keys := program.services[number].arrivals) is not None]
        come = math.fsum(rates) * load.until / FEMTO if load.until >= 0 else float("inf")
        result += min(come, load.requests) if load.requests >= 0 else come
    return result


class Running:
    """The services of a run, and after it what they come to."""

    def __init__(self, program: Program, capacities: Mapping[str, Capacity], slower: float = 1.0) -> None:
        self.program, self._capacities, self._slower = program, capacities, slower
        self.play: Play | CompiledPlay | None = None

    def actor(self, driver: Host) -> Waits:
        """The requests; each service that is alone on its capacities is an op from its first request to its last answer."""
        if all(station.kind != "issued" for station in self.program.stations):
            play = self.play = played(self.program, self._slower)
            for service, notes in zip(self.program.services, play.notes, strict=True):
                if notes.first >= 0:
                    label = driver.label(Label("requests", "service", "", service.name))
                    queue = driver.queue(Queue(f"{service.name}:requests", ""))
                    waits = driver.label(Label("no request yet", "start", "", service.name))
                    driver.issue([IssuedOp(waits, queue, time=notes.first), IssuedOp(label, queue, time=notes.end - notes.first)])
            yield driver.env.timeout(0)
            return
        beside = _Beside(driver, self.program)
        self.play = play = Play(self.program, slower=self._slower, issue=beside.station)
        beside.begin(play)
        yield driver.env.timeout(0)

    @property
    def end_s(self) -> float:
        """When the last request was over."""
        return 0.0 if self.play is None else max((notes.end for notes in self.play.notes), default=0) / FEMTO

    def services(self) -> Services:
        """Answers, limits and statements, once the run is over."""
        play, program = self.play, self.program
        if play is None:
            raise RuntimeError("services are over once the run is")
        steps = ladder(program, self._capacities)
        resources = [
            *program.resources,
            *(f"lock {lock.name}" for lock in program.locks),
            *(f"a worker of {service.name}" for service in program.services),
            RETRYING,
            GIVEN_UP,
        ]
        seconds = {name: each / self.end_s for name, each in self._seconds().items() if each and self.end_s}
        answers: list[Answers] = []
        for service, notes in zip(program.services, play.notes, strict=True):
            answers += answers_of(
                notes,
                name=service.name,
                choices=service.choices,
                resources=resources,
                steady=not program.events,
                closed=all(_is_closed(each) for each in program.services if each.arrivals is not None),
                stationary=_is_stationary(program),
                utilisation=_below_one([steps.utilisation, *seconds.values()]),
                workers=None if service.workers == ENDLESS else service.workers,
                left=notes.here,
            )
        return Services(
            answers=tuple(answers),
            ladder=tuple(_rungs(steps, seconds)),
            alone=steps.alone,
            end_s=self.end_s,
            stuck=_stuck(program, play),
            statements=tuple(Statement(*each) for each in statements(program)),
            never=steps.never,
        )

    def usage(self, rows: Sequence[Usage], makespan_s: float) -> tuple[Usage, ...]:
        """The use of each capacity with what the services drew; in use as long as all of it would have been."""
        seconds = self._seconds()
        return tuple(self._added(row, seconds.get(row.capacity, 0.0), makespan_s) for row in rows)

    def _seconds(self) -> dict[str, float]:
        """Seconds of all of each capacity that the services took, but for what was issued to the engine."""
        play, drawn = self.play, dict[str, float]()
        if play is None:
            return drawn
        for served, worked in zip(self.program.served, play.worked, strict=True):
            if served.cost is None or not served.body or self._is_issued(served):
                continue
            for name, amount in served.cost.demand.amounts:
                drawn[name] = drawn.get(name, 0.0) + amount / self._capacities[name].rate * worked / served.body
        end = max((notes.end for notes in play.notes), default=0)
        stations: Sequence[Counts] = play.stations
        for of, first in zip(self.program.stations, stations, strict=True):
            first.count(max(end, play.now))
            if of.kind == "shared" and any(demand.crowd is not None for demand in of.demands) and end > 0:
                drawn[of.name] = first.used(end) * end / FEMTO  # less, of an arm that has a choice
        return drawn

    def _is_issued(self, served: Served) -> bool:
        return served.station >= 0 and self.program.stations[served.station].kind == "issued"

    def _added(self, row: Usage, seconds: float, makespan_s: float) -> Usage:
        if seconds <= 0 or makespan_s <= 0:
            return row
        return replace(
            row,
            busy_fs=row.busy_fs + round(seconds * FEMTO),
            moved=row.moved + seconds * self._capacities[row.capacity].rate,
            utilisation=row.utilisation + seconds / makespan_s,
        )


def _below_one(utilisations: Sequence[float | None]) -> float | None:
    """Utilisation of the busiest resource, as asked or as used; None where that is not known."""
    return min(max([each for each in utilisations if each is not None], default=0.0), 0.999) or None


def _is_closed(service: ServiceProgram) -> bool:
    return service.arrivals is not None and service.arrivals.closed


def _is_stationary(program: Program) -> bool:
    """Whether requests come at one rate all the time."""
    keys = [service.arrivals for service in program.services if service.arrivals is not None]
    return all(each.day is None and each.trace is None for each in keys) and not program.events


def _rungs(steps: Ladder, used: Mapping[str, float]) -> Iterator[Rung]:
    for step in steps.steps:
        service, demand = max(step.demands, key=lambda each: each[1])
        yield Rung(step.name, step.kind, service, demand, step.limit(service), step.utilisation, used.get(step.name))


def _stuck(program: Program, play: Play | CompiledPlay) -> str:
    """Services with requests that nothing moves any more, in words; "" if there is none."""
    parts = []
    for service, notes in zip(program.services, play.notes, strict=True):
        left, waiting = notes.here, notes.line
        if not left:
            continue
        held = "" if service.workers == ENDLESS else f", all {service.workers:,} workers held" if waiting else ""
        parts.append(f"{left:,} requests of {service.name} ({waiting:,} in its line{held})")
    return "; ".join(parts)


class _Beside:
    """Plays services instant by instant on the engine's clock."""

    def __init__(self, driver: Host, program: Program) -> None:
        self._driver, self._env, self._program = driver, driver.env, program
        self._play: Play | None = None
        self._armed: Any = None

    def begin(self, play: Play) -> None:
        """From now on."""
        self._play = play
        self._arm()

    def station(self, _: Station, number: int) -> Serves:
        """A station whose work is issued."""
        return _Issuing(self, self._driver, self._program, number)

    def ended(self, member: Member) -> None:
        """Work has ended: its request goes on."""
        play = self._play
        if play is not None:
            play.go_on(int(self._env.now), member)
            self._arm()

    def _arm(self) -> None:
        """Be called when something happens next."""
        play = self._play
        if play is None or (due := play.next()) >= NEVER:
            return
        wake = self._env.timeout(max(0, due - int(self._env.now)))
        self._armed = wake
        wake.callbacks.append(self._wake)

    def _wake(self, wake: Any) -> None:
        if wake is self._armed and self._play is not None:
            self._play.until(int(self._env.now) + 1)
            self._arm()


class _Issuing:
    """Work that draws from what others draw from, too: issued to the engine op by op."""

    def __init__(self, beside: _Beside, driver: Host, program: Program, number: int) -> None:
        self._beside, self._driver = beside, driver
        self.due, self.area, self.busy = NEVER, 0, 0
        self._there = self._last = 0
        self._ops: list[IssuedOp] = []
        self._bodies: list[int] = []
        flows = [each for each in program.served if each.station == number]
        for each in sorted(flows, key=lambda one: one.flow):
            cost = each.cost or Cost(replace(program.stations[number].demands[each.flow]))
            service = program.services[each.service].name
            label = driver.label(Label(each.name, each.kind, each.device, service))
            self._ops.append(IssuedOp(label, -1, driver.cost(replace(cost, demand=replace(cost.demand, latency=0.0)))))
            self._bodies.append(max(each.body, 1))

    def join(self, flow: int, time: int, member: Member, now: int) -> None:
        """Issue the work of a member."""
        self.count(now)
        self._there += 1
        ended, _ = self._driver.issue([self._ops[flow]._replace(size=time / self._bodies[flow])])
        ended.callbacks.append(lambda _: self._ends(member))

    def _ends(self, member: Member) -> None:
        self.count(int(self._driver.env.now))
        self._there -= 1
        self._beside.ended(member)

    def leave(self, now: int) -> list[Member]:  # noqa: ARG002
        """Nobody: the engine says when work ends."""
        return []

    def count(self, now: int) -> int:
        """Members there; time is counted up to now."""
        self.area += self._there * (now - self._last)
        self._last = now
        return self._there

    def used(self, end: int) -> float:  # noqa: ARG002
        """Not known here: the run's usage has it."""
        return 0.0
