"""Reasons why an op of a run does not start earlier, as ends of sentences, for the explorer."""

from __future__ import annotations

from hwsim.graph.opgraph import Ints
from hwsim.results.critical import last_predecessors
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.views.explain.derivation import seconds


def reasons(timeline: Timeline, ops: Ints) -> list[str]:
    """The reason of each of these ops, in their order, to follow "it starts when"."""
    earlier = last_predecessors(timeline)[ops].tolist()
    return [_reason(timeline, *pair) for pair in zip(ops.tolist(), earlier, strict=True)]


def _reason(timeline: Timeline, op: int, earlier: int) -> str:
    """The reason of an op that waited for an earlier one; -1: for none."""
    flat = timeline.flat
    start = int(timeline.start[op])
    if earlier < 0:
        return f"it comes, at {seconds(start / FEMTO)}" if start else "the run begins: it waits for nothing"
    label = flat.graph.labels[int(flat.label[earlier])]
    late = start - int(timeline.end[earlier])
    before = (label.name or "a join") + (f" on {label.device}" if label.device else "")
    queue = int(flat.queue[op])
    if int(timeline.granted[op]) >= 0:
        return f"{before} has given back its place in {flat.graph.pools[int(flat.take[op])].name}"
    if queue >= 0 and int(flat.queue[earlier]) == queue:
        reason = f"{before}, before it in {flat.graph.queues[queue].name}, has ended"
    else:
        reason = f"{before} has ended, which it needs"
    return f"{reason}, and {seconds(late / FEMTO)} more" if late > 0 else reason
