"""What the checks of every answer cost: of a run of each sort, the part of its CPU time, and milliseconds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import hwsim
from hwsim.results import checks
from hwsim.results.invariants import impossible_numbers

SMALL = """hwsim: machine/1
parts: {cpu: {kind: cpu, cores: 4, flop: {fp32: 100 GFLOP/s}, memory: {bandwidth: 10 GB/s}}}
"""


def loop(times: int, busy: int) -> dict[str, Any]:
    """A loop of so many iterations of as many ops one after another."""
    body = [{"busy": {"name": f"op{number}", "device": "cpu", "time": "1 ms"}} for number in range(busy)]
    return {"hwsim": "workload/1", "program": [{"repeat": {"times": times, "do": body}}]}


RUNS: dict[str, Callable[[], hwsim.Run]] = {
    "small, 3,000 ops": lambda: hwsim.simulate(SMALL, loop(100, 30)),
    "loop, 1,000,000 ops": lambda: hwsim.simulate(SMALL, loop(1_000, 1_000)),
    "folded, 100,000 GPUs": lambda: hwsim.simulate(
        "scale/rail-fat-tree", "scale/allreduce", set={"let.nodes": 12500}, expect=False
    ),
    "serving": lambda: hwsim.simulate("dgx-h100", "llama3-8b-serving", expect=False),
    "pipeline": lambda: hwsim.simulate("dgx-a100", "imagenet-epoch", expect=False),
}


def costs(rounds: int = 3) -> Iterator[tuple[str, int, float, float, float]]:
    """(sort of run, ops, seconds of the run, of the checks of the result, of those of its summary)."""
    for name, run in RUNS.items():
        whole, part, text = [], [], []
        for _ in range(rounds):
            begin = time.process_time()
            found = run()
            whole.append(time.process_time() - begin)
            begin = time.perf_counter()
            list(checks.breaches(found))
            part.append(time.perf_counter() - begin)
            summary = str(found)
            begin = time.perf_counter()
            list(impossible_numbers(summary))
            text.append(time.perf_counter() - begin)
        yield name, len(found.timeline), *(statistics.median(series) for series in (whole, part, text))
