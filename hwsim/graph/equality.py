"""Comparison of op graphs: equal graphs have the same timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.opgraph import Block, OpGraph, RepresentedRanks

_SHAPE: Final = ("queue", "insert", "take", "give", "edges")
_TIMES: Final = ("label", "cost", "size", "time")


def is_same(first: OpGraph, second: OpGraph) -> bool:
    """Return whether two graphs have the same timeline and derivations: all numbers and texts are equal.

    Rates of capacities that no op draws from may differ.
    """
    demands = zip(first.costs, second.costs, strict=False)  # the most frequent difference
    if len(first.costs) != len(second.costs) or any(cost.demand != other.demand for cost, other in demands):
        return False
    if not is_variant(first, second) or not _represent_same_ranks(first.alike, second.alike):
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
            one != other and (one.name in drawn or (one.name, one.unit) != (other.name, other.unit)) for one, other in pairs
        ):
            return False
    blocks = zip(first.blocks, second.blocks, strict=True)
    return all(one.turns == other.turns and _equal_columns(one, other, (*_TIMES, "iteration")) for one, other in blocks)


def is_variant(first: OpGraph, second: OpGraph) -> bool:
    """Whether both have the same ops, edges, queues and pools, so that only times can differ."""
    if first.blocks is second.blocks and first.ties is second.ties:
        return bool(first.queues == second.queues and first.pools == second.pools)
    if len(first.blocks) != len(second.blocks) or first.queues != second.queues or first.pools != second.pools:
        return False
    blocks = zip(first.blocks, second.blocks, strict=True)
    return _same(first.ties, second.ties) and all(
        one.times == other.times and _equal_columns(one, other, _SHAPE) for one, other in blocks
    )


def _represent_same_ranks(one: RepresentedRanks | None, other: RepresentedRanks | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = [(getattr(one, field.name), getattr(other, field.name)) for field in fields(RepresentedRanks)]
    return all(_same(value, its) if isinstance(value, np.ndarray) else value == its for value, its in pairs)


def _equal_columns(one: Block, other: Block, columns: Sequence[str]) -> bool:
    return one is other or all(_same(getattr(one, column), getattr(other, column)) for column in columns)


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one is other or np.array_equal(one, other)
