"""Spare time (slack): how much later an op could end before the run ends later, every other op taking as long as it did."""

from __future__ import annotations

from typing import Final

import numpy as np

from hwsim.graph.opgraph import Ints
from hwsim.results.timeline import Timeline

LARGEST: Final = 200_000  # ops of a run whose spare times are worked out: a second


def slack(timeline: Timeline) -> Ints | None:
    """Spare time of each op in fs; None if the run has more than `LARGEST` ops.

    Waits are the run's own: for predecessors, for turns in queues, and for places of pools as they were given. An op that
    draws on shared capacities slows others down while it lasts longer; that is not part of it.
    """
    if len(timeline) > LARGEST:
        return None
    if "slack" not in timeline.found:
        timeline.found["slack"] = _latest(timeline) - timeline.end
    spare: Ints = timeline.found["slack"]
    return spare


def _latest(timeline: Timeline) -> Ints:
    """The latest end of each op with which the run ends when it did, from the last op back."""
    first, after = timeline.flat.first.tolist(), timeline.flat.next.tolist()
    start, end = timeline.start.tolist(), timeline.end.tolist()
    gave: dict[int, list[int]] = {}
    for taker in np.flatnonzero(timeline.granted >= 0).tolist():
        gave.setdefault(int(timeline.granted[taker]), []).append(taker)
    latest = [timeline.makespan_fs] * len(end)
    order = sorted(range(len(end)), key=lambda op: (start[op], op), reverse=True)
    moved = True
    while moved:  # once more where an op that takes no time has a lower number than one before it
        moved = False
        for op in order:
            last = latest[op]
            for follower in (*after[first[op] : first[op + 1]], *gave.get(op, ())):
                last = min(last, latest[follower] - end[follower] + start[follower])
            if last < latest[op]:
                latest[op], moved = last, True
    return np.array(latest, timeline.end.dtype)
