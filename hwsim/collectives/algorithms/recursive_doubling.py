"""Partners at distance 1, 2, 4, ...: after log2 n exchanges everyone has heard from everyone.

    all-reduce       log2 n (a + S/B)
    all-gather       log2 n a + (n - 1)/n S/B
    barrier          ceil(log2 n) a           dissemination: rank r to r + 2^k, for any n

Where n is no power of two, r = n - 2^k pairs act as one rank: an all-reduce takes 2 (a + S/B) more, an
all-gather a step before and one after (exact: `seconds`).

Source: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005; the barrier: Hensgen, Finkel, Manber, "Two algorithms for
barrier synchronization", International Journal of Parallel Programming 17(1), 1988.
Range: short messages: every exchange of an all-reduce carries the whole buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hwsim.collectives.algorithms.folding import Folded
from hwsim.collectives.plan import Group, Operation, Plan, Send
from hwsim.collectives.rounds import Round, Wires, rounds_of
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class RecursiveDoubling:
    """Any number of ranks."""

    kind: ClassVar[str] = "recursive-doubling"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "all-gather", "barrier")

    def plan(self, operation: Operation, group: Group) -> Plan:
        """Fold, exchange with the partner at each distance, unfold."""
        n = group.ranks
        if operation == "barrier":
            steps = range((n - 1).bit_length())
            sends = [Send(step, rank, (rank + (1 << step)) % n, 0, 1, True) for step in steps for rank in range(n)]
            return Plan(operation, n, 1, tuple(sends))
        gather = operation == "all-gather"
        return Plan(operation, n, n if gather else 1, tuple(_sends(Folded.of(n), gather)))

    def rounds(self, operation: Operation, group: Group) -> tuple[Round, ...]:
        """As the plan's steps: each distance uses other links."""
        return rounds_of(self.plan(operation, group))

    def seconds(self, operation: Operation, group: Group, size: float, wires: Wires) -> float:
        """The closed form."""
        n = group.ranks
        if operation == "barrier":
            return (n - 1).bit_length() * wires.latency
        folded = Folded.of(n)
        outside = 1 if folded.extra else 0
        if operation == "all-reduce":
            return (folded.levels + 2 * outside) * wires.step(size)
        blocks = [folded.widest(1 << level) for level in range(folded.levels)]
        carried = outside * (1 + (n - 1)) + sum(blocks)  # whole
        return (folded.levels + 2 * outside) * wires.latency + carried / n * Wires(0.0, wires.port, wires.link).step(size)


def _sends(folded: Folded, gather: bool) -> Iterator[Send]:
    """Each exchange of a gather carries the parts that the sender has so far."""
    whole = (0, folded.ranks) if gather else (0, 1)
    step = 0
    if folded.extra:
        for place in range(folded.extra):
            yield Send(0, 2 * place, 2 * place + 1, *((2 * place, 1) if gather else whole), not gather)
        step = 1
    for level in range(folded.levels):
        distance = 1 << level
        for place in range(folded.size):
            span = folded.span(place // distance * distance, distance) if gather else whole
            yield Send(step, folded.leader(place), folded.leader(place ^ distance), *span, not gather)
        step += 1
    for place in range(folded.extra):
        if not gather:
            yield Send(step, 2 * place + 1, 2 * place, *whole)
            continue
        mine = 2 * place  # the parts on both sides of what it has already
        if mine:
            yield Send(step, mine + 1, mine, 0, mine)
        yield Send(step, mine + 1, mine, mine + 1, folded.ranks - mine - 1)
