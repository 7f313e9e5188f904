"""Ranks that differ, so that nothing folds: whole processes, and how the time grows with the ranks."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks import processes

MLP: Final = {
    "use": "scale/mlp-dp",
    "events": [{"at": "0 s", "part": "gpu*", "jitter": "5 %", "every": "10 ms", "for": "10 s", "seed": 1}],
}
ZERO: Final = {
    "train": {
        "model": "llama-2-7b", "sequence": 4096, "microbatch": 1, "global_batch": 512, "dtype": "bf16",
        "parallel": {"dp": "rest"}, "optimizer": "adam", "sharding": "zero-3",
    }
}  # fmt: skip

SLOW: Final = {"use": "llama3-70b", "events": [{"at": "0 s", "part": "node0.gpu0", "speed": "80 %"}]}


class Case(NamedTuple):
    """A workload on a machine at two sizes, and what is asked for the larger one (s)."""

    what: str
    machine: str
    parameter: str
    sizes: tuple[int, int]
    asked: float
    words: tuple[str, ...] = ()


CASES: Final = (
    Case("all-to-all, unequal parts", "scale/rail-fat-tree", "nodes", (32, 128), 2.5),
    Case("data-parallel MLP, jitter per rank", "scale/star", "ranks", (256, 1024), 1.5),
    Case("ZeRO training, every replica", "scale/rail-fat-tree", "nodes", (16, 64), 5.0, ("--no-fold",)),
    Case("Llama 3 70B, one GPU at 80 %", "scale/rail-fat-tree", "nodes", (32, 128), 1.5),
)


def workload(case: Case, ranks: int) -> Mapping[str, Any]:
    """The workload among so many ranks."""
    if case.what.startswith("all-to-all"):
        draw = random.Random(1)
        skew = [draw.randint(1, 100) for _ in range(ranks)]
        return {"program": [{"alltoall": {"among": "gpu*", "bytes": "64 MB", "algorithm": "pairwise", "skew": skew}}]}
    return MLP if "jitter" in case.what else SLOW if "80 %" in case.what else ZERO


def rows() -> Iterator[tuple[str, str, str]]:
    """What, figure, bound."""
    for case in CASES:
        found = []
        for size in case.sizes:
            ranks = size if case.parameter == "ranks" else 8 * size
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "workload.json"
                path.write_text(json.dumps({"hwsim": "workload/1", **workload(case, ranks)}), encoding="utf-8")
                given = ("simulate", case.machine, str(path), "--set", f"machine.let.{case.parameter}={size}", "--no-expect")
                found.append((ranks, processes.hwsim(*given, *case.words, runs=1)))
        (few, before), (many, taken) = found
        figure = f"{taken.seconds:.2f} s, {taken.memory / 1e6:.0f} MB, {taken.seconds / before.seconds:.1f} x"
        yield f"{case.what}, {many:,} ranks; growth from {few:,}", figure, f"<= {case.asked:g} s"
