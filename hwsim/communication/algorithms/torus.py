"""Two-dimensional torus: rings along the rows, then along the columns, then along the rows again.

    all-reduce      2 (c - 1) (a + S / (c B)) + 2 (r - 1) (a + S / (r c B))      r rows of c ranks

With `both`, half of the bytes take rows first and half columns first, so all links are always busy.

Source: Ying, Kumar, Chen, Wang, Cheng, "Image classification at supercomputer scale", arXiv:1811.06992, 2018 (2-D rings on TPUs).
Range: rows of equal length; a rank's links to its row and to its column do not slow each other.
"""

from __future__ import annotations

import math
from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.algorithms.two_levels import Levels
from hwsim.communication.plan import CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.communication.rounds import Round
from hwsim.records import dataclass
from hwsim.spec.fields import field


@dataclass(frozen=True, slots=True)
class TorusAlgorithm(Algorithm):
    """A 2-D torus of ranks, numbered row by row."""

    kind: ClassVar[str] = "torus"
    operations: ClassVar[tuple[Operation, ...]] = ("all-reduce",)
    presets: ClassVar[Presets | None] = {"torus": {}, "torus-both-ways": {"both": True}}

    rows: int | None = field("rows of the grid (default: the most nearly square grid)", default=None, minimum=1)
    both: bool = field("whether half of the bytes are first sent along the columns", default=False)

    def grid(self, group: RankGroup) -> tuple[int, int]:
        """Return (rows, columns).

        Raises:
            CannotCollect: the ranks cannot form rows of equal length.
        """
        n = group.ranks
        rows = self.rows or max(index for index in range(1, math.isqrt(n) + 1) if n % index == 0)
        if n % rows:
            raise CannotCollect(f"{n} ranks cannot form {rows} rows of equal length")
        if self.both and rows * rows != n:
            raise CannotCollect(f"`both` requires a square torus, got {rows} x {n // rows} ranks")
        return rows, n // rows

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan: rows first; with `both`, the second half of the chunks takes columns first."""
        n = group.ranks
        sends: list[PlanSend] = []
        for number, levels in enumerate(self._orders(group)):
            begin = 0
            for stage, steps in levels.stages(operation):
                sends += [send._replace(step=begin + send.step, chunk=number * n + send.chunk) for send in levels.sends(stage)]
                begin += steps
        return CollectivePlan(operation, n, n * len(self._orders(group)), tuple(sorted(sends)))

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return one round per stage; stages of the two orders are merged, because both have the same number of steps."""
        orders = self._orders(group)
        stages = [levels.rounds(operation, 1 / len(orders)) for levels in orders]
        if len(orders) == 1:
            return tuple(stages[0])
        return tuple(
            Round(first.name, tuple(sorted((*first.pairs, *second.pairs))), first.times, first.reduce)
            for first, second in zip(*stages, strict=True)
        )

    def _orders(self, group: RankGroup) -> tuple[Levels, ...]:
        rows, columns = self.grid(group)
        across = Levels(tuple(tuple(range(row * columns, (row + 1) * columns)) for row in range(rows)))
        if not self.both:
            return (across,)
        return across, Levels(tuple(tuple(range(column, rows * columns, columns)) for column in range(columns)))
