"""Whether two graphs are the same: then they have one timeline."""

from __future__ import annotations

import numpy as np

from hwsim.graph.opgraph import Block, OpGraph

_COLUMNS = ("label", "cost", "size", "time", "queue", "insert", "take", "give", "edges")


def is_same(first: OpGraph, second: OpGraph) -> bool:
    """Whether two graphs are the same in every number and every word, so that they have the same timeline and derivations.

    The rates of capacities that no op draws from may differ.
    """
    if first.alike is not None or second.alike is not None or len(first.blocks) != len(second.blocks):
        return False  # of folded graphs that is not looked for
    if not all(map(_as_long, first.blocks, second.blocks)):
        return False
    plain = ("costs", "labels", "queues", "pools", "buffers", "trainings", "lines", "unfolded", "unlisted")
    if not all(getattr(first, name) == getattr(second, name) for name in plain) or not np.array_equal(first.ties, second.ties):
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
    return all(mine is its or _alike_blocks(mine, its) for mine, its in zip(first.blocks, second.blocks, strict=True))


def _as_long(one: Block, other: Block) -> bool:
    return (one.times, one.turns, len(one)) == (other.times, other.turns, len(other))


def _alike_blocks(one: Block, other: Block) -> bool:
    columns = [(getattr(one, name), getattr(other, name)) for name in _COLUMNS]
    return all(map(np.array_equal, *zip(*columns, strict=True))) and np.array_equal(one.iteration, other.iteration)
