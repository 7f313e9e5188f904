"""A run that cannot finish, said by name; and what must hold of every run that did."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim.demand import rates_of
from hwsim.engine.compile import bodies, latencies
from hwsim.graph.flat import FlatGraph
from hwsim.results.invariants import BrokenInvariant
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO

NAMED = 8  # ops listed in a message
SAMPLED = 1000  # flowing ops whose service is integrated again


class Deadlock(RuntimeError):
    """The graph cannot finish: a cycle, or ops that wait for what never comes."""


def name(flat: FlatGraph, op: int) -> str:
    """An op as a reader calls it."""
    label = flat.graph.labels[int(flat.label[op])]
    place = f" on {label.device}" if label.device else ""
    repeated = f" (iteration {int(flat.iteration[op])})" if flat.iteration[op] else ""
    return f"{label.name}{place}{repeated}"


def deadlock(flat: FlatGraph, unfinished: Sequence[int]) -> Deadlock:
    """Why these ops never ended: the cycle they wait in, or else their names."""
    cycle = _cycle(flat, unfinished)
    if cycle:
        return Deadlock("ops wait for each other in a circle: " + " -> ".join(name(flat, op) for op in [*cycle, cycle[0]]))
    listed = ", ".join(name(flat, op) for op in unfinished[:NAMED])
    more = f" and {len(unfinished) - NAMED} more" if len(unfinished) > NAMED else ""
    return Deadlock(f"ops that never ended, for what they wait for never comes: {listed}{more}")


def _cycle(flat: FlatGraph, unfinished: Sequence[int]) -> list[int]:
    """A cycle among ops, in the order they wait for each other's end; empty if there is none."""
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
    """Raise `BrokenInvariant` unless every op ran after its inputs, never faster than it can, and was served in full."""
    flat, start, end = timeline.flat, timeline.start, timeline.end
    sources, targets = flat.edges()
    early = np.flatnonzero(end[sources] > start[targets])
    if early.size:
        first, second = int(sources[early[0]]), int(targets[early[0]])
        raise BrokenInvariant(f"{name(flat, second)} starts before {name(flat, first)} has ended")
    latency, body = latencies(flat.graph.costs), bodies(flat.graph.costs, rates_of(flat.graph.capacities))
    least = latency[flat.cost] + flat.time.astype(np.float64) / FEMTO + body[flat.cost] * flat.size
    took = (end - start).astype(np.float64) / FEMTO
    fast = np.flatnonzero(took < least * (1 - 1e-9) - 2e-15)
    if fast.size:
        op = int(fast[0])
        raise BrokenInvariant(f"{name(flat, op)} took {took[op]} s; alone it takes {least[op]} s")
    calm = timeline.flow_class < 0
    calm[timeline.played] = False
    slow = np.flatnonzero(calm & (took > least * (1 + 1e-9) + 2e-15))
    if slow.size:
        op = int(slow[0])
        raise BrokenInvariant(f"{name(flat, op)} shares nothing, took {took[op]} s and needs {least[op]} s")
    _check_service(timeline, body.tolist())


def _check_service(timeline: Timeline, bodies: Sequence[float]) -> None:
    """A flowing op has received its work, and not more than one fs too much of it."""
    flat = timeline.flat
    flows = timeline.flow_class >= 0
    flows[timeline.played] = False
    flowing = np.flatnonzero(flows)
    sampled = flowing[:: max(1, flowing.size // SAMPLED)]
    costs = flat.graph.costs
    columns = (timeline.flow_class, flat.cost, timeline.start, timeline.end, flat.time, flat.size)
    rows = zip(sampled.tolist(), *(column[sampled].tolist() for column in columns), strict=True)
    for op, number, cost, started, ended, fixed, size in rows:
        start = started + fixed + round(costs[cost].demand.latency * FEMTO)
        work = timeline.alone[number] * round(bodies[cost] * size * FEMTO)
        served, pace = timeline.service(number, start, ended)
        if not work <= served < work + max(1, pace):
            raise BrokenInvariant(f"{name(flat, op)} needs {work} units of service and received {served}")
