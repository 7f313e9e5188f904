"""Collective algorithms that the library chose during a run."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hwsim.demand import Choice
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CollectiveChoice:
    """Collectives of one name with one choice of algorithm.

    Args:
        op: name of the collective.
        times: number of collectives.
        choice: algorithm, protocol and channels.
        bytes: size as nccl-tests count it: the whole array of one rank (B); 0 if unknown.
        alone: whether all collectives of that name have this choice.
    """

    op: str
    times: int
    choice: Choice
    bytes: float = 0.0
    alone: bool = True

    @property
    def title(self) -> str:
        """Name, with the size if several choices have the name."""
        return self.op if self.alone or self.bytes <= 0 else f"{self.op} of {format_quantity(self.bytes, 'B')}"


def choices(timeline: Timeline) -> tuple[CollectiveChoice, ...]:
    """Return the choices in program order; empty if the library chose no algorithm."""
    flat = timeline.flat
    chosen = {number: cost.choice for number, cost in enumerate(flat.graph.costs) if cost.choice is not None}
    if not chosen:
        return ()
    counts: dict[tuple[str, Choice], int] = {}
    sizes: dict[tuple[str, Choice], float] = {}
    for op in np.flatnonzero(np.isin(flat.cost, list(chosen))).tolist():
        name = flat.graph.labels[flat.label[op]].name.partition(": ")[0]  # its parts are named like `grads: push`
        key = (name, chosen[int(flat.cost[op])])
        counts[key] = counts.get(key, 0) + 1
        exchange = flat.graph.costs[int(flat.cost[op])].exchange
        sizes.setdefault(key, 0.0 if exchange is None else exchange.bytes)
    named = Counter(name for name, _ in counts)
    return tuple(
        CollectiveChoice(name, times, choice, sizes[name, choice], alone=named[name] == 1)
        for (name, choice), times in counts.items()
    )
