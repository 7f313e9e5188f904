"""Interface between actors and a simulation on SimPy's clock, common to the driver and the reference engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence

import simpy
from simpy.events import EventPriority

from hwsim.demand import Capacity, Cost
from hwsim.engine.fair import FULL, PART_BITS, part
from hwsim.engine.fluid import FlowClass
from hwsim.engine.issued import IssuedOp, IssuedOps
from hwsim.graph.flat import FlatGraph, concatenate
from hwsim.graph.opgraph import Label, OpGraph, Pool, Queue
from hwsim.results.timeline import Timeline

Progress = Callable[[int, int], None]  # (completed ops, known ops)
Server = Callable[[int, Cost, float], None]  # (op, cost, size): the requests of an op start now


class Host(ABC):
    """A simulation of op graphs on shared capacities and pools, in a SimPy environment with time in integer fs."""

    def __init__(self, capacities: Sequence[Capacity], pools: Sequence[Pool], limited: Collection[str]) -> None:
        """Create a simulation; `limited`: capacities that change, whose clocks are simulated."""
        self.env = simpy.Environment(initial_time=0)
        self.capacities = tuple(capacities)
        self.pools = tuple(pools)
        self.progress: Progress | None = None
        self.server: Server | None = None
        self.changing = frozenset(limited)
        self._numbers = {capacity.name: number for number, capacity in enumerate(self.capacities)}
        self._flats: list[FlatGraph] = []
        self._issued = IssuedOps(self.capacities, self.changing)
        self._classes: list[int] = []  # class of each cost of issued ops; -1: none
        self._starts: list[int] = []  # class of each cost's start-up time; -1: none

    def submit(self, graph: OpGraph, at: int | None = None) -> simpy.Event:
        """Start a graph now or at time `at` (fs); return an event that succeeds at the end of its last op.

        Raises:
            ValueError: the capacities or pools of the graph are not those of the run.
        """
        if graph.capacities != self.capacities or graph.pools != self.pools:
            raise ValueError("a submitted graph must use the capacities and pools of its run")
        finished = self.env.event()
        if at is None or at <= self.env.now:
            self._load(graph, finished)
        else:
            later = self.env.timeout(at - self.env.now)
            later.callbacks.append(lambda _: self._load(graph, finished))
        return finished

    def label(self, label: Label) -> int:
        """Register a label of issued ops; return its number."""
        return self._issued.label(label)

    def queue(self, queue: Queue) -> int:
        """Register a queue of issued ops; return its number. Callers must wait for issued ops before they issue more."""
        return self._issued.queue(queue)

    def cost(self, cost: Cost) -> int:
        """Register a cost of issued ops; return its number."""
        number = self._issued.cost(cost)
        known = self._issued.known[number]
        for column, flow in ((self._classes, known.flow), (self._starts, known.started)):
            column.append(-1 if flow is None else self._class_number(flow))
        return number

    def visitor(self, cost: Cost) -> int:
        """Register a cost of unrecorded work; return its number.

        The cost must draw from a capacity. The caller is responsible for its latency.
        """
        flow = self._issued.flow(cost)
        assert flow is not None
        return self._class_number(flow, passing=True)

    def limit(self, capacity: str, fraction: float) -> None:
        """Limit a capacity to a fraction of its rate from now on (0: a failure; 1: all of it)."""
        self._set_room(self._numbers[capacity], part(fraction) * FULL >> PART_BITS)

    @abstractmethod
    def issue(self, ops: Sequence[IssuedOp], after: Sequence[int] = ()) -> tuple[simpy.Event, int]:
        """Start a chain of ops now; return an event that succeeds at the end of the last op, and the number of that op.

        Args:
            after: numbers of completed ops for which the chain has waited, for the results.
        """

    @abstractmethod
    def visit(self, visitor: int, time: int, then: Callable[[int], None]) -> None:
        """Start unrecorded work now that takes `time` (fs) without contention; call `then` with the time of its end.

        SimPy's clock may be earlier at the call, without events of its own in between.
        """

    @abstractmethod
    def past(self, ops: Sequence[IssuedOp]) -> None:
        """Record a chain of ops without cost that started at 0 and has ended."""

    @abstractmethod
    def finish(self, op: int) -> None:
        """Record that the server has completed all requests of an op now."""

    @abstractmethod
    def run(self) -> Timeline:
        """Simulate until no event remains; return the timeline."""

    @abstractmethod
    def unfinished(self) -> list[int]:
        """Return the ops that did not end."""

    @abstractmethod
    def _load(self, graph: OpGraph, finished: simpy.Event) -> None: ...

    @abstractmethod
    def _class_number(self, flow: FlowClass, *, passing: bool = False) -> int:
        """Return the number of a class of demands; `passing`: of unrecorded work."""

    @abstractmethod
    def _set_room(self, number: int, room: int) -> None: ...

    def _keep(self, flat: FlatGraph) -> None:
        """Record a graph after the ops issued so far."""
        self._keep_issued()
        self._flats.append(flat)

    def _keep_issued(self) -> None:
        if len(self._issued):
            self._flats.append(self._issued.take())

    def _played(self) -> FlatGraph:
        """Return all ops of the run."""
        self._keep_issued()
        return concatenate(self._flats)

    def _call(self, then: Callable[[simpy.Event], None], priority: EventPriority, at: int) -> simpy.Event:
        """Schedule a call at a time (fs), with a priority among the events of that instant."""
        event = self.env.event()
        event.callbacks.append(then)
        self._trigger(event, priority, at)
        return event

    def _trigger(self, event: simpy.Event, priority: EventPriority, at: int) -> None:
        event._ok, event._value = True, None  # noqa: SLF001  (`succeed` has no time)
        self.env.schedule(event, priority, at - self.env.now)
