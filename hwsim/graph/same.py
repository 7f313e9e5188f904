"""Whether two graphs are the same in all that a run depends on, and so have one timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Alike, Block, OpGraph

_SHAPE: Final = ("queue", "insert", "take", "give", "edges")
_TIMES: Final = ("label", "cost", "size", "time")


def is_same(first: OpGraph, second: OpGraph) -> bool:
    """Whether two graphs are the same in every number and every word, so that they have the same timeline and derivations.

    The rates of capacities that no op draws from may differ.
    """
    demands = zip(first.costs, second.costs, strict=False)  # mostly these differ, and in one of the first
    if len(first.costs) != len(second.costs) or any(mine.demand != its.demand for mine, its in demands):
        return False
    if not _is_variant(first, second) or not _stand_for_the_same(first.alike, second.alike):
        return False
    plain = ("costs", "labels", "buffers", "trainings", "lines", "unfolded", "unlisted")
    if not all(getattr(first, name) == getattr(second, name) for name in plain):
        return False
    if any(cost.wide is not None or cost.played for cost in first.costs):
        return False
    if first.capacities != second.capacities:
        drawn = {name for cost in first.costs for name, _ in (*cost.demand.amounts, *cost.demand.holds)}
        pairs = list(zip(first.capacities, second.capacities, strict=False))
        if len(first.capacities) != len(second.capacities) or any(
            mine != its and (mine.name in drawn or (mine.name, mine.unit) != (its.name, its.unit)) for mine, its in pairs
        ):
            return False
    blocks = zip(first.blocks, second.blocks, strict=True)
    return all(mine.turns == its.turns and _equal_columns(mine, its, (*_TIMES, "iteration")) for mine, its in blocks)


def _is_variant(first: OpGraph, second: OpGraph) -> bool:
    """Whether both have the same ops, edges, queues and pools, so that only times can differ."""
    if first.blocks is second.blocks and first.ties is second.ties:
        return bool(first.queues == second.queues and first.pools == second.pools)
    if len(first.blocks) != len(second.blocks) or first.queues != second.queues or first.pools != second.pools:
        return False
    blocks = zip(first.blocks, second.blocks, strict=True)
    return _same(first.ties, second.ties) and all(
        mine.times == its.times and _equal_columns(mine, its, _SHAPE) for mine, its in blocks
    )


def _stand_for_the_same(one: Alike | None, other: Alike | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(Alike)]
    return all(_same(mine, its) if isinstance(mine, np.ndarray) else mine == its for mine, its in pairs)


def _equal_columns(one: Block, other: Block, columns: Sequence[str]) -> bool:
    return one is other or all(_same(getattr(one, column), getattr(other, column)) for column in columns)


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one is other or np.array_equal(one, other)
