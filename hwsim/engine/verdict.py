"""Messages for a deadlock, and checks of invariants of every completed run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import rates_of
from hwsim.engine.compile import bodies, latencies
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Floats, Ints
from hwsim.results.invariants import BrokenInvariant
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

NAMED = 8  # ops listed in a message
SAMPLED = 1000  # flowing ops whose service is verified
AT_ONCE = 1 << 17  # ops that are checked together, to limit memory


class Deadlock(RuntimeError):
    """An error for a graph that cannot complete: a cycle, or ops that wait for an event that never occurs."""


def name(flat: FlatGraph, op: int) -> str:
    """Return the name of an op in messages, with device and iteration."""
    label = flat.graph.labels[int(flat.label[op])]
    place = f" on {label.device}" if label.device else ""
    repeated = f" (iteration {int(flat.iteration[op])})" if flat.iteration[op] else ""
    return f"{label.name}{place}{repeated}"


def deadlock(flat: FlatGraph, unfinished: Sequence[int]) -> Deadlock:
    """Return an error with the cycle of the unfinished ops, or else with their names."""
    cycle = _cycle(flat, unfinished)
    if cycle:
        return Deadlock("ops wait for each other in a cycle: " + " -> ".join(name(flat, op) for op in [*cycle, cycle[0]]))
    listed = ", ".join(name(flat, op) for op in unfinished[:NAMED])
    more = f" and {len(unfinished) - NAMED} more" if len(unfinished) > NAMED else ""
    return Deadlock(f"ops never ended, because they wait for an event that never occurs: {listed}{more}")


def _cycle(flat: FlatGraph, unfinished: Sequence[int]) -> list[int]:
    """Return a dependency cycle among unfinished ops, in dependency order; empty if there is none."""
    among = set(unfinished)
    after = {op: [one for one in flat.next[flat.first[op] : flat.first[op + 1]].tolist() if one in among] for op in unfinished}
    path: list[int] = []
    depth: dict[int, int] = {}  # of the ops on the path
    for begin in unfinished:
        path.append(begin)
        while path:
            op = path[-1]
            depth.setdefault(op, len(path) - 1)
            if not after[op]:
                path.pop()
                depth[op] = -1
                continue
            following = after[op].pop()
            at = depth.get(following)
            if at is None:
                path.append(following)
            elif at >= 0:
                return path[at:]
    return []


def check(timeline: Timeline) -> None:
    """Raise `BrokenInvariant` unless every op ran after its predecessors, not too fast, and with its full service."""
    flat = timeline.flat
    latency, body = latencies(flat.graph.costs), bodies(flat.graph.costs, rates_of(flat.graph.capacities))
    calm = timeline.flow_class < 0
    calm[timeline.played] = False
    calm[list(timeline.drawing)] = False
    for low in range(0, len(flat), AT_ONCE):
        _check_times(timeline, latency, body, calm, slice(low, min(low + AT_ONCE, len(flat))))
    _check_service(timeline, body.tolist())


def sampled(flows: NDArray[np.bool_]) -> Ints:
    """Return a sample of the flowing ops, in ascending order, whose service is verified."""
    flowing = np.flatnonzero(flows)
    return flowing[:: max(1, flowing.size // SAMPLED)]


def _check_times(timeline: Timeline, latency: Floats, body: Floats, calm: NDArray[np.bool_], ops: slice) -> None:
    """Raise BrokenInvariant if one of these ops starts too early or has a wrong duration.

    Args:
        latency, body: times of each cost (s).
        calm: whether each op shares no capacity.
    """
    flat, low = timeline.flat, ops.start
    start, end, cost = timeline.start[ops], timeline.end[ops], flat.cost[ops]
    source, target = flat.edges(low, ops.stop)
    early = (timeline.end.take(source) > timeline.start.take(target)).nonzero()[0]
    if early.size:
        before, then = int(source[early[0]]), int(target[early[0]])
        raise BrokenInvariant(f"{name(flat, then)} starts before {name(flat, before)} has ended")
    least = latency.take(cost) + flat.time[ops].astype(np.float64) / FEMTO + body.take(cost) * flat.size[ops]
    took = (end - start).astype(np.float64) / FEMTO
    fast = (took < least * (1 - 1e-9) - 2e-15).nonzero()[0]
    if fast.size:
        op = int(fast[0])
        raise BrokenInvariant(f"{name(flat, low + op)} took {took[op]} s, less than its minimum of {least[op]} s")
    slow = (calm[ops] & (took > least * (1 + 1e-9) + 2e-15)).nonzero()[0]
    if slow.size:
        op = int(slow[0])
        raise BrokenInvariant(f"{name(flat, low + op)} shares no capacity and took {took[op]} s instead of {least[op]} s")


def _check_service(timeline: Timeline, bodies: Sequence[float]) -> None:
    """Raise BrokenInvariant unless flowing ops have received their work, with an excess of less than 1 fs."""
    flat = timeline.flat
    flows = timeline.flow_class >= 0
    flows[timeline.played] = False
    ops = sampled(flows)
    costs = flat.graph.costs
    columns = (timeline.flow_class, flat.cost, timeline.start, timeline.end, flat.time, flat.size)
    rows = zip(ops.tolist(), *(column[ops].tolist() for column in columns), strict=True)
    for op, number, cost, started, ended, fixed, size in rows:
        start = timeline.drawing.get(op, started + fixed + round(costs[cost].demand.latency * FEMTO))
        work = timeline.alone[number] * round(bodies[cost] * size * FEMTO)
        metered = timeline.received.get(op)
        begun, served, pace = metered or (start, *timeline.service(number, start, ended))
        if begun != start:
            raise BrokenInvariant(f"{name(flat, op)} starts to flow at {begun} fs instead of {start} fs")
        if not work <= served < work + max(1, pace):
            raise BrokenInvariant(f"{name(flat, op)} needs {work} units of service and received {served}")
