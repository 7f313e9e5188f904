"""Files of op graphs (NumPy npz), for graphs that are too large for YAML.

hwsim.save_graph(graph, "big.npz")
hwsim.simulate("machine.yaml", hwsim.load_graph("big.npz"))        # or its path; or on the command line
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.graph.files import npz
from hwsim.graph.files.tables import COLUMNS, mistake, other_iterations
from hwsim.graph.opgraph import PAIRED, Block, OpGraph
from hwsim.spec import Place
from hwsim.spec.confined import refuse_outside

__all__ = ["COLUMNS", "load_graph", "save_graph"]

LARGEST: Final = 2**31 - 1  # largest number of an iteration


def save_graph(graph: OpGraph, path: str | Path) -> Path:
    """Write a graph to a path that ends in .npz, and return the path.

    Raises:
        SpecError: the time of an op exceeds 64 bits.
        ValueError: the path has another ending, or a column contains numbers beyond 64 bits.
        OSError: the file cannot be written.
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"expected a file name that ends in .npz, got '{path.name}'")
    refuse_long(graph, path)
    npz.save(graph, path)
    return path


def refuse_long(graph: OpGraph, path: Path) -> None:
    """Raise SpecError if the time of an op exceeds the 64 bits of a file."""
    for number, block in enumerate(graph.blocks):
        if block.time.dtype == object:
            longest = int(block.time.max()) / ticks.FEMTO
            hint = "simulate the workload itself"
            raise mistake(str(path), f"'{number}.time': {longest:.6g} s exceeds the limit of 9223 s (2.56 h) per op", hint)


def load_graph(path: str | Path) -> OpGraph:
    """Read and check a graph.

    Raises:
        SpecError: the file does not exist, is damaged, or is not an op graph.
    """
    name = str(path)
    refuse_outside(path, Place(name, 0, 0))
    try:
        graph: OpGraph = npz.load(Path(path), name)
    except FileNotFoundError:
        raise mistake(name, "the file does not exist") from None
    for problem in problems(graph):
        raise mistake(name, problem, "see hwsim.graph.opgraph.Block for the columns")
    return graph


def problems(graph: OpGraph) -> list[str]:
    """Return the mistakes of a graph in words, at most one per block."""
    of_blocks = [problem for number, block in enumerate(graph.blocks) if (problem := _wrong_block(graph, number, block))]
    if of_blocks:
        return of_blocks
    names = {capacity.name for capacity in graph.capacities}
    if len(names) < len(graph.capacities):
        return ["two capacities have the same name"]
    for capacity in graph.capacities:
        if not capacity.rate > 0:
            return [f"capacity '{capacity.name}': expected a positive rate, got {capacity.rate}"]
    if any(cost.played for cost in graph.costs):
        return ["an op was simulated request by request, which a file does not support: simulate the workload itself"]
    for cost in graph.costs:
        if flaw := cost.demand.flaw():
            return [flaw]
        for name, _ in (*cost.demand.amounts, *cost.demand.holds):
            if name not in names:
                return [f"a cost draws from '{name}', which is not among the capacities"]
    if any(pool.servers < 1 for pool in graph.pools):
        return ["a pool has no server: expected at least one"]
    return _wrong_ties(graph)


def _wrong_block(graph: OpGraph, number: int, block: Block) -> str:
    if block.label.ndim != 1:
        return f"'{number}.label' is not a column"
    count = len(block)
    if block.times < 0:
        return f"block {number}: expected 0 or more iterations, got {block.times}"
    if block.turns < 1 or (block.turn is not None and (len(block.turn) != count or block.turn.min(initial=0) < 0)):
        return other_iterations(number, count)
    if block.turns_in(block.times) > LARGEST:
        return f"block {number} has {block.turns_in(block.times):,} iterations, more than the limit of {LARGEST:,}"
    for column in COLUMNS:
        values = getattr(block, column)
        kind = "f" if column == "size" else "i"
        if values.ndim != 1 or len(values) != count or values.dtype.kind != kind:
            wanted = "numbers" if kind == "f" else "whole numbers"
            return f"'{number}.{column}' is not a column of {count} {wanted}, one per op of 'label'"
    if block.edges.ndim != 2 or block.edges.shape[1] != 3 or block.edges.dtype.kind != "i":
        return f"'{number}.edges': expected rows of three whole numbers: from, to, lag"
    limits: Sequence[tuple[str, NDArray[Any], int, int]] = (
        ("label", block.label, 0, len(graph.labels)),
        ("cost", block.cost, -1, len(graph.costs)),
        ("queue", block.queue, -1, len(graph.queues)),
        ("insert", block.insert, -1, count),
        ("take", block.take, -1, len(graph.pools)),
        ("give", block.give, -1, len(graph.pools)),
        ("time", block.time, 0, 2**63),
        ("edges", block.edges[:, :2], 0, count),
        ("edges", block.edges[:, 2], 0, 2**63),
    )
    for column, values, least, stop in limits:
        if values.size and not (values.min() >= least and int(values.max()) < stop):
            upper = f" to {stop - 1:,}" if stop < 2**63 else " or more"
            return f"'{number}.{column}': expected values of {least}{upper}"
    if block.size.size and not (np.isfinite(block.size).all() and (block.size >= 0).all()):
        return f"'{number}.size': expected finite values of 0 or more"
    return ""


def _wrong_ties(graph: OpGraph) -> list[str]:
    ties = graph.ties
    if ties.ndim != 2 or ties.shape[1] != 5 or ties.dtype.kind != "i":
        return ["'ties': expected rows of five whole numbers: block, op, block, op, mode"]
    for before, op, after, then, mode in ties.tolist():
        for block, position in ((before, op), (after, then)):
            if not (0 <= block < len(graph.blocks) and 0 <= position < len(graph.blocks[block])):
                return [f"a tie refers to op {position} of block {block}, which does not exist"]
        if mode > PAIRED:
            return [f"a tie has mode {mode}: expected 0, 1 or 2, or a negative number for a lag"]
        if mode == PAIRED and graph.blocks[before].times != graph.blocks[after].times:
            return [f"a tie pairs blocks {before} and {after}, which have different numbers of iterations"]
    return []
