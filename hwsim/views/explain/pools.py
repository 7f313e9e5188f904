"""Time in which an op of the path was ready, and all servers of its pool were taken."""

from __future__ import annotations

import numpy as np

from hwsim import ticks
from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import Timeline
from hwsim.views.explain.cause import Cause, Causes


def ready_times(timeline: Timeline, ops: Ints) -> Ints:
    """When the last of the ops that each of these waits for has ended, in fs; 0 if it waits for none."""
    place = np.full(len(timeline), -1, np.int64)
    place[ops] = np.arange(len(ops))
    source, target = timeline.flat.edges()
    here = place[target] >= 0
    found = np.zeros(len(ops), timeline.end.dtype)
    np.maximum.at(found, place[target[here]], timeline.end[source[here]])
    return found


def lack_servers(
    timeline: Timeline, path: Ints, at: Ints, low: Ints, high: Ints, cause: Ints, causes: Causes
) -> tuple[Ints, Ints, Ints, Ints]:
    """The pieces of a path (of op `path[at]`, in order of time), with the pool as cause while an op waits for a server.

    Where several wait at once, one behind the other, the pool is the one nearest to the op that runs.
    """
    waiting = np.flatnonzero(timeline.granted[path] >= 0)
    if not len(waiting):
        return at, low, high, cause
    ready = dict(zip(waiting.tolist(), ready_times(timeline, path[waiting]).tolist(), strict=True))
    pools = timeline.flat.graph.pools
    rows: list[tuple[int, int, int, int]] = []
    since: list[tuple[int, int]] = []  # (ready, cause) of ops later on the path; the nearest is the last
    behind = list(waiting.tolist())
    for op, begin, end, own in zip(at.tolist()[::-1], low.tolist()[::-1], high.tolist()[::-1], cause.tolist()[::-1], strict=True):
        while behind and behind[-1] > op:
            number = behind.pop()
            pool = pools[int(timeline.flat.take[path[number]])]
            since.append((ready[number], causes.number(Cause("pool", pool.name))))
        until = end
        while until > begin:
            while since and since[-1][0] >= until:
                since.pop()
            why, start = (since[-1][1], max(begin, since[-1][0])) if since else (own, begin)
            rows.append((op, start, until, why))
            until = start
    found = np.array([(op, why) for op, _, _, why in rows[::-1]], np.int64).reshape(-1, 2)
    starts, ends = ([row[column] for row in rows[::-1]] for column in (1, 2))
    return found[:, 0], ticks.matching(starts, high), ticks.matching(ends, high), found[:, 1]
