"""The ladder of limits, before any run: what a request takes of each resource, and how many a second that allows at most.

    rate <= c / D      D: what a request from outside takes of it, its calls of other services included; c: what there is

Exact for capacities (operational analysis: Denning and Buzen, "The operational analysis of queueing network models", ACM
Computing Surveys 10(3), 1978). For workers and locks D is how long a request holds them if it never waits, so that the limit is
one that is never passed, and may not be reached; a lock's `group` is full. Attempts that are made again, and refused ones, are
not counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

import numpy as np

from hwsim.demand import Capacity, Cost, rates_of
from hwsim.families.services.workload.program import (
    ENDLESS,
    Ask,
    Branch,
    End,
    Fork,
    Give,
    Join,
    Jump,
    Keep,
    Number,
    Program,
    Serve,
    ServiceProgram,
    Take,
)  # fmt: skip
from hwsim.families.services.workload.stations import long_queue
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.workload.load.draws import Distribution

GRID: Final = 4096  # equal parts of a distribution, for the mean of a bent line
_SAME: Final = 1e-9  # two utilisations
_ROUNDS: Final = 200  # of services that ask each other
_NEVER_ENDS: Final = 1e6  # visits of a service by one request


@dataclass(frozen=True, slots=True)
class Step:
    """A resource on the ladder.

    Args:
        kind: capacity, workers, lock or clients.
        demands: seconds of it that a request of each service with arrivals takes.
        rates: requests a second that come there from outside; None where only the run tells.
    """

    name: str
    kind: str
    demands: tuple[tuple[str, float], ...]
    rates: tuple[tuple[str, float | None], ...]

    @property
    def utilisation(self) -> float | None:
        """Part of it that is used; None where the rates are not known."""
        rates = dict(self.rates)
        parts = [(demand, rates[name]) for name, demand in self.demands]
        if any(rate is None and demand for demand, rate in parts):
            return None
        return math.fsum(demand * rate for demand, rate in parts if rate is not None)

    def limit(self, name: str) -> float:
        """Requests a second of a service, the others' rates as they are in proportion; infinite where it takes none of it."""
        demands, rates = dict(self.demands), dict(self.rates)
        mine = rates.get(name)
        if mine is None or any(rate is None for rate in rates.values()):
            demand = demands.get(name, 0.0)
            return 1.0 / demand if demand > 0 else math.inf
        used = self.utilisation
        return mine / used if used else math.inf


@dataclass(frozen=True, slots=True)
class Ladder:
    """All resources, the one with the lowest limit first.

    Args:
        alone: seconds that a request of each service takes if it never waits, in the mean.
        never: services that ask each other without an end.
    """

    steps: tuple[Step, ...]
    alone: tuple[tuple[str, float], ...]
    never: tuple[str, ...] = ()

    @property
    def utilisation(self) -> float | None:
        """Utilisation of the busiest resource; None where the rates are not known."""
        known = [used for step in self.steps if (used := step.utilisation) is not None]
        return max(known, default=None)

    def overloaded(self, *, even: bool) -> frozenset[str]:
        """Services of whose requests more come than a resource allows, or, unless they come and are served evenly, as many."""
        most = 1 + _SAME if even else 1 - _SAME
        return frozenset(
            name
            for step in self.steps
            if (used := step.utilisation) is not None and used > most
            for name, demand in step.demands
            if demand > 0
        )


