"""Ops whose requests are simulated one by one: devices and the engine on one clock.

An op on a part that is simulated request by request keeps its demands on everything else (links, other memories) and
gives up its device's closed form. When it starts, its requests go into the device's simulation, where the requests of earlier ops
may still be. When the last of them has finished, so has this part of the op.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import simpy

from hwsim.demand import Cost, Demand, rates_of
from hwsim.engine import Host, Server
from hwsim.families.requests.requests import MOST_REQUESTS, CannotPlay, Play, RequestSimulation, Served, statistics
from hwsim.graph.opgraph import OpGraph
from hwsim.results.requests import RequestStatistics
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO


class Players:
    """The simulations of some devices, the graph on which they serve, and their statistics.

    Raises:
        CannotPlay: more requests than are played one by one.
    """

    def __init__(self, graph: OpGraph, simulations: Mapping[str, Play]) -> None:
        self._closed_form = graph.costs
        self._rates = rates_of(graph.capacities)
        self._simulations = simulations
        self._active: dict[str, _Player] = {}
        device_of = {capacity.name: capacity.device for capacity in graph.capacities}
        costs = (_beside(cost, device_of) if _plays(cost, simulations) else cost for cost in graph.costs)
        self.graph = replace(graph, costs=tuple(costs))
        self._refuse_many()

    def server(self, driver: Host) -> Server:
        """For `hwsim.engine.simulate`: one SimPy process for each device."""
        for name, play in self._simulations.items():
            self._active[name] = _Player(driver, play.simulation)

        def begins(op: int, cost: Cost, size: float) -> None:
            requests = cost.requests
            if requests is None:
                raise ValueError(f"op {op} is played without requests")
            requests = replace(requests, count=max(1.0, requests.count * size), seed=requests.seed + op)
            time = driver.env.now / FEMTO
            play = self._simulations[requests.device]
            self._active[requests.device].begin(op, play.requests(requests, play.span, time))

        return begins

    def statistics(self, timeline: Timeline) -> tuple[RequestStatistics, ...]:
        """Statistics of each device that served any requests."""
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
            rows.append(replace(row, took_s=took))
        return tuple(rows)

    def _refuse_many(self) -> None:
        """Refuse runs that would take for ever.

        Raises:
            CannotPlay: more requests in all than `MOST_REQUESTS`.
        """
        for name in self._simulations:
            total = 0.0
            for block in self.graph.blocks:
                for cost, size in zip(block.cost.tolist(), block.size.tolist(), strict=True):
                    requests = self.graph.costs[cost].requests if cost >= 0 and self.graph.costs[cost].played else None
                    if requests is not None and requests.device == name:
                        total += max(1.0, requests.count * size) * block.times
            if total > MOST_REQUESTS:
                hint = f"ask for fewer, or leave {name} at `fidelity: formula`: the closed form takes any number"
                raise CannotPlay(
                    f"{total:,.0f} requests to {name} exceed the limit of {MOST_REQUESTS:,} for request-level simulation", hint
                )


def _plays(cost: Cost, simulations: Mapping[str, Play]) -> bool:
    return cost.requests is not None and cost.requests.device in simulations


def _beside(cost: Cost, device_of: Mapping[str, str]) -> Cost:
    """A cost without the time of its device, which the simulation finds."""
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
    """One simulation as a SimPy process.

    It runs ahead of the clock up to the next event of any other process, which is the first that could offer it more.
    """

    def __init__(self, driver: Host, simulation: RequestSimulation) -> None:
        self.simulation = simulation
        self.ops: dict[int, Served] = {}
        self._driver = driver
        self._env: simpy.Environment = driver.env
        self._running: dict[int, Served] = {}
        self._ends: dict[int, int] = {}  # of those whose requests are all decided: when the last finishes (fs)
        self._asleep = False
        self._process = self._env.process(self._play())

    def begin(self, op: int, served: Served) -> None:
        """The requests of an op that starts now."""
        self.ops[op] = self._running[op] = served
        self.simulation.offer(served)
        if self._asleep:
            self._asleep = False
            self._process.interrupt()

    def _play(self) -> Generator[simpy.Event, Any, None]:
        while True:
            wait = self._ahead()
            self._asleep = True
            try:
                yield self._env.event() if wait is None else self._env.timeout(wait)
            except simpy.Interrupt:
                continue
            self._asleep = False

    def _ahead(self) -> int | None:
        """Finish ops that are over and advance as far as no other process can interfere; fs to wait then (None: for a new op)."""
        time, simulation = int(self._env.now), self.simulation
        while True:
            self._decide()
            for op in [op for op, end in self._ends.items() if end <= time]:
                del self._ends[op]
                self._driver.finish(op)
            if not self._running and not self._ends:
                return None
            # an op that ends, or another process's event, may bring more requests: not beyond that
            until = min(self._env.peek() - 1, *self._ends.values(), math.inf)
            due = simulation.due() if self._running else math.inf
            soonest = min(due * FEMTO, *self._ends.values(), math.inf)
            if soonest == math.inf:
                raise ValueError("a simulation has requests left and nothing to do")
            if due * FEMTO > max(until, time):
                return math.ceil(soonest) - time
            simulation.advance(due)

    def _decide(self) -> None:
        for op, served in list(self._running.items()):
            if not served.left:
                del self._running[op]
                self._ends[op] = math.ceil(served.end * FEMTO)
