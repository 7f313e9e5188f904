"""Throughput limits of services without a simulation: the service demand of each resource, and the rate that it allows.

    rate <= c / D      D: service demand of a request from outside, with its calls of other services;  c: amount of the resource

The limits are exact for capacities. For workers and locks, D is how long a request without waiting holds them, so these limits
are upper bounds that may not be reached; a lock's `group` is assumed full. Retries and rejected attempts are not counted.

Source: operational analysis: Denning and Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
10(3), 1978.
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
    Serve,
    ServiceProgram,
    ServicesProgram,
    StepNumber,
    Take,
)  # fmt: skip
from hwsim.families.services.workload.stations import long_queue
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.workload.load.draws import Distribution

GRID: Final = 4096  # equal parts of a distribution for the average of a piecewise linear function
_SAME: Final = 1e-9  # difference of two utilizations
_ROUNDS: Final = 200  # maximum number of iterations over services that call each other
_NEVER_ENDS: Final = 1e6  # visits of a service per request from outside that count as endless


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """A resource with its service demands.

    Args:
        kind: capacity, workers or lock.
        demands: service demand of a request of each service with arrivals (s).
        rates: arrival rate of each of these services (1/s); None if only a run determines it.
    """

    name: str
    kind: str
    demands: tuple[tuple[str, float], ...]
    rates: tuple[tuple[str, float | None], ...]

    @property
    def utilization(self) -> float | None:
        """Utilization at the arrival rates; None if a rate is unknown."""
        rates = dict(self.rates)
        parts = [(demand, rates[name]) for name, demand in self.demands]
        if any(rate is None and demand for demand, rate in parts):
            return None
        return math.fsum(demand * rate for demand, rate in parts if rate is not None)

    def limit(self, name: str) -> float:
        """Return the maximum rate of a service (1/s), with the rates of the others in proportion; infinite without demand."""
        demands, rates = dict(self.demands), dict(self.rates)
        mine = rates.get(name)
        if mine is None or any(rate is None for rate in rates.values()):
            demand = demands.get(name, 0.0)
            return 1.0 / demand if demand > 0 else math.inf
        used = self.utilization
        return mine / used if used else math.inf


@dataclass(frozen=True, slots=True)
class Ladder:
    """The throughput limits of all resources, the lowest first.

    Args:
        alone: average service time of a request of each service without waiting (s).
        never: services whose requests cause endless further requests.
    """

    steps: tuple[ResourceDemand, ...]
    alone: tuple[tuple[str, float], ...]
    never: tuple[str, ...] = ()

    @property
    def utilization(self) -> float | None:
        """Utilization of the busiest resource; None if all are unknown."""
        known = [used for step in self.steps if (used := step.utilization) is not None]
        return max(known, default=None)

    def overloaded(self, *, even: bool) -> frozenset[str]:
        """Return the services whose load exceeds a limit or, unless requests arrive and are served evenly, reaches it."""
        most = 1 + _SAME if even else 1 - _SAME
        return frozenset(
            name
            for step in self.steps
            if (used := step.utilization) is not None and used > most
            for name, demand in step.demands
            if demand > 0
        )


def ladder(program: ServicesProgram, capacities: Mapping[str, Capacity]) -> Ladder:
    """Return the throughput limits of a program."""
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
                demands = taken.setdefault((kind, name), {})
                demands[entry] = demands.get(entry, 0.0) + often * amount
    steps = [
        ResourceDemand(
            name, kind, tuple((program.services[entry].name, amount) for entry, amount in demands.items() if amount > 0), rates
        )
        for (kind, name), demands in taken.items()
        if any(demands.values())
    ]
    first = program.services[entries[0]].name if entries else ""
    steps.sort(key=lambda step: (min((step.limit(name) for name, _ in rates), default=math.inf), step.name, first))
    named = tuple((service.name, time) for service, time in zip(program.services, alone, strict=True))
    return Ladder(tuple(steps), named, never)


def _rate(program: ServicesProgram, entry: int) -> float | None:
    keys = program.services[entry].arrivals
    return None if keys is None else keys.rate


class _Walk:
    """The average number of executions of each step per request of a service."""

    def __init__(self, program: ServicesProgram, service: ServiceProgram) -> None:
        self.program, self.service = program, service
        steps = service.steps
        self.often = [0.0] * (len(steps) + 1)
        self.often[0] = 1.0
        self.branches: set[int] = set()
        self.done = [1.0] * len(steps)  # executions per request at a step; a group commit executes once
        groups: list[int] = []
        kept: dict[int, Distribution] = {}
        self._kept = kept
        for index, step in enumerate(steps):
            often = self.often[index]
            self.done[index] = 1.0 / math.prod(groups)
            match step:
                case Branch(limits=limits, to=to):
                    before = 0.0
                    for limit, target in zip(limits, to, strict=True):
                        self.often[target] += often * max(0.0, limit - before)
                        before = max(before, limit)
                    self.often[index + 1] += often * (1.0 - before)
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
                    self.often[index + 1] += often

    def size(self, size: StepNumber) -> float:
        """Return the average of a number."""
        if size.is_fixed:
            return size.fixed
        distribution = self.program.draws[size.draw].distribution if size.draw >= 0 else self._kept[size.slot]
        if len(size.lines) == 1:
            return size.of(distribution.mean)
        values = distribution.at((np.arange(GRID) + 0.5) / GRID).tolist()
        return math.fsum(size.of(value) for value in values) / GRID

    def asks(self) -> dict[int, float]:
        """Return the minimum number of calls of each service per request: groups of locks are full."""
        result: dict[int, float] = {}
        for often, done, step in zip(self.often, self.done, self.service.steps, strict=False):
            if isinstance(step, Ask):
                result[step.service] = result.get(step.service, 0.0) + often * done
        return result

    def own(self, index: int) -> float:
        """Return the service time of a step without waiting (s)."""
        step = self.service.steps[index]
        if not isinstance(step, Serve):
            return 0.0
        served = self.program.served[step.cost]
        return (served.latency + served.body * self.size(step.size)) / FEMTO

    def takes(self, capacities: Mapping[str, Capacity], alone: list[float]) -> dict[tuple[str, str], float]:
        """Return the service demand of one request of the service, by (kind, name) of the resource (s)."""
        result: dict[tuple[str, str], float] = {}

        def add(kind: str, name: str, seconds: float) -> None:
            result[kind, name] = result.get((kind, name), 0.0) + seconds

        held: list[tuple[int, int]] = []
        for index, step in enumerate(self.service.steps):
            often = self.often[index]
            if isinstance(step, Serve) and (cost := self.program.served[step.cost].cost) is not None:
                size, queue = self.size(step.size) * self.done[index], cost.demand.crowd
                for name, amount in cost.demand.amounts:
                    if queue is None or name != queue.capacity:
                        add("capacity", name, often * size * amount / capacities[name].rate)
                if queue is not None:  # at the largest possible queue depth
                    least = long_queue(cost.demand, rates_of(capacities.values()), _longest(self.program, queue.capacity))
                    add("capacity", queue.capacity, often * size * least)
            if isinstance(step, Take):
                held.append((step.lock, index))
            elif isinstance(step, Give):
                held.pop()
            for lock, since in held:
                mine = self.own(index) + (alone[step.service] if isinstance(step, Ask) else 0.0)
                if index > since and mine:
                    add("lock", self.program.locks[lock].name, often * mine / self.program.locks[lock].group)
        if self.service.workers < ENDLESS:
            number = self.program.services.index(self.service)
            add("workers", self.service.name, alone[number] / self.service.workers)
        return result


def _longest(program: ServicesProgram, capacity: str) -> int | None:
    """Return the maximum queue depth of a device with these workers and clients, or None if it is unlimited."""
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
    """Return the average time of a request of each service without waiting (s); concurrent branches count as the longest."""
    alone = [0.0] * len(walks)
    for _ in range(_ROUNDS):
        after = [_time(walk, 0, len(walk.service.steps), alone) for walk in walks]
        if all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(alone, after, strict=True)):
            break
        alone = after
    return alone


def _time(walk: _Walk, first: int, last: int, alone: list[float]) -> float:
    """Return the time of the steps from `first` to `last` per request (s)."""
    steps, index, total = walk.service.steps, first, 0.0
    while index < last:
        step = steps[index]
        if isinstance(step, Fork):
            edges = [*step.branches, step.to]
            total += max(_time(walk, firsts, second, alone) for firsts, second in pairwise(edges))
            index = step.to
            continue
        total += walk.often[index] * (walk.own(index) + (alone[step.service] if isinstance(step, Ask) else 0.0))
        index += 1
    return total


def asks_of(program: ServicesProgram) -> list[list[float]]:
    """Return the average number of direct calls of each service (column) per request of a service (row)."""
    rows = [[0.0] * len(program.services) for _ in program.services]
    for row, service in zip(rows, program.services, strict=True):
        for number, often in _Walk(program, service).asks().items():
            row[number] = often
    return rows


def _visits(walks: list[_Walk], entry: int) -> list[float]:
    """Return the number of visits of each service per request from outside."""
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


def statements(program: ServicesProgram) -> Iterator[tuple[str, str, str, float, float, bool, Cost | None]]:
    """Yield service, name, device, service time (s), executions per request, whether it is random, and cost of each statement."""
    for service in program.services:
        walk = _Walk(program, service)
        for index, step in enumerate(service.steps):
            if isinstance(step, Serve):
                served = program.served[step.cost]
                drawn = not step.size.is_fixed
                yield service.name, served.name, served.device, walk.own(index), walk.often[index], drawn, served.cost
