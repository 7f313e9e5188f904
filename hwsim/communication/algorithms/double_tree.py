"""Double binary tree with half of the bytes in each: every rank is inside one and a leaf of the other, so all links are used.

    all-reduce            2 (d + p - 1) (a + S / (p B))     reduce up, then broadcast down, in p pieces; d levels
    broadcast, reduce       (d + p - 1) (a + S / (p B))

With enough pieces, 2 S/B + 2 d a: the bandwidth of a ring with the latency of a tree, d about log2 n.

Source: Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35(12), 2009; NCCL 2.4 ("double binary trees", NVIDIA, 2019).
Range: pieces that are small relative to a x B waste steps; for two or three ranks, a step is shorter than the formula. Steps that
fill and empty the trees are also shorter (by at most 6 % of the time); up to 64 ranks, they are computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

from hwsim.communication.algorithms.algorithm import Algorithm
from hwsim.communication.pairs import Pair
from hwsim.communication.plan import CollectivePlan, Operation, PlanSend, RankGroup, refuse_too_many_sends
from hwsim.communication.rounds import Round, rounds_of
from hwsim.records import dataclass
from hwsim.spec.fields import field

EXACT: Final = 64  # maximum ranks for which every step is computed


@dataclass(frozen=True, slots=True)
class DoubleTree(Algorithm):
    """A pipelined double binary tree; rank 0 is the root of a broadcast or a reduction."""

    kind: ClassVar[str] = "double-tree"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce", "broadcast", "reduce")

    pieces: int = field("number of pipelined pieces of the half of the message that each tree carries", default=8, minimum=1)

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan. Piece i of tree t is chunk 2 i + t; each level is one piece ahead of the next."""
        refuse_too_many_sends((4 if operation == "all-reduce" else 2) * (group.ranks - 1) * self.pieces)
        sends = sorted(self._sends(operation, group.ranks))
        return CollectivePlan(operation, group.ranks, 2 * self.pieces, tuple(sends))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return the rounds up, then down: full steps, surrounded by shorter steps that fill and empty the trees."""
        n = group.ranks
        if n == 1:
            return ()
        if n <= EXACT:
            fewer_pieces = min(self.pieces, EXACT)
            stages = rounds_of(replace(self, pieces=fewer_pieces).plan(operation, group))
            return tuple(_stretch(stage, fewer_pieces, self.pieces) for stage in stages)
        fill = depth(operation, n) - 1
        up = tuple(sorted(_edges(operation, n, 0.5 / self.pieces)))
        down = tuple(sorted((target, source, share) for source, target, share in up))
        rounds = []
        if operation != "broadcast":
            rounds.append(Round("reduce", up, self.pieces, reduce=True, fill=fill))
        if operation != "reduce":
            rounds.append(Round("broadcast", down, self.pieces, fill=fill))
        return tuple(rounds)

    def _sends(self, operation: Operation, n: int) -> Iterator[PlanSend]:
        begin = 0
        levels = depth(operation, n)
        for tree in (0, 1) if n > 1 else ():
            up = _tree(operation, n, tree)
            begin = 0
            if operation != "broadcast":
                for child, (parent, level) in up.items():
                    for piece in range(self.pieces):
                        yield PlanSend(levels - level + piece, child, parent, 2 * piece + tree, 1, True)
                begin = levels + self.pieces - 1
            if operation != "reduce":
                for child, (parent, level) in up.items():
                    for piece in range(self.pieces):
                        yield PlanSend(begin + level - 1 + piece, parent, child, 2 * piece + tree)


def _stretch(stage: Round, fewer_pieces: int, pieces: int) -> Round:
    """Return a round of few pieces as a round of more pieces: more full steps, each with less data."""
    named = stage if stage.reduce else replace(stage, name="broadcast")
    if pieces == fewer_pieces:
        return named
    pairs = tuple((source, target, share * fewer_pieces / pieces) for source, target, share in stage.pairs)
    return replace(named, pairs=pairs, times=stage.times + (pieces - fewer_pieces if stage.times > 1 else 0))


def depth(operation: Operation, n: int) -> int:
    """Return the levels of the deeper tree."""
    return max((level for tree in (0, 1) for _, level in _tree(operation, n, tree).values()), default=0)


def _edges(operation: Operation, n: int, share: float) -> list[Pair]:
    """Return (child, parent, share) of both trees; an edge of both trees carries both halves."""
    loads: dict[tuple[int, int], float] = {}
    for tree in (0, 1):
        for child, (parent, _) in _tree(operation, n, tree).items():
            loads[child, parent] = loads.get((child, parent), 0.0) + share
    return [(child, parent, load) for (child, parent), load in loads.items()]


def _tree(operation: Operation, n: int, tree: int) -> dict[int, tuple[int, int]]:
    """Return child -> (parent, level of the child; the root has 0).

    The first tree has its leaves at even positions. The second is the first mirrored (even count) or shifted by one position (odd
    count), so that a rank inside one is a leaf of the other. If rank 0 must be the root of both, the trees contain the other
    ranks and their roots are children of rank 0.
    """
    rooted = operation in ("broadcast", "reduce")
    members = list(range(1, n)) if rooted else list(range(n))
    m = len(members)
    shape = _in_order_tree(m)
    if tree:
        places = [m - 1 - index if m % 2 == 0 else (index + 1) % m for index in range(m)]
        shape = [(places[position], -1 if parent < 0 else places[parent], level) for position, parent, level in shape]
    lower = 1 if rooted else 0
    parent_of: dict[int, tuple[int, int]] = {}
    for position, parent, level in shape:
        if parent >= 0:
            parent_of[members[position]] = members[parent], level + lower
        elif rooted:
            parent_of[members[position]] = 0, 1
    return parent_of


def _in_order_tree(m: int) -> list[tuple[int, int, int]]:
    """Return (position, parent or -1, level) of an in-order binary tree over m positions, whose leaves are the even positions."""
    placed: list[tuple[int, int, int]] = []
    stack = [(0, m, -1, 0)]
    while stack:
        low, high, parent, level = stack.pop()
        count = high - low
        if count <= 0:
            continue
        half = 1 << (count.bit_length() - 1)  # a full left half; its root is at an odd place unless it is alone
        position = low + half - 1
        placed.append((position, parent, level))
        stack += [(low, position, position, level + 1), (position + 1, high, position, level + 1)]
    return sorted(placed)
