"""Algorithms step by step whose steps repeat: their rounds are their sends.

In them every send waits for what both its ends did in their steps before.  What its source had to receive first it received
in one of those, or before: so the chunks need not be followed (`steps` does, for every other algorithm).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hwsim.collectives.algorithms import Algorithm, HalvingDoubling, Hierarchical, RecursiveDoubling, Ring
from hwsim.collectives.plan import CannotCollect, Group, Operation
from hwsim.collectives.rounds import Round
from hwsim.collectives.steps import ExplicitSend

_EVEN: Final[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather")  # no pipeline that fills and empties


def steps_of(algorithm: Algorithm, operation: Operation, group: Group) -> tuple[Round, ...] | None:
    """The rounds of a plan, each of them as many equal steps; None if it is not made of such."""
    match algorithm:
        case Ring() | HalvingDoubling() | RecursiveDoubling() if operation in _EVEN:
            return algorithm.rounds(operation, group)
        case Hierarchical(pieces=1) if len(set(group.sizes)) <= 1:
            return algorithm.rounds(operation, group)
        case _:
            return None


def unrolled(rounds: Sequence[Round], size: float, pieces: int = 1) -> Iterator[ExplicitSend]:
    """The single sends of rounds, as `explicit` has those of their plan."""
    if pieces < 1:
        raise CannotCollect(f"{pieces} pieces", "at least one")
    last: dict[tuple[int, int], int] = {}  # the last send on a way
    done: dict[int, list[int]] = {}  # first pieces of what each sent and received in its latest step
    count = step = 0
    for each in rounds:
        for _ in range(each.times):
            now: dict[int, list[int]] = {}
            for source, target, share in each.pairs:
                needed = {*done.get(source, ()), *done.get(target, ())}
                first = count
                for piece in range(pieces):
                    after = {other + piece for other in needed}
                    if (way := last.get((source, target))) is not None:
                        after.add(way)
                    last[source, target] = count
                    count += 1
                    yield ExplicitSend(step, source, target, share * size / pieces, each.reduce, tuple(sorted(after)))
                now.setdefault(source, []).append(first)
                now.setdefault(target, []).append(first)
            done.update(now)
            step += 1
