"""Simulation of graphs without arbitration: the timeline is a longest path.

An op starts at the end of its last predecessor (queues are already edges) and takes a fixed time. This is a product of matrices
over (max, +), without a clock or an event queue (Baccelli, Cohen, Olsder and Quadrat, Synchronization and Linearity, 1992,
section 2). The graph must not contain an op that takes a server of a pool, competes for a capacity that can bind, or is
simulated request by request.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim import ticks
from hwsim.engine.compile import CompiledGraph
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import Timeline


def is_in_order(flat: FlatGraph, compiled: CompiledGraph) -> bool:
    """Return whether no op takes a server, competes for a capacity, or is simulated request by request."""
    return not ((flat.take >= 0).any() or (compiled.flow_class >= 0).any() or compiled.played.any() or compiled.starts)


def longest_path(flat: FlatGraph, compiled: CompiledGraph, *, fast: bool = False) -> Timeline:
    """Return the timeline of a graph without arbitration, equal to that of a replay bit for bit.

    Ops in a cycle, and their successors, never start: start and end are -1.

    Args:
        fast: whether to use compiled code, which must be installed.
    """
    fixed = compiled.fixed
    if fast and fixed.dtype != object:
        from hwsim.engine import core  # not needed for small runs

        start, end = np.empty(len(flat), np.int64), np.empty(len(flat), np.int64)
        sweep = core.kernel("hwsim_longest_path", core.INT, core.LONGS, core.INTS, core.INTS, core.LONGS, core.LONGS, core.LONGS)
        if sweep(len(flat), flat.first, flat.next, flat.waits_for, fixed, start, end) == core.DONE:
            return timeline_of(flat, compiled, start, end)
    start, end = (ticks.column(times) for times in _sweep(flat, fixed.tolist()))
    return timeline_of(flat, compiled, start, end)


def timeline_of(flat: FlatGraph, compiled: CompiledGraph, start: Ints, end: Ints) -> Timeline:
    """Return a timeline without waits for servers and without contention."""
    none = compiled.flow_class  # -1 for every op
    return Timeline(
        flat=flat,
        start=start,
        end=end,
        granted=none,
        flow_class=none,
        paces=((),) * len(compiled.classes),
        alone=tuple(class_.alone for class_ in compiled.classes),
    )


def _sweep(flat: FlatGraph, fixed: Sequence[int]) -> tuple[list[int], list[int]]:
    """Start and end of every op, computed in topological order."""
    first, follow = flat.first.tolist(), flat.next.tolist()
    start = [0] * len(flat)
    end = [-1] * len(flat)
    missing = flat.waits_for.tolist()
    ready = np.flatnonzero(flat.waits_for == 0).tolist()
    while ready:
        op = ready.pop()
        end[op] = ends = start[op] + fixed[op]
        for after in follow[first[op] : first[op + 1]]:
            if start[after] < ends:
                start[after] = ends
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    for op, ended in enumerate(end):
        if ended < 0:
            start[op] = -1
    return start, end
