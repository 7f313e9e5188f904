"""Slack: how much later each op could end without delaying the run, if the durations of all other ops stay the same."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import Timeline

LARGEST: Final = 200_000  # largest number of ops; takes about 1 s


def slack(timeline: Timeline) -> Ints | None:
    """Return the slack of each op (fs); None if the run has more than `LARGEST` ops.

    Dependencies are those of the run: predecessors, queue order, and servers of pools in the order in which they were granted.
    The effect of a longer op on others that share its capacities is not included.
    """
    if len(timeline) > LARGEST:
        return None
    if "slack" not in timeline.found:
        timeline.found["slack"] = _latest(timeline) - timeline.end
    spare: Ints = timeline.found["slack"]
    return spare


def _latest(timeline: Timeline) -> Ints:
    """Return the latest end of each op that does not delay the run (fs), computed backwards from the last op."""
    first, after = timeline.flat.first.tolist(), timeline.flat.next.tolist()
    start, end = timeline.start.tolist(), timeline.end.tolist()
    gave: dict[int, list[int]] = {}
    for taker in np.flatnonzero(timeline.granted >= 0).tolist():
        gave.setdefault(int(timeline.granted[taker]), []).append(taker)
    latest = [timeline.makespan_fs] * len(end)
    order = sorted(range(len(end)), key=lambda op: (start[op], op), reverse=True)
    moved = True
    while moved:  # repeat while an op without duration precedes one with a lower number
        moved = False
        for op in order:
            last = latest[op]
            for follower in (*after[first[op] : first[op + 1]], *gave.get(op, ())):
                last = min(last, latest[follower] - end[follower] + start[follower])
            if last < latest[op]:
                latest[op], moved = last, True
    return np.array(latest, timeline.end.dtype)
