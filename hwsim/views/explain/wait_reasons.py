"""Reasons why an op does not start earlier, for the explorer."""

from __future__ import annotations

from hwsim.graph.opgraph import Ints
from hwsim.results.critical import last_predecessors
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.views.explain.derivation import seconds


def reasons(timeline: Timeline, ops: Ints) -> list[str]:
    """Return the reason of each of these ops, to follow the words "it starts when"."""
    earlier = last_predecessors(timeline)[ops].tolist()
    return [_reason(timeline, *pair) for pair in zip(ops.tolist(), earlier, strict=True)]


def _reason(timeline: Timeline, op: int, earlier: int) -> str:
    """Return the reason of an op that waited for an earlier op (-1 for none)."""
    flat = timeline.flat
    start = int(timeline.start[op])
    if earlier < 0:
        return f"it arrives, at {seconds(start / FEMTO)}" if start else "the run begins: it waits for nothing"
    label = flat.graph.labels[int(flat.label[earlier])]
    late = start - int(timeline.end[earlier])
    before = (label.name or "a join") + (f" on {label.device}" if label.device else "")
    queue = int(flat.queue[op])
    if int(timeline.granted[op]) >= 0:
        return f"{before} has released its server of {flat.graph.pools[int(flat.take[op])].name}"
    if queue >= 0 and int(flat.queue[earlier]) == queue:
        reason = f"{before}, the previous op in {flat.graph.queues[queue].name}, has ended"
    else:
        reason = f"its predecessor {before} has ended"
    return f"{reason}, and {seconds(late / FEMTO)} more" if late > 0 else reason
