"""Driver: simulation of op graphs on the clock of SimPy, concurrently with SimPy processes.

Everything with its own control flow (arrivals, failures, servers, schedulers) is a SimPy process that submits graphs to the
driver and waits for them. Between two SimPy events, the driver simulates all of its instants without SimPy's event queue. At one
instant, SimPy's events precede those of the driver.

The driver also simulates a single graph without processes; SimPy then has one event. Graphs that are longest paths, and large
graphs with the compiled core, do not use the driver (see `hwsim.engine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import simpy
from simpy.events import NORMAL, EventPriority

from hwsim import ticks
from hwsim.demand import Capacity, Cost
from hwsim.engine.compile import CompiledGraph, compile_flat
from hwsim.engine.fluid import FlowClass
from hwsim.engine.host import Host
from hwsim.engine.issued import IssuedOp
from hwsim.engine.replay import Replay
from hwsim.graph.flat import FlatGraph, flatten
from hwsim.graph.opgraph import Change, OpGraph, Pool
from hwsim.results.timeline import Timeline

if TYPE_CHECKING:
    from hwsim.engine import Actor, Waits

LAST = EventPriority(2)  # SimPy priority: after all ordinary events of the instant
AFTER: Final = EventPriority(5)  # after work of the engine that ends at the instant
CHUNK = 50_000  # instants between two progress reports


class Driver(Host):
    """A host that simulates op graphs by replay; at one instant, SimPy's events precede those of the driver.

    Args:
        closed: whether nothing is submitted after the start, and only the `limited` capacities change.
        limited: capacities that change, whose clocks are simulated.
    """

    def __init__(
        self, capacities: Sequence[Capacity], pools: Sequence[Pool], *, closed: bool = False, limited: Collection[str] = ()
    ) -> None:
        super().__init__(capacities, pools, limited)
        self._closed = closed
        self._replay = Replay([pool.servers for pool in pools], len(capacities))
        self._pending: dict[int, tuple[simpy.Event, set[int]]] = {}  # op -> event and remaining ops of its submission
        self._armed: simpy.Event | None = None
        self._armed_for = -1
        self._handing_over = False
        self._asked: dict[int, tuple[Cost, float]] = {}  # cost and size of ops that are simulated request by request

    def issue(self, ops: Sequence[IssuedOp], after: Sequence[int] = ()) -> tuple[simpy.Event, int]:
        if self._closed:
            raise ValueError("a closed driver accepts no further ops")
        replay = self._replay
        replay.now = int(self.env.now)
        rows = [(*self._issued.times(op), self._classes[op.cost] if op.cost >= 0 else -1) for op in ops]
        starting = [(index, *self._issued.start(op)) for index, op in enumerate(ops)] if self.changing else ()
        starts = {index: (self._starts[cost], time) for index, cost, time in starting if time}
        base = replay.chain(rows, starts)
        self._issued.append(base, ops, after)
        last = base + len(ops) - 1
        finished = self.env.event()
        replay.watched.add(last)
        self._pending[last] = finished, {last}
        self._arm(int(self.env.now))
        return finished, last

    def _class_number(self, flow: FlowClass, *, passing: bool = False) -> int:
        return self._replay.fluid.extend(flow, passing=passing)

    def visit(self, visitor: int, time: int, then: Callable[[int], None]) -> None:
        if not self._handing_over:
            self._replay.now = int(self.env.now)
            self._arm_now()
        self._replay.visit(visitor, time, then)

    def past(self, ops: Sequence[IssuedOp]) -> None:
        self._issued.append(self._replay.past([op.time for op in ops]), ops, ())

    def limit(self, capacity: str, fraction: float) -> None:
        if self._closed and capacity not in self.changing:
            raise ValueError(f"{capacity} is not among the changing capacities of a closed driver")
        super().limit(capacity, fraction)

    def _set_room(self, number: int, room: int) -> None:
        self._replay.now = int(self.env.now)
        self._replay.fluid.set_room(number, room)
        self._arm_now()

    def _arm_now(self) -> None:
        if self._armed is None or self._armed_for != self._replay.now:
            self._arm(self._replay.now)

    def finish(self, op: int) -> None:
        self._replay.now = int(self.env.now)
        self._replay.finish(op)
        self._arm(int(self.env.now))

    def run(self) -> Timeline:
        self.env.run()
        replay, flat = self._replay, self._played()
        return Timeline(
            flat=flat,
            start=ticks.column(replay.start),
            end=ticks.column(replay.end),
            granted=np.frombuffer(replay.granted, np.int64) if len(flat) else np.empty(0, np.int64),
            flow_class=np.frombuffer(replay.flow_class, np.int64) if len(flat) else np.empty(0, np.int64),
            paces=tuple(tuple(history) for history in replay.fluid.history),
            alone=tuple(class_.alone for class_ in replay.fluid.classes),
            solves=replay.fluid.solves,
            played=np.array(sorted(self._asked), np.int64),
            drawing=replay.drawing,
        )

    def unfinished(self) -> list[int]:
        return self._replay.unfinished()

    def _load(self, graph: OpGraph, finished: simpy.Event) -> None:
        flat = flatten(graph)
        self.start(flat, compile_flat(flat, closed=self._closed, changing=self.changing), finished)

    def start(self, flat: FlatGraph, compiled: CompiledGraph, finished: simpy.Event) -> None:
        """Start a flat, compiled graph now; the event succeeds at its end unless the driver is closed."""
        self._replay.now = int(self.env.now)
        base = self._replay.load(flat, compiled)
        self._keep(flat)
        for op in np.flatnonzero(compiled.played).tolist():
            self._asked[base + op] = flat.graph.costs[int(flat.cost[op])], float(flat.size[op])
        if not self._closed:
            sinks = set((np.flatnonzero(np.diff(flat.first) == 0) + base).tolist())
            self._replay.watched |= sinks
            self._pending.update(dict.fromkeys(sinks, (finished, sinks)))
            if not len(flat):
                finished.succeed()
        self._arm(int(self.env.now))

    def _arm(self, time: int) -> None:
        """Schedule a call at `time`, after SimPy's own events of that instant."""
        self._armed, self._armed_for = self._call(self._wake, LAST, time), time

    def _wake(self, wake: simpy.Event) -> None:
        if wake is not self._armed:
            return
        self._armed = None
        replay = self._replay
        while (due := replay.next_time()) is not None:
            upcoming = self.env.peek()
            if due >= upcoming and due > self.env.now:
                self._arm(due)
                return
            # SimPy's events of this instant are processed: its next event is the limit
            replay.advance(None if upcoming == float("inf") else max(int(upcoming), due + 1), CHUNK)
            if self.progress is not None:
                self.progress(replay.done, len(replay))
            if replay.over:
                self._hand_over()
            if replay.ended or replay.begun:
                self._begin()
                self._finish()
                if (due := replay.next_time()) is not None:
                    self._arm(due)
                return

    def _hand_over(self) -> None:
        """Call the callbacks of ended visits, at the time of the replay."""
        replay = self._replay
        over, replay.over = replay.over, []
        self._handing_over = True
        for then in over:
            then(replay.now)
        self._handing_over = False

    def _begin(self) -> None:
        """Notify the server of started ops that are simulated request by request, at the time of the replay."""
        for op in self._replay.begun:
            if self.server is None:
                raise ValueError("ops that are simulated request by request need a server")
            self._call(partial(self._serve, op), NORMAL, self._replay.now)
        self._replay.begun = []

    def _serve(self, op: int, _: simpy.Event) -> None:
        if self.server is not None:
            self.server(op, *self._asked[op])

    def _finish(self) -> None:
        """Trigger the events of completed submissions at the time of the replay, which SimPy's clock has not yet reached."""
        for op in self._replay.ended:
            finished, left = self._pending.pop(op)
            left.discard(op)
            if not left:
                self._trigger(finished, NORMAL, self._replay.now)
        self._replay.ended = []


def capacity_changer(changes: Sequence[Change], *, alone: bool = False) -> Actor:
    """Return an actor that changes each capacity to its fraction at its time: failures, clock changes, recoveries.

    Unused capacities are skipped.

    Args:
        changes: a list in any order, or a lazy sequence in order of time.
        alone: whether no other actor runs concurrently, so that the actor ends with the last op.
    """

    def actor(driver: Host) -> Waits:
        names = {capacity.name for capacity in driver.capacities}
        for change in sorted(changes) if isinstance(changes, list | tuple) else changes:
            if change.at > driver.env.now:
                yield driver.env.timeout(change.at - driver.env.now)
                if alone and driver.env.peek() == math.inf and not driver.unfinished():
                    return
            if change.capacity in names:
                driver.limit(change.capacity, change.fraction)

    return actor
