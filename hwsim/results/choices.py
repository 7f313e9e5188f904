"""Which algorithms the collectives of a run took where these were chosen for them."""

from __future__ import annotations

import numpy as np

from hwsim.demand import Choice
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ChosenFor:
    """Ops of one name that took the same, and how many there were."""

    op: str
    times: int
    choice: Choice


def choices(timeline: Timeline) -> tuple[ChosenFor, ...]:
    """In the order of the program; none if no algorithm was chosen."""
    flat = timeline.flat
    chosen = {number: cost.choice for number, cost in enumerate(flat.graph.costs) if cost.choice is not None}
    if not chosen:
        return ()
    found: dict[tuple[str, Choice], int] = {}
    for op in np.flatnonzero(np.isin(flat.cost, list(chosen))).tolist():
        name = flat.graph.labels[flat.label[op]].name.partition(": ")[0]  # a part of it is called `grads: push`
        key = (name, chosen[int(flat.cost[op])])
        found[key] = found.get(key, 0) + 1
    return tuple(ChosenFor(name, times, choice) for (name, choice), times in found.items())
