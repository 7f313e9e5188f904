"""Large machines, whole processes: hwsim beside what peers took for the same job.

SimGrid runs beside it where it can be compiled (see `simgrid.py`).  ASTRA-sim's figures were recorded once, CPU seconds and peak
memory on a machine of this kind: astra-sim 518bd51 with its analytical network 599a047, congestion unaware.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from benchmarks import processes, simgrid

BYTES: Final = 100e6


class Case(NamedTuple):
    """A command, what a peer took for the same, and what is asked for (s, MB)."""

    what: str
    arguments: tuple[str, ...]
    peer: str
    seconds: float
    megabytes: float | None = None


CASES: Final = (
    Case("ring all-reduce, 1,024 ranks", ("scale/star", "scale/allreduce"), "ASTRA-sim 1.9 s, 354 MB", 0.8, 150),
    Case("ring all-reduce, 4,096 ranks", ("scale/star", "scale/allreduce", "let.ranks=4096"), "ASTRA-sim 81 s, 5.4 GB", 0.8, 150),
    Case(
        "halving-doubling, 4,096 ranks",
        ("scale/star", "scale/allreduce", "let.ranks=4096", "algorithm=halving-doubling"),
        "ASTRA-sim 10.6 s, 5.4 GB",
        1.0,
        200,
    ),
    Case("tensor x data parallel step, 1,024 ranks", ("scale/star", "scale/tp8-dp"), "ASTRA-sim 19 s, 372 MB", 1.5, 200),
    Case("data-parallel MLP step, 1,024 ranks", ("scale/star", "scale/mlp-dp"), "ASTRA-sim 16 s, 383 MB", 1.0),
    Case(
        "hierarchical all-reduce, 100,000 GPUs, 4 pods",
        ("scale/rail-fat-tree", "scale/allreduce", "let.nodes=12500", "let.pods=4", "algorithm=hierarchical"),
        "-",
        3.0,
    ),
    Case("LLM training step, 65,536 GPUs", ("scale/rail-fat-tree", "scale/llm-65536", "let.nodes=8192", "let.pods=4"), "-", 10.0),
)


def rows() -> Iterator[tuple[str, str, str]]:
    """What, figure, bound."""
    for case in CASES:
        machine, workload, *settings = case.arguments
        sets = [word for setting in settings for word in ("--set", setting)]
        taken = processes.hwsim("simulate", machine, workload, *sets)
        figure = f"{taken.seconds:.2f} s, {taken.memory / 1e6:.0f} MB, simulated {_time(taken.said)}"
        asked = f"<= {case.seconds:g} s" + (f", {case.megabytes:g} MB" if case.megabytes else "")
        yield case.what, figure, f"{asked}; {case.peer}"
    beside = simgrid.ring(1024, BYTES)
    if beside is not None:
        yield (
            "the first of them with SimGrid (C++), here",
            f"{beside.seconds:.2f} s, simulated {float(beside.said) * 1e3:.6f} ms",
            "-",
        )


def _time(said: str) -> str:
    found = re.search(r"^  time +(.*)$", said, re.MULTILINE)
    return found.group(1) if found else "?"
