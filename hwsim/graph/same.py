"""Whether two graphs are the same, and have one timeline; or variants, as points of a study often are.

Variants have the same ops, edges and queues, which are worked out once for all of them, and other costs, sizes and times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.flat import FlatGraph
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
    if not is_variant(first, second) or not _stand_for_the_same(first.alike, second.alike):
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


def is_variant(first: OpGraph, second: OpGraph) -> bool:
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
    pairs = [(getattr(one, each.name), getattr(other, each.name)) for each in fields(Alike)]
    return all(_same(mine, its) if isinstance(mine, np.ndarray) else mine == its for mine, its in pairs)


def _equal_columns(one: Block, other: Block, columns: Sequence[str]) -> bool:
    return one is other or all(_same(getattr(one, column), getattr(other, column)) for column in columns)


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one is other or np.array_equal(one, other)


def with_times(flat: FlatGraph, graph: OpGraph) -> FlatGraph:
    """The flat graph of a variant."""
    columns = {}
    for column in _TIMES if graph.blocks is not flat.graph.blocks else ():
        pairs = [(getattr(mine, column), getattr(its, column)) for mine, its in zip(flat.graph.blocks, graph.blocks, strict=True)]
        if not all(_same(mine, its) for mine, its in pairs):
            tiled = np.concatenate([np.tile(its, block.times) for (_, its), block in zip(pairs, graph.blocks, strict=True)])
            columns[column] = tiled if column == "time" else tiled.astype(getattr(flat, column).dtype, copy=False)  # may be wide
    return replace(flat, graph=graph, **columns)
