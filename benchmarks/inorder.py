"""Longest paths: an in-order graph alone, and variants of it together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.replay import random_graph
from hwsim.engine import simulate_many
from hwsim.engine.compile import compile_flat
from hwsim.engine.inorder import longest_path
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


def seconds(ops: int, count: int) -> float:
    """CPU time of so many variants with other times for every op; the graphs being made does not count."""
    graph = in_order(ops)
    rng = np.random.default_rng(1)
    durations = [rng.integers(1, 10**6, ops) for _ in range(count)]

    def variants() -> Iterator[OpGraph]:
        for time_of in durations:
            yield replace(graph, blocks=(replace(graph.blocks[0], time=time_of),))

    begin = time.process_time()
    last = [timeline.makespan_fs for timeline in simulate_many(variants())]
    if len(set(last)) < count:
        raise ValueError("variants that differ end alike")
    return time.process_time() - begin
