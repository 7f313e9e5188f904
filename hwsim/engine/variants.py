"""Variants of a graph: the same ops, edges and queues, with other costs, sizes and times, as points of a study often are.

What edges and queues come to is worked out once for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.graph.flat import FlatGraph
from hwsim.graph.opgraph import OpGraph

_SHAPE: Final = ("queue", "insert", "take", "give", "edges")
_TIMES: Final = ("label", "cost", "size", "time")


def is_variant(first: OpGraph, second: OpGraph) -> bool:
    """Whether both have the same ops, edges, queues and pools, so that only times can differ."""
    if len(first.blocks) != len(second.blocks) or first.queues != second.queues or first.pools != second.pools:
        return False
    if not _same(first.ties, second.ties):
        return False
    return all(
        mine is its or (mine.times == its.times and all(_same(getattr(mine, column), getattr(its, column)) for column in _SHAPE))
        for mine, its in zip(first.blocks, second.blocks, strict=True)
    )


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one is other or np.array_equal(one, other)


def with_times(flat: FlatGraph, graph: OpGraph) -> FlatGraph:
    """The flat graph of a variant."""
    columns = {}
    for column in _TIMES:
        pairs = [(getattr(mine, column), getattr(its, column)) for mine, its in zip(flat.graph.blocks, graph.blocks, strict=True)]
        if not all(_same(mine, its) for mine, its in pairs):
            tiled = np.concatenate([np.tile(its, block.times) for (_, its), block in zip(pairs, graph.blocks, strict=True)])
            columns[column] = tiled if column == "time" else tiled.astype(getattr(flat, column).dtype, copy=False)  # may be wide
    return replace(flat, graph=graph, **columns)
