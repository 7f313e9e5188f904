"""Event simulation of op graphs on arrays, with one event heap and no object per op.

At each instant: end the ops that are due, complete joins transitively, and assign freed servers to waiting ops. Start the ops
that became ready, or add them to the queues of their pools, in order of op number. Repeat until no event remains at the instant;
then compute the rates once. The result does not depend on the order of equal times in the heap, only on the graph.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Final

import numpy as np

from hwsim import ticks
from hwsim.engine.compile import CompiledGraph
from hwsim.engine.fluid import Fluid
from hwsim.graph.flat import FlatGraph

# A heap entry is one integer: time and event code. A code below 2**37 is an op that ends, from 2**37 on a visit that ends.
SHIFT = 40
MASK = (1 << SHIFT) - 1
VISIT = 1 << 37  # code of unrecorded work
FLOWS = 1 << 38  # op (code - FLOWS) ends its fixed time and starts to flow
CLASS = 1 << 39  # class (code - CLASS) may have ending members
NONE: Final[Mapping[int, tuple[int, int]]] = {}


class Replay:
    """The state of a simulation without SimPy: `load` adds ops, `advance` simulates instants."""

    def __init__(self, pools: Sequence[int], capacities: int) -> None:
        self.now = 0
        self.fluid = Fluid((), capacities)
        self.done = 0
        self.watched: set[int] = set()
        self.ended: list[int] = []  # watched ops that ended, until the driver processes them
        self.begun: list[int] = []  # ops whose requests start now, until the driver processes them
        self.over: list[Callable[[int], None]] = []  # callbacks of ended visits, until the driver calls them
        self._visits = 0
        self._coming: list[tuple[int, int, int]] = []  # starting visits: class, code, fs without contention
        self._then: dict[int, Callable[[int], None]] = {}
        self.drawing: dict[int, int] = {}  # op with a clocked start-up time -> fs at which its flow starts
        self._starts: dict[int, tuple[int, int]] = {}  # such ops until then: class and fs of the start-up time
        self._parts: dict[int, int] = {}  # op with simulated requests -> remaining parts (requests, rest of the demand)
        self.start: array[int] | list[int] = array("q")
        self.end: array[int] | list[int] = array("q")
        self.granted = array("q")  # op whose end freed the server for which the op waited
        self.flow_class = array("q")
        self._flow: dict[int, int] = {}  # op -> fs of its flow without contention
        self._heap: list[int] = []
        self._ready: list[int] = []
        self._free = list(pools)
        self._waiting: list[deque[int]] = [deque() for _ in pools]
        self._key: list[int] = []  # heap entry of an op relative to its start; -1: it flows immediately
        self._take: list[int] = []
        self._give: list[int] = []
        self._first = array("q", [0])
        self._next = array("i")
        self._missing: list[int] = []
        self._joins = bytearray()
        self._any_joins = False

    def __len__(self) -> int:
        return len(self._key)

    def load(self, flat: FlatGraph, compiled: CompiledGraph) -> int:
        """Add the ops of a graph, of which those without predecessors are ready now; return the number of its first op."""
        base, count = len(self), len(flat)
        classes = [self.fluid.extend(class_) for class_ in compiled.classes]
        numbers = np.array([*classes, -1], np.int64)[compiled.flow_class]
        self.flow_class.frombytes(numbers.tobytes())
        self._starts.update({base + op: (classes[number], fs) for op, (number, fs) in compiled.starts.items()})
        flows = (numbers >= 0) | compiled.played
        flows[list(compiled.starts)] = True
        flowing = np.flatnonzero(flows)
        self._parts.update(dict.fromkeys((np.flatnonzero(compiled.played) + base).tolist(), 0))
        self._flow.update(zip((flowing + base).tolist(), compiled.flow[flowing].tolist(), strict=True))
        kind = np.where(flows, FLOWS, 0) + np.arange(base, base + count)
        self._key += [fixed << SHIFT | code for fixed, code in zip(compiled.fixed.tolist(), kind.tolist(), strict=True)]
        for op in (flowing[compiled.fixed[flowing] == 0] + base).tolist():
            self._key[op] = -1
        self._take += flat.take.tolist()
        self._give += flat.give.tolist()
        edges = self._first.pop()
        self._first.frombytes((flat.first + edges).astype(np.int64).tobytes())
        self._next.frombytes((flat.next + base).astype(np.int32).tobytes())
        self._missing += flat.waits_for.tolist()
        joins = flat.joins()
        self._joins += joins.astype(np.uint8).tobytes()
        self._any_joins |= bool(joins.any())
        unset = array("q", [-1]) * count
        for column in (self.start, self.end, self.granted):
            column.extend(unset)
        self._ready += (np.flatnonzero(flat.waits_for == 0) + base).tolist()
        return base

    def chain(self, ops: Sequence[tuple[int, int, int]], starts: Mapping[int, tuple[int, int]] = NONE) -> int:
        """Add a chain of ops without pools, of which the first is ready now; return its number. Faster than `load`.

        Args:
            ops: (time before the flow in fs, time of the flow without contention in fs, class or -1) of each op.
            starts: as in `CompiledGraph`.
        """
        base = len(self)
        for op, (fixed, flow, number) in enumerate(ops, base):
            flows = number >= 0 and flow > 0
            self.flow_class.append(number if flows else -1)
            if op - base in starts:
                self._starts[op], flows = starts[op - base], True
            if flows:
                self._flow[op] = flow
            self._key.append((fixed << SHIFT | FLOWS + op if fixed else -1) if flows else fixed + flow << SHIFT | op)
            self._take.append(-1)
            self._give.append(-1)
            self._missing.append(int(op > base))
            self._joins.append(0)
            if op > base:
                self._next.append(op)
                self._first[-1] += 1
            self._first.append(len(self._next))
            for column in (self.start, self.end, self.granted):
                column.append(-1)
        self._ready.append(base)
        return base

    def past(self, times: Sequence[int]) -> int:
        """Add a chain of completed ops that started at 0, with their durations (fs); return the number of the first."""
        base, ready = self.chain([(time, 0, -1) for time in times]), self._ready.pop()
        if sum(times) > ticks.LARGEST and isinstance(self.start, array):
            self.start, self.end = list(self.start), list(self.end)
        since = 0
        for op, time in enumerate(times, ready):
            self.start[op] = since
            self.end[op] = since = since + time
        self.done += len(times)
        return base

    def visit(self, number: int, time: int, then: Callable[[int], None]) -> None:
        """Start unrecorded work of a class now that takes `time` (fs) without contention; call `then` at its end."""
        self._visits += 1
        code = VISIT + self._visits
        self._then[code] = then
        self._coming.append((number, code, time))

    def next_time(self) -> int | None:
        """Return the time of the next event (fs); None if there is none."""
        if self._ready or self._coming or self.fluid.changed:
            return self.now
        return self._heap[0] >> SHIFT if self._heap else None

    def advance(self, until: int | None, instants: int) -> None:
        """Simulate at most `instants` instants before `until` (None: no limit), or until a watched op or a visit ends.

        This is the inner loop: one function with local names for speed.
        """
        heap, key, take, give = self._heap, self._key, self._take, self._give
        first, follow, missing = self._first, self._next, self._missing
        free, waiting, granted = self._free, self._waiting, self.granted
        fluid, touched, changed = self.fluid, self.fluid.touched, self.fluid.changed
        start, end, largest = self.start, self.end, ticks.LARGEST
        ready, coming, has_joins = self._ready, self._coming, self._any_joins
        is_awaited = bool(self.watched or self._parts or self._then or self._starts)
        done = 0
        instant = None if self.ended or self.begun or self.over else self.next_time()
        while instants and instant is not None and (until is None or instant < until):
            instants -= 1
            if instant > largest and isinstance(start, array):
                self.start, self.end = start, end = list(start), list(end)
            self.now = instant
            stamp = instant << SHIFT
            limit = stamp + MASK
            if coming:
                self._come(stamp)
            while True:  # rounds, until nothing is due at this instant
                retired = []
                while heap and heap[0] <= limit:
                    code = heappop(heap) & MASK
                    if code < FLOWS:
                        retired.append(code)
                    elif code < CLASS:
                        self._join(code - FLOWS)
                    else:
                        retired += fluid.leave(code - CLASS, instant)
                if is_awaited:
                    retired = self._awaited(retired)
                retired.sort()  # affects only `granted`, which results show
                for op in retired:
                    end[op] = instant
                    for after in follow[first[op] : first[op + 1]]:
                        missing[after] = left = missing[after] - 1
                        if not left:
                            ready.append(after)
                    pool = give[op]
                    if pool >= 0:
                        if not waiting[pool]:
                            free[pool] += 1
                            continue
                        heir = waiting[pool].popleft()
                        granted[heir] = op
                        start[heir] = instant
                        if (due := key[heir]) >= 0:
                            heappush(heap, stamp + due)
                        else:
                            self._join(heir)
                done += len(retired)
                if has_joins and ready:
                    self._complete_joins()
                ready.sort()
                for op in ready:
                    pool = take[op]
                    if pool >= 0:
                        if not free[pool]:
                            waiting[pool].append(op)
                            continue
                        free[pool] -= 1
                    start[op] = instant
                    if (due := key[op]) >= 0:
                        heappush(heap, stamp + due)
                    else:
                        self._join(op)
                ready.clear()
                if not heap or heap[0] > limit:
                    break
            if touched or changed:
                for time, number in fluid.settle(instant):
                    heappush(heap, time << SHIFT | CLASS | number)
            if is_awaited and (self.ended or self.begun or self.over):
                break
            instant = heap[0] >> SHIFT if heap else None
        self.done += done

    def _awaited(self, over: list[int]) -> list[int]:
        """Process ended visits, start-up times and parts of ops; return the ops that end."""
        if self._then:
            over = self._visitors(over)
        if self._starts:
            over = [op for op in over if op not in self._starts or self._started(op)]
        if self._parts:
            over = [op for op in over if self._is_over(op)]
        self._notice(over)
        return over

    def finish(self, op: int) -> None:
        """Record that all requests of an op are completed now."""
        heappush(self._heap, self.now << SHIFT | op)

    def _join(self, op: int) -> None:
        if op in self._starts:
            number, time = self._starts[op]
            self.fluid.join(number, op, time, self.now)
            return
        if op in self._parts:
            self.begun.append(op)
            self._parts[op] = 1
            if not self._flow[op]:
                return
            self._parts[op] = 2
            if self.flow_class[op] < 0:
                heappush(self._heap, self.now + self._flow[op] << SHIFT | op)
                return
        self.fluid.join(self.flow_class[op], op, self._flow[op], self.now)

    def _come(self, stamp: int) -> None:
        """Start the pending visits."""
        for number, code, time in self._coming:
            if time:
                self.fluid.join(number, code, time, self.now)
            else:
                heappush(self._heap, stamp + code)
        self._coming.clear()

    def _visitors(self, retired: list[int]) -> list[int]:
        """Record the ended visits; return the ops."""
        ops = []
        for code in retired:
            if code < VISIT:
                ops.append(code)
            else:
                self.over.append(self._then.pop(code))
        return ops

    def _started(self, op: int) -> bool:
        """Start the part of an op after its start-up time; return whether there is none."""
        del self._starts[op]
        self.drawing[op] = self.now
        if op in self._parts or self.flow_class[op] >= 0:
            self._join(op)
        elif self._flow[op]:
            heappush(self._heap, self.now + self._flow[op] << SHIFT | op)
        else:
            return True
        return False

    def _is_over(self, op: int) -> bool:
        """Record the end of a part of an op; return whether it was the last."""
        left = self._parts.pop(op, 1) - 1
        if left:
            self._parts[op] = left
        return not left

    def _complete_joins(self) -> None:
        """End the ready joins, and joins that become ready by this; other ready ops remain."""
        ready, rest, joined = self._ready, [], []
        while ready:
            op = ready.pop()
            if not self._joins[op]:
                rest.append(op)
                continue
            self.start[op] = self.end[op] = self.now
            joined.append(op)
            for after in self._next[self._first[op] : self._first[op + 1]]:
                self._missing[after] -= 1
                if not self._missing[after]:
                    ready.append(after)
        ready += rest
        self.done += len(joined)
        self._notice(joined)

    def _notice(self, ops: Sequence[int]) -> None:
        for op in ops:
            if op in self.watched:
                self.watched.discard(op)
                self.ended.append(op)

    def unfinished(self) -> list[int]:
        """Return the ops that have not ended."""
        return [] if self.done == len(self) else [op for op, end in enumerate(self.end) if end < 0]
