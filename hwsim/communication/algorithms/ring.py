"""Rings: every rank sends to the next rank, all at once, and forwards what it receives.

    all-reduce                     2 (n - 1) (a + S / (n B))
    reduce-scatter, all-gather       (n - 1) (a + S / (n B))

    broadcast, reduce              (n - 2 + p) (a + S / (p B))      a chain of p = n pieces.

S: bytes. n: ranks. B: bandwidth to the next rank (B/s). a: latency of a step (s). Several rings share the bytes in proportion to
their width; `both` runs every ring in both directions, with half of its bytes each.

Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
Range: the time per byte hardly depends on n if S / n is far above a x B; below, latency dominates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, Final

import numpy as np

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.pairs import SendPairs
from hwsim.communication.plan import CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round
from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.spec.fields import field

CHAINED: Final[tuple[Operation, ...]] = ("broadcast", "reduce")  # operations along a chain


@dataclass(frozen=True, slots=True)
class RingAlgorithm(Algorithm):
    """One ring in rank order, or the rings in `orders`."""

    kind: ClassVar[str] = "ring"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")
    presets: ClassVar[Presets | None] = {
        "ring": {}, "ring-both-ways": {"both": True}, "rings": {"found": True}, "rings-both-ways": {"found": True, "both": True},
    }  # fmt: skip

    both: bool = field("whether each ring runs in both directions, with half of its bytes in each", default=False)
    orders: tuple[tuple[int, ...], ...] = field("rings, each a permutation of all ranks (default: rank order)", default=())
    widths: tuple[float, ...] = field("relative share of the bytes of each ring (default: equal shares)", default=())
    found: bool = field("whether to use the rings that the NVLink topology of the devices allows", default=False)
    channels: int = field("parallel rings over the same links, each with an equal share of the bytes", default=1, minimum=1)

    def rings(self, group: RankGroup) -> tuple[tuple[tuple[int, ...], float], ...]:
        """Return (order, share of the bytes) of every directed ring.

        Raises:
            CannotCollect: an order that is not a permutation of all ranks, or widths that do not match the orders.
        """
        orders = self.orders or (tuple(range(group.ranks)),)
        widths = self.widths or (1.0,) * len(orders)
        if len(widths) != len(orders) or min(widths) <= 0:
            raise CannotCollect(f"{len(orders)} rings, but {len(widths)} widths", "give each ring one width above 0")
        if any(sorted(order) != list(range(group.ranks)) for order in orders):
            raise CannotCollect(f"`orders`: each ring must contain ranks 0 to {group.ranks - 1} exactly once")
        rings = [(order, width / math.fsum(widths)) for order, width in zip(orders, widths, strict=True)]
        if self.both:
            rings = [(directed, share / 2) for order, share in rings for directed in (order, order[::-1])]
        return tuple((order, share / self.channels) for order, share in rings for _ in range(self.channels))

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. Chunk r x rings + q is the share of rank r's part that ring q carries."""
        n, rings = group.ranks, self.rings(group)
        sends = [send for q, (order, _) in enumerate(rings) for send in _ring_sends(operation, order, q, len(rings))]
        shares = tuple(share / n for _ in range(n) for _, share in rings)
        return CollectivePlan(operation, n, n * len(rings), tuple(sorted(sends)), shares=shares)

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return one or two rounds for any number of ranks."""
        n = group.ranks
        if n == 1:
            return ()
        pairs = self._pairs(operation, group)
        if operation in CHAINED:
            return (Round(operation, pairs, n, reduce=operation == "reduce", fill=n - 2),)
        halves = ("reduce-scatter", "all-gather") if operation == "all-reduce" else (operation,)
        return tuple(Round(half, pairs, n - 1, reduce=half == "reduce-scatter") for half in halves)

    def repeated_steps(self, operation: Operation, group: RankGroup) -> tuple[Round, ...] | None:
        return None if operation in CHAINED else self.rounds(operation, group)

    def _pairs(self, operation: Operation, group: RankGroup) -> SendPairs:
        n, rings = group.ranks, self.rings(group)
        hops = (_hops(operation, order) for order, _ in rings)
        codes = np.concatenate([sources * n + targets for sources, targets in hops])
        ends, indices = np.unique(codes, return_inverse=True)
        shares = np.repeat([share / n for _, share in rings], len(codes) // len(rings))
        return SendPairs(ends // n, ends % n, np.asarray(np.bincount(indices.ravel(), weights=shares), np.float64))


def _hops(operation: Operation, order: tuple[int, ...]) -> tuple[Ints, Ints]:
    """Return senders and receivers: around the ring, or in a chain that starts or ends at the root."""
    around = np.array(order, np.int64)
    if operation not in CHAINED:
        return around, np.roll(around, -1)
    chain = np.roll(around, -order.index(0))
    return (chain[:-1], chain[1:]) if operation == "broadcast" else (chain[1:], chain[:-1])


def _ring_sends(operation: Operation, order: tuple[int, ...], q: int, rings: int) -> Iterator[PlanSend]:
    """Yield the sends of one ring."""
    n = len(order)
    hops = list(zip(*(column.tolist() for column in _hops(operation, order)), strict=True))
    if operation in CHAINED:
        for i, (source, target) in enumerate(hops):
            first = i if operation == "broadcast" else n - 2 - i
            for piece in range(n):
                yield PlanSend(first + piece, source, target, piece * rings + q, 1, operation == "reduce")
        return
    begin = 0
    if operation != "all-gather":
        for step in range(n - 1):
            for i, (source, target) in enumerate(hops):
                yield PlanSend(step, source, target, order[(i - step - 1) % n] * rings + q, 1, True)
        begin = n - 1
    if operation != "reduce-scatter":
        for step in range(n - 1):
            for i, (source, target) in enumerate(hops):
                yield PlanSend(begin + step, source, target, order[(i - step) % n] * rings + q)
