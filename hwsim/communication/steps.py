"""A plan as single sends with their dependencies: the explicit level, for simulation as an op graph.

A send waits for the sends that delivered its chunks to its source, and for all sends of both ends in the previous step. Ranks
process their steps in order, and a message flows when the receiver is ready, too. The chunks between two ranks in a step form one
message. With `pieces`, every send is split, and piece i waits only for piece i of other sends: pieces are pipelined through a
ring or a tree.

Source: blocking sends and receives of MPI's collectives (Thakur, Rabenseifner, Gropp, "Optimization of collective
communication operations in MPICH", IJHPCA 19(1), 2005).
Range: buffers that let a sender run ahead of its receiver (NCCL's have eight slices) are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hwsim.communication.plan import CannotCollect, CollectivePlan, refuse_too_many_sends


class ExplicitSend(NamedTuple):
    """A send of `size` bytes from participant `source` to `target`, after the sends at these indices."""

    step: int
    source: int
    target: int
    size: float
    reduce: bool
    after: tuple[int, ...]


class _Order:
    """The order of sends and the sends that later ones wait for; of a send in pieces, the first piece."""

    def __init__(self, pieces: int) -> None:
        if pieces < 1:
            raise CannotCollect(f"expected at least 1 piece, got {pieces}")
        self.pieces = pieces
        self.count = 0
        self._last: dict[tuple[int, int], int] = {}  # last send from one rank to another
        self._done: dict[int, list[int]] = {}  # sends of each participant in its latest step
        self._step: dict[int, list[int]] = {}  # the same in the current step

    def message(
        self, step: int, source: int, target: int, size: float, reduce: bool, brought: Iterable[int] = ()
    ) -> Iterator[ExplicitSend]:
        """Yield the pieces of a message; `brought`: sends that delivered its chunks to its source."""
        needed = {*brought, *self._done.get(source, ()), *self._done.get(target, ())}
        for party in (source, target):
            self._step.setdefault(party, []).append(self.count)
        for piece in range(self.pieces):
            after = {first + piece for first in needed}
            if (last := self._last.get((source, target))) is not None:
                after.add(last)
            self._last[source, target] = self.count
            self.count += 1
            yield ExplicitSend(step, source, target, size / self.pieces, reduce, tuple(sorted(after)))

    def end_step(self) -> None:
        """End the step: the next step's sends wait for its sends."""
        self._done.update(self._step)
        self._step = {}


def explicit_sends(
    plan: CollectivePlan, size: float, *, pieces: int = 1, weights: Sequence[float] = ()
) -> tuple[ExplicitSend, ...]:
    """Return the sends of a plan in an order in which none waits for a later one.

    Args:
        size: bytes of one rank's array.
        pieces: parts that each send is split into.
        weights: relative parts of the ranks; empty: equal parts.

    >>> from hwsim.communication.algorithms.ring import RingAlgorithm
    >>> from hwsim.communication.plan import RankGroup
    >>> sends = explicit_sends(RingAlgorithm().plan("all-gather", RankGroup(3)), 9e6)
    >>> [(send.source, send.target, send.after) for send in sends]
    [(0, 1, ()), (1, 2, ()), (2, 0, ()), (0, 1, (0, 1, 2)), (1, 2, (0, 1, 2)), (2, 0, (0, 1, 2))]
    """
    order = _Order(pieces)
    sizes = plan.sizes(size, weights)
    brought: list[dict[int, list[int]]] = [{} for _ in range(plan.ranks + plan.helpers)]  # chunk -> sends that delivered it
    sends: list[ExplicitSend] = []
    for step in plan.by_step():
        messages: dict[tuple[int, int, bool], list[int]] = {}
        for send in step:
            chunks = messages.setdefault((send.source, send.target, send.reduce), [])
            chunks += range(send.chunk, send.chunk + send.chunks)
        arrived: list[tuple[int, int, int, bool]] = []
        for (source, target, reduce), chunks in messages.items():
            needed = {first for chunk in chunks for first in brought[source].get(chunk, ())}
            arrived += [(target, chunk, order.count, reduce) for chunk in chunks]
            carried = math.fsum(sizes[chunk] for chunk in chunks)
            refuse_too_many_sends(order.count + pieces)
            sends += order.message(step[0].step, source, target, carried, reduce, needed)
        for target, chunk, first, reduce in arrived:
            added_to = brought[target].get(chunk, []) if reduce else []
            brought[target][chunk] = [*added_to, first]
        order.end_step()
    return tuple(sends)
