"""CPU time to lower and flatten a loop of a million ops."""

from __future__ import annotations

import time

from hwsim.api import prepare
from hwsim.graph.flat import flatten

ITERATIONS = 1_000_000


def seconds() -> float:
    """From the loaded files to the flat graph."""
    begin = time.process_time()
    flat = flatten(prepare("d2l-laptop", "d2l/async-loop", set={"n": ITERATIONS, "workload.runtime.dispatch": "0 s"}).graph)
    if len(flat) < ITERATIONS:
        raise ValueError(f"only {len(flat)} ops")
    return time.process_time() - begin
