"""Ops with request-level simulation: devices and the engine on one clock.

An op on such a device keeps its demands on other resources (links, other memories), and loses those of the device's closed form.
When the op starts, its requests are offered to the simulation of the device, which may still serve requests of earlier ops. When
its last request completes, this part of the op is complete.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import simpy

from hwsim.demand import Cost, Demand, rates_of
from hwsim.engine import Host, Server
from hwsim.families.requests.requests import (
    MOST_REQUESTS,
    NoRequestSimulation,
    RequestColumns,
    RequestDevice,
    RequestSimulation,
    statistics,
)
from hwsim.graph.opgraph import OpGraph
from hwsim.results.requests import RequestStatistics
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO


class RequestSimulations:
    """The request-level simulations of a run: devices, the graph without their closed forms, and statistics.

    Raises:
        CannotPlay: The number of requests exceeds the limit.
    """

    def __init__(self, graph: OpGraph, simulations: Mapping[str, RequestDevice]) -> None:
        self._closed_form = graph.costs
        self._rates = rates_of(graph.capacities)
        self._simulations = simulations
        self._active: dict[str, _Player] = {}
        device_of = {capacity.name: capacity.device for capacity in graph.capacities}
        costs = (_without_device(cost, device_of) if _is_simulated(cost, simulations) else cost for cost in graph.costs)
        self.graph = replace(graph, costs=tuple(costs))
        self._check_count()

    def server(self, driver: Host) -> Server:
        """Start one SimPy process per device; return the function that `hwsim.engine.simulate` calls for each op."""
        for name, play in self._simulations.items():
            self._active[name] = _Player(driver, play.simulation)

        def begins(op: int, cost: Cost, size: float) -> None:
            requests = cost.requests
            if requests is None:
                raise ValueError(f"op {op} has no requests to simulate")
            requests = replace(requests, count=max(1.0, requests.count * size), seed=requests.seed + op)
            time = driver.env.now / FEMTO
            play = self._simulations[requests.device]
            self._active[requests.device].begin(op, play.requests(requests, play.span, time))

        return begins

    def statistics(self, timeline: Timeline) -> tuple[RequestStatistics, ...]:
        """Return the statistics of each device that served requests."""
        rows = []
        flat = timeline.flat
        for name, player in sorted(self._active.items()):
            if not player.ops:
                continue
            took = sum(int(timeline.end[op] - timeline.start[op]) for op in player.ops) / FEMTO
            alone = 0.0
            for op in player.ops:
                demand = self._closed_form[int(flat.cost[op])].demand
                alone += demand.latency + demand.body(self._rates) * float(flat.size[op])
            row = statistics(name, list(player.ops.values()), player.simulation.counters, alone, player.simulation.units)
            rows.append(replace(row, simulated_s=took))
        return tuple(rows)

    def _check_count(self) -> None:
        """Check the number of requests.

        Raises:
            CannotPlay: A device has more requests than `MOST_REQUESTS`.
        """
        for name in self._simulations:
            total = 0.0
            for block in self.graph.blocks:
                for cost, size in zip(block.cost.tolist(), block.size.tolist(), strict=True):
                    requests = self.graph.costs[cost].requests if cost >= 0 and self.graph.costs[cost].played else None
                    if requests is not None and requests.device == name:
                        total += max(1.0, requests.count * size) * block.times
            if total > MOST_REQUESTS:
                hint = f"fewer requests, or `fidelity: formula` for {name}, which has no limit"
                raise NoRequestSimulation(
                    f"{total:,.0f} requests to {name} exceed the limit of {MOST_REQUESTS:,} for request-level simulation", hint
                )


def _is_simulated(cost: Cost, simulations: Mapping[str, RequestDevice]) -> bool:
    return cost.requests is not None and cost.requests.device in simulations


def _without_device(cost: Cost, device_of: Mapping[str, str]) -> Cost:
    """Return a cost without the demands on its device."""
    device = cost.requests.device if cost.requests else ""
    latency = math.fsum(term.seconds for term in cost.why if term.kind == "latency" and term.holder != device)
    demand = cost.demand
    rest = Demand(
        latency=min(latency, demand.latency),
        amounts=tuple(pair for pair in demand.amounts if device_of[pair[0]] != device),
        holds=tuple(pair for pair in demand.holds if device_of[pair[0]] != device),
        share=demand.share,
    )
    return replace(cost, demand=rest, played=True)


class _Player:
    """A request-level simulation as a SimPy process.

    It advances ahead of the clock up to the next event of any other process, which may offer more requests.
    """

    def __init__(self, driver: Host, simulation: RequestSimulation) -> None:
        self.simulation = simulation
        self.ops: dict[int, RequestColumns] = {}
        self._driver = driver
        self._env: simpy.Environment = driver.env
        self._running: dict[int, RequestColumns] = {}
        self._ends: dict[int, int] = {}  # completion time (fs) of each op whose requests are all scheduled
        self._asleep = False
        self._process = self._env.process(self._play())

    def begin(self, op: int, served: RequestColumns) -> None:
        """Offer the requests of an op that starts now."""
        self.ops[op] = self._running[op] = served
        self.simulation.offer(served)
        if self._asleep:
            self._asleep = False
            self._process.interrupt()

    def _play(self) -> Generator[simpy.Event, Any, None]:
        while True:
            wait = self._advance()
            self._asleep = True
            try:
                yield self._env.event() if wait is None else self._env.timeout(wait)
            except simpy.Interrupt:
                continue
            self._asleep = False

    def _advance(self) -> int | None:
        """Complete ops and advance to the next event of another process; return the time to wait (fs), None: for a new op."""
        time, simulation = int(self._env.now), self.simulation
        while True:
            self._schedule_ends()
            for op in [op for op, end in self._ends.items() if end <= time]:
                del self._ends[op]
                self._driver.finish(op)
            if not self._running and not self._ends:
                return None
            # the end of an op, or an event of another process, may add requests: do not advance beyond it
            until = min(self._env.peek() - 1, *self._ends.values(), math.inf)
            due = simulation.due() if self._running else math.inf
            soonest = min(due * FEMTO, *self._ends.values(), math.inf)
            if soonest == math.inf:
                raise ValueError("a request-level simulation has open requests but no event")
            if due * FEMTO > max(until, time):
                return math.ceil(soonest) - time
            simulation.advance(due)

    def _schedule_ends(self) -> None:
        for op, served in list(self._running.items()):
            if not served.left:
                del self._running[op]
                self._ends[op] = math.ceil(served.end * FEMTO)
