"""Algorithms of the collectives of a run whose algorithm was chosen for them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hwsim.demand import Choice
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ChosenFor:
    """Ops of one name with one choice.

    Args:
        times: how many there were.
        bytes: bytes of one rank's whole array, as nccl-tests count them; 0 where they are not known.
        alone: whether no other ops of that name have another choice.
    """

    op: str
    times: int
    choice: Choice
    bytes: float = 0.0
    alone: bool = True

    @property
    def title(self) -> str:
        """The name, and the size where several have it."""
        return self.op if self.alone or self.bytes <= 0 else f"{self.op} of {format_quantity(self.bytes, 'B')}"


def choices(timeline: Timeline) -> tuple[ChosenFor, ...]:
    """In the order of the program; none if no algorithm was chosen."""
    flat = timeline.flat
    chosen = {number: cost.choice for number, cost in enumerate(flat.graph.costs) if cost.choice is not None}
    if not chosen:
        return ()
    counts: dict[tuple[str, Choice], int] = {}
    sizes: dict[tuple[str, Choice], float] = {}
    for op in np.flatnonzero(np.isin(flat.cost, list(chosen))).tolist():
        name = flat.graph.labels[flat.label[op]].name.partition(": ")[0]  # a part of it is called `grads: push`
        key = (name, chosen[int(flat.cost[op])])
        counts[key] = counts.get(key, 0) + 1
        exchange = flat.graph.costs[int(flat.cost[op])].exchange
        sizes.setdefault(key, 0.0 if exchange is None else exchange.bytes)
    named = Counter(name for name, _ in counts)
    return tuple(
        ChosenFor(name, times, choice, sizes[name, choice], alone=named[name] == 1) for (name, choice), times in counts.items()
    )
