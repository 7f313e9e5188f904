"""A plan as single sends with what each must wait for: the explicit level, for an op graph to play.

A send waits for what brought its chunks to its source, and for what both its ends did in the step before: ranks take
their steps in order, and a message flows when the receiver is there too.  What goes from one rank to another in a
step is one message.  With `pieces` every send is cut, and piece i waits for piece i of the others only: pieces follow
one another through a ring or a tree.

Source: blocking sends and receives of MPI's collectives (Thakur, Rabenseifner, Gropp, "Optimization of collective
communication operations in MPICH", IJHPCA 19(1), 2005).
Range: buffers that let a sender run ahead of its receiver (NCCL's hold eight slices) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hwsim.collectives.plan import CannotCollect, Plan


class ExplicitSend(NamedTuple):
    """`size` bytes from participant `source` to `target`, after the sends of these places in the list."""

    step: int
    source: int
    target: int
    size: float
    reduce: bool
    after: tuple[int, ...]


def explicit(plan: Plan, size: float, *, pieces: int = 1, weights: Sequence[float] = ()) -> tuple[ExplicitSend, ...]:
    """The sends of a plan in an order in which none waits for a later one.

    Args:
        size: bytes of one rank's whole array.
        pieces: parts that each send is cut into.
        weights: the ranks' parts in proportion where they are not equal.

    >>> from hwsim.collectives.algorithms import Ring
    >>> from hwsim.collectives.plan import Group
    >>> sends = explicit(Ring().plan("all-gather", Group(3)), 9e6)
    >>> [(send.source, send.target, send.after) for send in sends]
    [(0, 1, ()), (1, 2, ()), (2, 0, ()), (0, 1, (0, 1, 2)), (1, 2, (0, 1, 2)), (2, 0, (0, 1, 2))]
    """
    if pieces < 1:
        raise CannotCollect(f"{pieces} pieces", "at least one")
    sizes = plan.sizes(size, weights)
    parties = plan.ranks + plan.helpers
    brought: list[dict[int, list[int]]] = [{} for _ in range(parties)]  # chunk -> first pieces of what brought it
    last: dict[tuple[int, int], int] = {}  # the last send on a way
    done: list[list[int]] = [[] for _ in range(parties)]  # first pieces of what each sent and received in its latest step
    found: list[ExplicitSend] = []
    for step in plan.by_step():
        messages: dict[tuple[int, int, bool], list[int]] = {}
        for send in step:
            chunks = messages.setdefault((send.source, send.target, send.reduce), [])
            chunks += range(send.chunk, send.chunk + send.chunks)
        now: dict[int, list[int]] = {}
        arrived: list[tuple[int, int, int, bool]] = []
        for (source, target, reduce), chunks in messages.items():
            needed = {first for chunk in chunks for first in brought[source].get(chunk, ())} | {*done[source], *done[target]}
            carried = math.fsum(sizes[chunk] for chunk in chunks) / pieces
            first = len(found)
            for piece in range(pieces):
                after = {each + piece for each in needed}
                way = last.get((source, target))
                after |= {way} if way is not None else set()
                last[source, target] = len(found)
                found.append(ExplicitSend(step[0].step, source, target, carried, reduce, tuple(sorted(after))))
            now.setdefault(source, []).append(first)
            now.setdefault(target, []).append(first)
            arrived += [(target, chunk, first, reduce) for chunk in chunks]
        for target, chunk, first, reduce in arrived:
            held = brought[target].get(chunk, []) if reduce else []
            brought[target][chunk] = [*held, first]
        for party, firsts in now.items():
            done[party] = firsts
    return tuple(found)
