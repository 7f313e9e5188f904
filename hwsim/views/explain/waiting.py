"""Reasons why an op starts when it does, as data: what it waited for, and what that was to it."""

from __future__ import annotations

from typing import Literal

from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.critical import last_predecessors
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO
from hwsim.views.explain.derivation import seconds

Why = Literal["first", "place", "queue", "end", "later"]


@dataclass(frozen=True, slots=True)
class Waited:
    """The reason why an op does not start earlier.

    Args:
        earlier: the op that it waited for; -1 if none.
        why: "first": it waits for nothing; "place": for a place of a pool that the other gives back; "queue": the other is before
            it in its queue; "end": it needs the other's end; "later": it starts some time after that.
        says: the reason as a sentence's end, after "it starts when".
    """

    op: int
    earlier: int
    why: Why
    name: str
    device: str
    says: str


def waited(timeline: Timeline, ops: Ints) -> tuple[Waited, ...]:
    """The reason of each of these ops, in their order."""
    before = timeline.found.get("before")
    if before is None:
        before = timeline.found["before"] = last_predecessors(timeline).tolist()
    return tuple(_waited(timeline, op, before[op]) for op in ops.tolist())


def _waited(timeline: Timeline, op: int, earlier: int) -> Waited:
    flat = timeline.flat
    start = int(timeline.start[op])
    if earlier < 0:
        says = "the run begins: it waits for nothing" if not start else f"it comes, at {seconds(start / FEMTO)}"
        return Waited(op, -1, "first" if not start else "later", "", "", says)
    label = flat.graph.labels[int(flat.label[earlier])]
    late = start - int(timeline.end[earlier])
    before = (label.name or "a join") + (f" on {label.device}" if label.device else "")
    queue = int(flat.queue[op])
    if int(timeline.granted[op]) >= 0:
        pool = flat.graph.pools[int(flat.take[op])].name
        why: Why = "place"
        says = f"{before} has given back its place in {pool}"
    elif queue >= 0 and int(flat.queue[earlier]) == queue:
        why, says = "queue", f"{before}, before it in {flat.graph.queues[queue].name}, has ended"
    else:
        why, says = "end", f"{before} has ended, which it needs"
    if late > 0 and why != "place":
        why, says = "later", f"{says}, and {seconds(late / FEMTO)} more"
    return Waited(op, earlier, why, label.name, label.device, says)
