"""A run on SimPy's clock, as its actors see it: what the engine that replays and the one written out in SimPy have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence

import simpy
from simpy.events import EventPriority

from hwsim.demand import Capacity, Cost
from hwsim.engine.fair import FULL
from hwsim.engine.fluid import FlowClass
from hwsim.engine.issued import Issued, IssuedOp
from hwsim.graph.flat import FlatGraph, concatenate
from hwsim.graph.opgraph import Label, OpGraph, Pool, Queue
from hwsim.results.timeline import Timeline

Progress = Callable[[int, int], None]  # ops done, ops known
Server = Callable[[int, Cost, float], None]  # an op whose requests are simulated, its cost, how many times that: begins now


class Host(ABC):
    """Plays op graphs over shared capacities and pools, inside a SimPy environment whose time is integer fs."""

    def __init__(self, capacities: Sequence[Capacity], pools: Sequence[Pool], limited: Collection[str]) -> None:
        """limited: capacities that change, whose clocks are followed."""
        self.env = simpy.Environment(initial_time=0)
        self.capacities = tuple(capacities)
        self.pools = tuple(pools)
        self.progress: Progress | None = None
        self.server: Server | None = None
        self.changing = frozenset(limited)
        self._numbers = {capacity.name: number for number, capacity in enumerate(self.capacities)}
        self._flats: list[FlatGraph] = []
        self._issued = Issued(self.capacities, self.changing)
        self._classes: list[int] = []  # of the issued ops' costs, -1 for none
        self._starts: list[int] = []  # classes of their starts

    def submit(self, graph: OpGraph, at: int | None = None) -> simpy.Event:
        """Start a graph now, or at a later time (fs); an event that succeeds when its last op has ended.

        The graph's capacities and pools must be those of the run.
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
        """Register a label of issued ops; its number."""
        return self._issued.label(label)

    def queue(self, queue: Queue) -> int:
        """Register a queue of issued ops; its number. Who issues into it waits for its ops before it issues more."""
        return self._issued.queue(queue)

    def cost(self, cost: Cost) -> int:
        """Register a cost of issued ops; its number."""
        number = self._issued.cost(cost)
        known = self._issued.known[number]
        for column, flow in ((self._classes, known.flow), (self._starts, known.started)):
            column.append(-1 if flow is None else self._class_number(flow))
        return number

    def visitor(self, cost: Cost) -> int:
        """Register a cost of work that is not kept; its number. What draws on nothing has none. Its latency is the caller's."""
        flow = self._issued.flow(cost)
        assert flow is not None
        return self._class_number(flow, passing=True)

    def limit(self, capacity: str, fraction: float) -> None:
        """Limit a capacity to a fraction of its rate from now on (0: a failure; 1: all of it)."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"a capacity runs at 0 to 1 of its rate, not at {fraction}")
        self._set_room(self._numbers[capacity], int(fraction * 2**53) * FULL >> 53)

    @abstractmethod
    def issue(self, ops: Sequence[IssuedOp], after: Sequence[int] = ()) -> tuple[simpy.Event, int]:
        """Start a chain of ops now; an event that succeeds when the last has ended, and that op's number.

        after: numbers of ops that ended earlier and that it had waited for, to be shown.
        """

    @abstractmethod
    def visit(self, visitor: int, time: int, then: Callable[[int], None]) -> None:
        """Begin work now that alone takes `time` fs. It becomes no op: `then` is called with the time at which it ended.

        SimPy's clock may be earlier then, with nothing of its own in between.
        """

    @abstractmethod
    def past(self, ops: Sequence[IssuedOp]) -> None:
        """Keep a chain of ops of no cost that began at 0 and is over now."""

    @abstractmethod
    def finish(self, op: int) -> None:
        """Note that the requests of an op that the server has have all been served now."""

    @abstractmethod
    def run(self) -> Timeline:
        """Play until nothing is due any more."""

    @abstractmethod
    def unfinished(self) -> list[int]:
        """Ops that never ended."""

    @abstractmethod
    def _load(self, graph: OpGraph, finished: simpy.Event) -> None: ...

    @abstractmethod
    def _class_number(self, flow: FlowClass, *, passing: bool = False) -> int:
        """The number of a class of demands; passing: of work that is not kept."""

    @abstractmethod
    def _set_room(self, number: int, room: int) -> None: ...

    def _keep(self, flat: FlatGraph) -> None:
        """Put a graph after the ops issued so far."""
        self._keep_issued()
        self._flats.append(flat)

    def _keep_issued(self) -> None:
        if len(self._issued):
            self._flats.append(self._issued.take())

    def _played(self) -> FlatGraph:
        """All ops of the run."""
        self._keep_issued()
        return concatenate(self._flats)

    def _call(self, then: Callable[[simpy.Event], None], priority: EventPriority, at: int) -> simpy.Event:
        """Call at a time (fs), after the events of that instant that come before this priority."""
        event = self.env.event()
        event.callbacks.append(then)
        self._trigger(event, priority, at)
        return event

    def _trigger(self, event: simpy.Event, priority: EventPriority, at: int) -> None:
        event._ok, event._value = True, None  # noqa: SLF001  (`succeed` cannot say when)
        self.env.schedule(event, priority, at - self.env.now)
