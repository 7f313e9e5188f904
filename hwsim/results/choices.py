"""Algorithms of the collectives of a run whose algorithm was chosen for them."""

from __future__ import annotations

import numpy as np

from hwsim.demand import Choice
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ChosenFor:
    """Ops of one name with one choice: how many there were."""

    op: str
    times: int
    choice: Choice


def choices(timeline: Timeline) -> tuple[ChosenFor, ...]:
    """In the order of the program; none if no algorithm was chosen."""
    flat = timeline.flat
    chosen = {number: cost.choice for number, cost in enumerate(flat.graph.costs) if cost.choice is not None}
    if not chosen:
        return ()
    counts: dict[tuple[str, Choice], int] = {}
    for op in np.flatnonzero(np.isin(flat.cost, list(chosen))).tolist():
        name = flat.graph.labels[flat.label[op]].name.partition(": ")[0]  # a part of it is called `grads: push`
        key = (name, chosen[int(flat.cost[op])])
        counts[key] = counts.get(key, 0) + 1
    return tuple(ChosenFor(name, times, choice) for (name, choice), times in counts.items())
