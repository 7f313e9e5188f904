"""Graphs in which ops wait for nothing but the ends of known ops: their timeline is a longest path.

An op starts when the last of its predecessors has ended (queues are edges already) and takes its fixed time. That is a product
of matrices over (max, +), which needs no clock, no heap and no canonical instants (Baccelli, Cohen, Olsder and Quadrat,
Synchronization and Linearity, 1992, section 2). What breaks it is arbitration: an op that takes a server of a pool, that
competes for a capacity which can bind, or whose requests a server outside serves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hwsim import ticks
from hwsim.engine.compile import Compiled
from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import Timeline


def is_in_order(flat: FlatGraph, compiled: Compiled) -> bool:
    """Whether no op takes a server, competes or has its requests served outside."""
    return not ((flat.take >= 0).any() or (compiled.flow_class >= 0).any() or compiled.played.any())


def longest_path(flat: FlatGraph, compiled: Compiled, *, fast: bool = False) -> Timeline:
    """The timeline of an in-order graph, bit for bit as by replay.

    Ops that wait for each other, and those behind them, never start: -1.
    fast: by compiled code, which is there.
    """
    fixed = compiled.fixed
    if fast and fixed.dtype != object:
        from hwsim.engine import core  # a small run needs none of it

        start, end = np.empty(len(flat), np.int64), np.empty(len(flat), np.int64)
        sweep = core.kernel("hwsim_longest_path", core.INT, core.LONGS, core.INTS, core.INTS, core.LONGS, core.LONGS, core.LONGS)
        if sweep(len(flat), flat.first, flat.next, flat.waits_for, fixed, start, end) == core.DONE:
            return timeline_of(flat, compiled, start, end)
    start, end = (ticks.column(times) for times in _sweep(flat, fixed.tolist()))
    return timeline_of(flat, compiled, start, end)


def timeline_of(flat: FlatGraph, compiled: Compiled, start: Ints, end: Ints) -> Timeline:
    """A timeline without waits for servers and without contention."""
    none = compiled.flow_class  # -1 all over
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
    """Start and end of every op: ops in topological order push their ends to their successors."""
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