def ladder(program: Program, capacities: Mapping[str, Capacity]) -> Ladder:
    """The ladder of a program."""
    walks = [_Walk(program, service) for service in program.services]
    alone = _alone(walks)
    entries = [number for load in program.loads for number in load.services]
    visits = {entry: _visits(walks, entry) for entry in entries}
    never = tuple(program.services[entry].name for entry in entries if max(visits[entry], default=0.0) > _NEVER_ENDS)
    rates = tuple((program.services[entry].name, _rate(program, entry)) for entry in entries)
    taken: dict[tuple[str, str], dict[int, float]] = {}
    for entry in entries:
        for number, often in enumerate(visits[entry]):
            for (kind, name), amount in walks[number].takes(capacities, alone).items():
                of = taken.setdefault((kind, name), {})
                of[entry] = of.get(entry, 0.0) + often * amount
    steps = [
        Step(name, kind, tuple((program.services[entry].name, amount) for entry, amount in of.items() if amount > 0), rates)
        for (kind, name), of in taken.items()
        if any(of.values())
    ]
    first = program.services[entries[0]].name if entries else ""
    steps.sort(key=lambda step: (min((step.limit(name) for name, _ in rates), default=math.inf), step.name, first))
    named = tuple((service.name, time) for service, time in zip(program.services, alone, strict=True))
    return Ladder(tuple(steps), named, never)


def _rate(program: Program, entry: int) -> float | None:
    keys = program.services[entry].arrivals
    return None if keys is None else keys.rate


class _Walk:
    """Times that a request of a service does each step, in the mean."""

    def __init__(self, program: Program, service: ServiceProgram) -> None:
        self.program, self.service = program, service
        steps = service.steps
        self.often = [0.0] * (len(steps) + 1)
        self.often[0] = 1.0
        self.branches: set[int] = set()
        self.done = [1.0] * len(steps)  # times that a step is done for one who comes to it: of a lock's group one does it for all
        groups: list[int] = []
        kept: dict[int, Distribution] = {}
        self._kept = kept
        for at, step in enumerate(steps):
            often = self.often[at]
            self.done[at] = 1.0 / math.prod(groups)
            match step:
                case Branch(limits=limits, to=to):
                    before = 0.0
                    for limit, target in zip(limits, to, strict=True):
                        self.often[target] += often * max(0.0, limit - before)
                        before = max(before, limit)
                    self.often[at + 1] += often * (1.0 - before)
                case Fork(branches=branches, to=to):
                    for entry in (*branches, to):
                        self.often[entry] += often
                case Jump(to=to):
                    self.often[to] += often
                case Join() | End():
                    pass
                case _:
                    if isinstance(step, Take):
                        groups.append(program.locks[step.lock].group)
                    elif isinstance(step, Give):
                        groups.pop()
                    elif isinstance(step, Keep):
                        kept[step.slot] = program.draws[step.draw].distribution
                    self.often[at + 1] += often

    def size(self, size: Number) -> float:
        """The mean of a number."""
        if size.is_fixed:
            return size.fixed
        distribution = self.program.draws[size.draw].distribution if size.draw >= 0 else self._kept[size.slot]
        if len(size.lines) == 1:
            return size.of(distribution.mean)
        values = distribution.at((np.arange(GRID) + 0.5) / GRID).tolist()
        return math.fsum(size.of(value) for value in values) / GRID

    def asks(self) -> dict[int, float]:
        """Requests to each service, at least: the groups of locks are full."""
        result: dict[int, float] = {}
        for often, done, step in zip(self.often, self.done, self.service.steps, strict=False):
            if isinstance(step, Ask):
                result[step.service] = result.get(step.service, 0.0) + often * done
        return result

    def own(self, at: int) -> float:
        """Seconds of a step's work alone."""
        step = self.service.steps[at]
        if not isinstance(step, Serve):
            return 0.0
        served = self.program.served[step.cost]
        return (served.latency + served.body * self.size(step.size)) / FEMTO

    def takes(self, capacities: Mapping[str, Capacity], alone: list[float]) -> dict[tuple[str, str], float]:
        """Seconds of each resource that one request of the service takes."""
        result: dict[tuple[str, str], float] = {}

        def add(kind: str, name: str, seconds: float) -> None:
            result[kind, name] = result.get((kind, name), 0.0) + seconds

        held: list[tuple[int, int]] = []
        for at, step in enumerate(self.service.steps):
            often = self.often[at]
            if isinstance(step, Serve) and (cost := self.program.served[step.cost].cost) is not None:
                size, queue = self.size(step.size) * self.done[at], cost.demand.crowd
                for name, amount in cost.demand.amounts:
                    if queue is None or name != queue.capacity:
                        add("capacity", name, often * size * amount / capacities[name].rate)
                if queue is not None:  # with as long a queue as there can be
                    least = long_queue(cost.demand, rates_of(capacities.values()), _longest(self.program, queue.capacity))
                    add("capacity", queue.capacity, often * size * least)
            if isinstance(step, Take):
                held.append((step.lock, at))
            elif isinstance(step, Give):
                held.pop()
            for lock, since in held:
                mine = self.own(at) + (alone[step.service] if isinstance(step, Ask) else 0.0)
                if at > since and mine:
                    add("lock", self.program.locks[lock].name, often * mine / self.program.locks[lock].group)
        if self.service.workers < ENDLESS:
            number = self.program.services.index(self.service)
            add("workers", self.service.name, alone[number] / self.service.workers)
        return result


