"""Longest paths of in-order graphs."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks.replay import random_graph
from hwsim.engine.compile import compile_flat
from hwsim.engine.longest_paths import longest_path
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import OpGraph, Queue

QUEUES = 64


def in_order(ops: int) -> OpGraph:
    """The graph of `replay`, with queues in the place of pools."""
    graph = random_graph(ops)
    (block,) = graph.blocks
    none = np.full(ops, -1)
    return replace(
        graph,
        blocks=(replace(block, queue=block.take, take=none, give=none),),
        queues=tuple(Queue(f"queue{number}", "device") for number in range(QUEUES)),
        pools=(),
    )


def ops_per_second(ops: int, *, fast: bool) -> float:
    """CPU time of the longest path alone, the graph being flat."""
    flat = flatten(in_order(ops))
    compiled = compile_flat(flat)
    begin = time.process_time()
    longest_path(flat, compiled, fast=fast)
    return ops / (time.process_time() - begin)
