"""Replay of a random graph over 64 pools: ops a second, and bytes an op."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc

import numpy as np

from hwsim.engine import native
from hwsim.engine.compile import compile_flat
from hwsim.engine.replay import Replay
from hwsim.graph.flat import flatten
from hwsim.graph.opgraph import Block, Label, OpGraph, Pool

POOLS, WINDOW, MOST_INPUTS = 64, 256, 3


def random_graph(ops: int, seed: int = 0) -> OpGraph:
    """Each op waits for up to three of the 256 before it, takes a random pool and an exponential time of 1 ns mean."""
    rng = np.random.default_rng(seed)
    inputs = rng.integers(0, MOST_INPUTS + 1, ops)
    inputs[: POOLS // 2] = 0
    target = np.repeat(np.arange(ops), inputs)
    source = target - rng.integers(1, WINDOW + 1, target.size)
    real = source >= 0
    pool = rng.integers(0, POOLS, ops)
    none = np.full(ops, -1)
    block = Block(
        label=np.zeros(ops, np.int64),
        cost=none,
        size=np.ones(ops),
        time=1 + rng.exponential(1e6, ops).astype(np.int64),
        queue=none,
        insert=none,
        take=pool,
        give=pool,
        edges=np.stack([source[real], target[real], np.zeros(int(real.sum()), np.int64)], axis=1),
    )
    return OpGraph((block,), (Label("op", "busy", "pool"),), pools=tuple(Pool(f"pool{n}", 1) for n in range(POOLS)))


def ops_per_second(ops: int) -> float:
    """CPU time of the replay alone, the graph being loaded."""
    flat = flatten(random_graph(ops))
    replay = Replay([1] * POOLS, 0)
    replay.load(flat, compile_flat(flat))
    gc.collect()
    begin = time.process_time()
    replay.advance(None, sys.maxsize)
    return ops / (time.process_time() - begin)


def compiled_ops_per_second(ops: int) -> float:
    """The same by compiled code, which has been loaded."""
    flat = flatten(random_graph(ops))
    compiled = compile_flat(flat)
    native.play(flatten(random_graph(10)), compile_flat(flatten(random_graph(10))))
    gc.collect()
    begin = time.process_time()
    native.play(flat, compiled)
    return ops / (time.process_time() - begin)


def bytes_per_op(ops: int) -> float:
    """Peak of what is allocated from the graph built to the replay done, beside the graph."""
    graph = random_graph(ops)
    gc.collect()
    tracemalloc.start()
    flat = flatten(graph)
    replay = Replay([1] * POOLS, 0)
    replay.load(flat, compile_flat(flat))
    replay.advance(None, sys.maxsize)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / ops