def _longest(program: Program, capacity: str) -> int | None:
    """Accesses that workers, or clients, have under way at a device at once, at most; None where nothing bounds them."""
    longest = 0
    targets = {step.service for service in program.services for step in service.steps if isinstance(step, Ask)}
    for number, service in enumerate(program.services):
        clients = None if service.arrivals is None or number in targets else service.arrivals.clients
        most = service.workers if clients is None else min(service.workers, clients)
        crowds = [
            cost.demand.crowd for step in service.steps if isinstance(step, Serve) and (cost := program.served[step.cost].cost)
        ]
        depths = [crowd.depth for crowd in crowds if crowd is not None and crowd.capacity == capacity]
        if depths:
            if most >= ENDLESS or any(isinstance(step, Fork) for step in service.steps):
                return None
            longest += most * max(depths)
    return longest or None


def _alone(walks: list[_Walk]) -> list[float]:
    """Seconds of a request of each service that never waits; of branches side by side the longest, by their means."""
    alone = [0.0] * len(walks)
    for _ in range(_ROUNDS):
        after = [_time(walk, 0, len(walk.service.steps), alone) for walk in walks]
        if all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(alone, after, strict=True)):
            break
        alone = after
    return alone


def _time(walk: _Walk, first: int, last: int, alone: list[float]) -> float:
    """Seconds of the steps of a stretch, as often as a request does them."""
    steps, at, total = walk.service.steps, first, 0.0
    while at < last:
        step = steps[at]
        if isinstance(step, Fork):
            edges = [*step.branches, step.to]
            total += max(_time(walk, firsts, second, alone) for firsts, second in pairwise(edges))
            at = step.to
            continue
        total += walk.often[at] * (walk.own(at) + (alone[step.service] if isinstance(step, Ask) else 0.0))
        at += 1
    return total


def asks_of(program: Program) -> list[list[float]]:
    """Requests to each service (column) that one of a service (row) leads to at once, in the mean."""
    rows = [[0.0] * len(program.services) for _ in program.services]
    for row, service in zip(rows, program.services, strict=True):
        for number, often in _Walk(program, service).asks().items():
            row[number] = often
    return rows


def _visits(walks: list[_Walk], entry: int) -> list[float]:
    """Times that a request from outside comes to each service."""
    asks = [walk.asks() for walk in walks]
    visits = [0.0] * len(walks)
    for _ in range(_ROUNDS):
        after = [0.0] * len(walks)
        after[entry] = 1.0
        for number, often in enumerate(visits):
            for service, times in asks[number].items():
                after[service] += often * times
        if all(math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-300) for a, b in zip(visits, after, strict=True)):
            return after
        visits = after
        if max(visits) > 1e12:
            return [math.inf] * len(walks)
    return visits


def statements(program: Program) -> Iterator[tuple[str, str, str, float, float, bool, Cost | None]]:
    """Service, name, device, seconds alone, times a request, whether it is drawn, and cost of each statement that takes time."""
    for service in program.services:
        walk = _Walk(program, service)
        for at, step in enumerate(service.steps):
            if isinstance(step, Serve):
                served = program.served[step.cost]
                drawn = not step.size.is_fixed
                yield service.name, served.name, served.device, walk.own(at), walk.often[at], drawn, served.cost
