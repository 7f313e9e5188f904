"""The simulation without a clock of a service that has its devices and links to itself: one event for a run of equal iterations.

Events at the same instant are processed in this order: ends of runs, arrivals, starts of idle replicas. A run is planned up to
the first completion, the last free block or the next knot of its times, and is shortened if a request arrives that can join
earlier. The result is a graph with one chain of ops for every run, whose times the engine computes again. With more than `ROWS`
runs, the ops of all runs are summed by label and cost.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence as Many
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from hwsim.engine.issued import IssuedOp, IssuedOps
from hwsim.families.serving.actors.batch import KvLoad
from hwsim.families.serving.actors.continuous import ContinuousReplica
from hwsim.families.serving.actors.costs import IterationCosts, Registry
from hwsim.families.serving.actors.iteration_times import Pace
from hwsim.families.serving.actors.router import Router, ScoreRouter
from hwsim.families.serving.actors.run import IterationRun, Sequence
from hwsim.families.serving.actors.static import StaticReplica
from hwsim.families.serving.results.accounting import REPLICA_START
from hwsim.families.serving.results.log import Late, Log
from hwsim.families.serving.workload.settings import Settings
from hwsim.families.serving.workload.source import RequestSource
from hwsim.graph.opgraph import Label, OpGraph, Queue
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.autoscaler import Autoscaler
    from hwsim.families.serving.actors.kv_transfers import OffloadRoute

ROWS: Final = 30_000  # maximum runs with ops of their own
END, COME, BEGIN, LOOK = range(4)
NEVER: Final = 1 << 100
START_OF_COPY: Final = "replica start"
FRONT_END: Final = "front end"


def labels_of(known: Registry, name: str) -> tuple[int, int, int, int]:
    """Return the labels of a service's waits: for an arrival, for a client's next request, for a replica start, for the front
    end.
    """
    first, later, front = (
        known.label(Label(text, "arrivals", "", name or "main")) for text in ("arrivals", "clients", FRONT_END)
    )
    return first, later, known.label(Label(START_OF_COPY, "starting", "", name or "main")), front


@dataclass(slots=True)
class ServiceOps:
    """The ops of a service without a clock; with more than `ROWS` runs, their sums.

    Args:
        costs: costs of each replica.
        ops: the ops so far.
        name: name of the service.
        woken: end of the last wait for an arrival (fs).
        runs: number of runs.
    """

    costs: list[IterationCosts]
    ops: IssuedOps
    name: str
    woken: int = 0
    runs: int = 0
    _arrivals: int = -1
    _label: int = -1
    _sums: dict[tuple[int, int, int], list[Any]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0]))
    # sums of size and own time by (replica, label, cost)
    _ends: dict[int, int] = field(default_factory=dict)
    _busy: dict[int, int] = field(default_factory=dict)
    _after: dict[int, int] = field(default_factory=dict)
    _clients: int = -1
    _asked: bool = False
    _latest: dict[int, int] = field(default_factory=dict)  # last op by replica
    _loads: dict[tuple[int, int, int], float] = field(default_factory=dict)  # size by (label, queue, cost)
    _starting: int = -1
    _front: int = -1
    _started: dict[int, int] = field(default_factory=dict)  # time that requests waited for its start (fs), by replica

    def __post_init__(self) -> None:
        self._label, self._clients, self._starting, self._front = labels_of(self.ops, self.name)
        self._arrivals = self.ops.queue(Queue(f"{self.name}:arrivals" if self.name else "arrivals", ""))

    def wakes(self, copy: int, instant: int, after: tuple[int, int] = (-1, 0), starting: int = 0) -> None:
        """Record the wait of an idle replica that ends with this request.

        Args:
            copy: index of the replica.
            instant: time at which the request leaves the front end and is seen (fs).
            after: (op, end in fs) of the answer that the request followed; op -1: an arrival.
            starting: time that the request waited for a replica to start (fs).
        """
        op, end = after
        if self._ends.get(copy) == instant:
            return
        self._asked = self._asked or op >= 0
        waited = instant - (self.woken if op < 0 else end)
        starting = min(starting, waited)
        front = min(self.costs[copy].plan.settings.api, waited - starting)
        if starting:
            self._started[copy] = self._started.get(copy, 0) + starting
        if self.runs > ROWS:
            return
        late = [IssuedOp(self._starting, -1, time=starting)] if starting else []
        late += [IssuedOp(self._front, -1, time=front)] if front else []
        waited -= starting + front
        if op < 0:
            self.ops.append(0, [IssuedOp(self._label, self._arrivals, time=waited), *late], ())
            self.woken += waited
        else:
            self.ops.append(0, [IssuedOp(self._clients, -1, time=waited), *late], (op,))
        self._after[copy] = self._latest[copy] = len(self.ops) - 1

    def loads(self, copy: int, lane: OffloadRoute, counts: tuple[int, ...]) -> int:
        """Record a load of KV-cache blocks; return the number of its last op, -1 beyond `ROWS` runs."""
        chain = lane.ops(counts, self.ops)
        for op in chain:
            key = op.label, op.queue, op.cost
            self._loads[key] = self._loads.get(key, 0.0) + op.size
        if self.runs > ROWS:
            return -1
        self.ops.append(0, chain, (self._latest[copy],))
        return len(self.ops) - 1

    def ended(self, copy: int, run: IterationRun, instant: int) -> int:
        """Record a run that has ended; return the number of its last op, -1 beyond `ROWS` runs."""
        self.runs += 1
        sums, chain = self._sums, self.costs[copy].ops(run)
        for label, _, cost, size, time, _ in chain:
            kept = sums[copy, label, cost]
            kept[0] += size
            kept[1] += time
        self._busy[copy] = self._busy.get(copy, 0) + instant - run.begin
        self._ends[copy] = instant
        if self.runs > ROWS:
            return -1
        after = self._after.pop(copy, -1)
        self.ops.append(0, [IssuedOp._make(op) for op in chain], (after,) if after >= 0 else ())
        self._latest[copy] = len(self.ops) - 1
        return len(self.ops) - 1

    def graph(self, like: OpGraph) -> OpGraph:
        """Return the graph of all ops, with the capacities and pools of another graph."""
        if self.runs > ROWS:
            self.ops.clear()
            for copy, end in self._ends.items():
                waits = self._clients if self._asked else self._label
                starting = self._started.get(copy, 0)
                chain = [IssuedOp(waits, -1, time=end - self._busy[copy] - starting)]
                chain += [IssuedOp(self._starting, -1, time=starting)] if starting else []
                queue = self.costs[copy].queue
                chain += [
                    IssuedOp(label, queue, cost, size, time)
                    for (number, label, cost), (size, time) in self._sums.items()
                    if number == copy
                ]
                self.ops.append(0, chain, ())
            for (label, queue, cost), size in self._loads.items():
                self.ops.append(0, [IssuedOp(label, queue, cost, size)], ())
        graph = self.ops.graph()
        return replace(graph, capacities=like.capacities, pools=like.pools)


@dataclass(slots=True)
class UnclockedService:
    """The event loop of a service without a clock.

    Args:
        copies: the replicas.
        pace: iteration times of each replica.
        settings: settings of the server.
        source: source of requests.
        log: log of the service.
        router: router.
        written: recorder of ops; None: only the log is needed.
        lanes: links of each replica to its lower tiers; empty without `offload:`.
        scaled: autoscaler; None without `scale:`.
    """

    copies: Many[ContinuousReplica | StaticReplica]
    pace: Many[Pace]
    settings: Settings
    source: RequestSource
    log: Log
    router: Router
    written: ServiceOps | None = None
    lanes: Many[OffloadRoute] = ()
    scaled: Autoscaler | None = None
    _planned: int = NEVER  # time of the next attempt to send waiting requests to replicas
    _runs: list[IterationRun | None] = field(init=False)
    _due: list[tuple[int, int, int, int]] = field(default_factory=list)  # time, kind, replica, turn
    _turns: list[int] = field(init=False)
    _steps: list[tuple[int, int, int]] = field(default_factory=list)  # (end of an iteration, replica, index of its run)
    _loads: list[KvLoad] = field(default_factory=list)
    _late: dict[int, int] = field(default_factory=dict)  # time a request waited for the start of its idle replica (fs)
    _follows: dict[int, tuple[int, int]] = field(default_factory=dict)  # (op, end) of the answer before a request, by request

    def __post_init__(self) -> None:
        self._runs = [None] * len(self.copies)
        self._turns = [0] * len(self.copies)

    def play(self) -> int:
        """Simulate the service; return the time of the last completion (fs)."""
        due, turns, source = self._due, self._turns, self.source
        instant = 0
        while True:
            arrival = source.time()
            before = NEVER if arrival is None else arrival, COME
            while due and due[0] < before:
                instant, kind, number, turn = heapq.heappop(due)
                if turn < 0:
                    self._end_load(number, self._loads[-1 - turn], instant)
                    continue
                if kind == LOOK:
                    self._planned = NEVER
                    self._release_waiting(instant)
                    continue
                if turn != turns[number]:
                    continue
                if kind == END:
                    self._ends(number, instant)
                    arrival = source.time()
                    before = NEVER if arrival is None else arrival, COME
                else:
                    self._start_idle(number, instant)
            if arrival is None:
                return instant
            self._arrive(arrival)

    def _arrive(self, instant: int) -> None:
        number, request = self.source.take()
        sequence = Sequence.of(number, request, instant + self.settings.api)
        sequence.after = self._follows.pop(number, sequence.after)
        self._update_caches(instant)
        if self.scaled is None:
            number = self.router.choose(sequence, range(len(self.copies)))
        elif (number := self.scaled.asks(sequence, instant)) < 0:
            return self._plan_release(instant)
        return self._queue_request(number, sequence, instant, instant)

    def _update_caches(self, instant: int) -> None:
        """Update the visible state of the caches of running replicas to an instant, for a router that reads it."""
        steps = self._steps
        while steps and steps[0][0] <= instant:
            _, number, index = heapq.heappop(steps)
            run = self._runs[number]
            if run is not None and run.index == index:
                self.copies[number].catches_up(run, instant)
                self._plan_step(number, run, run.after(instant))

    def _plan_step(self, number: int, run: IterationRun, step: int) -> None:
        """Schedule the update of a replica's visible cache state with the earlier iterations of its run."""
        if step < run.count:
            heapq.heappush(self._steps, (run.start(step), number, run.index))

    def _queue_request(self, number: int, sequence: Sequence, instant: int, arrival: int, late: Late = ()) -> None:
        self.copies[number].add(sequence)
        self.log.came(arrival, sequence.number, number, sequence.prompt, sequence.output, sequence.at, late)
        if self._runs[number] is None:
            if self.written is not None and late:
                self._late[sequence.number] = sum(spent for part, spent in late if part == REPLICA_START)  # integers
            self._plan_start(number, instant)
        else:
            self._shorten_run(number, sequence.at)

    def _plan_release(self, instant: int) -> None:
        """Schedule the next attempt to send waiting requests to replicas."""
        assert self.scaled is not None
        next_fs = self.scaled.next(instant)
        if next_fs < self._planned:
            self._planned = next_fs
            heapq.heappush(self._due, (next_fs, LOOK, 0, 0))

    def _release_waiting(self, instant: int) -> None:
        """Send waiting requests to replicas with capacity."""
        assert self.scaled is not None
        self._update_caches(instant)
        while (free := self.scaled.released(instant, self.settings.api)) is not None:
            sequence, number, arrival, late = free
            self._queue_request(number, sequence, instant, arrival, late)
        if self.scaled.line:
            self._plan_release(instant)

    def _shorten_run(self, number: int, at: int) -> None:
        """Shorten the run of a replica if a request that is seen from this instant on can join it."""
        run = self._runs[number]
        if run is not None and run.count > 1:
            before = run.count
            self.copies[number].cut(run, at)
            if run.count < before:
                self._plan(number, END, run.end)

    def _start_loads(self, copy: ContinuousReplica, instant: int) -> None:
        """Start the loads of a replica, one after another."""
        for load in copy.loads:
            lane = self.lanes[copy.number]
            lane.until = max(lane.until, instant) + lane.time(load.counts)
            if self.written is not None and (op := self.written.loads(copy.number, lane, load.counts)) >= 0:
                load.sequence.after = op, lane.until
            heapq.heappush(self._due, (lane.until, COME, copy.number, -1 - len(self._loads)))
            self._loads.append(load)
        copy.loads.clear()

    def _end_load(self, number: int, load: KvLoad, instant: int) -> None:
        copy, run = self.copies[number], self._runs[number]
        assert isinstance(copy, ContinuousReplica)
        if run is not None:
            copy.catches_up(run, instant)
        copy.comes(load, instant)
        if run is None:
            self._plan_start(number, instant)
        else:
            self._shorten_run(number, instant)

    def _plan_start(self, number: int, instant: int) -> None:
        """Plan the start of an idle replica for the time at which it sees the head of its queue."""
        head = self.copies[number].head
        if head is not None:
            self._plan(number, BEGIN, max(instant, head.at))

    def _plan(self, number: int, kind: int, at: int) -> None:
        self._turns[number] += 1
        heapq.heappush(self._due, (at, kind, number, self._turns[number]))

    def _start_idle(self, number: int, instant: int) -> None:
        """Start an idle replica; its wait is recorded only if the request was queued at this instant."""
        first = self.copies[number].first_at(instant)
        if self.written is not None and first is not None:
            self.written.wakes(number, instant, first.after, self._late.pop(first.number, 0))
        self._next(number, instant)

    def _next(self, number: int, instant: int) -> None:
        copy = self.copies[number]
        run = copy.next(instant)
        self._runs[number] = run
        if self.lanes and isinstance(copy, ContinuousReplica) and copy.loads:
            self._start_loads(copy, instant)
        if run is None:
            if (head := copy.head) is not None and head.at > instant:
                self._plan(number, BEGIN, head.at)
            return
        self.pace[number].set(run)
        if run.count > 1 and (head := copy.head) is not None:
            copy.cut(run, head.at)
        if isinstance(self.router, ScoreRouter):
            self._plan_step(number, run, 1)
        turns = self._turns
        turns[number] += 1
        heapq.heappush(self._due, (run.end, END, number, turns[number]))

    def _ends(self, number: int, instant: int) -> None:
        copy, run = self.copies[number], self._runs[number]
        assert run is not None
        op = -1 if self.written is None else self.written.ended(number, run, instant)
        self._runs[number] = None
        over = copy.done(run, instant)
        for sequence in over:
            asks = self.source.ended(sequence.number, instant + self.settings.out)
            if asks is not None and op >= 0:
                self._follows[asks[1]] = op, instant
        if self.scaled is not None and self.scaled.line:
            self._release_waiting(instant)
        if over and copy.is_idle:
            self._plan_start(number, instant)
        else:
            self._next(number, instant)
