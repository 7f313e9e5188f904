"""Undamaged files: the library, the examples of every key, random pairs, and what commands have written."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from tests import traces
from tests.keys.examples import EXAMPLES
from tests.random_pairs import random_pair

ROOT: Final = Path(__file__).resolve().parents[2]
LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LARGEST: Final = 20_000  # bytes of a file of the library that is damaged

STUDY: Final = """hwsim: study/1
name: links
machine: d2l-laptop
workload: d2l/async-loop
points:
  grid: {n: "1..4"}
set: {blocking: false}
measure: [time]
"""
DRAWN: Final = """hwsim: study/1
machine: d2l-laptop
workload: d2l/async-loop
points:
  latin: {points: 3, seed: 1, of: {n: "100..1000:log", workload.runtime.dispatch: {normal: {mean: 10 us, sd: 2 us}}}}
"""
TIMES: Final = "op,times,total\ny,1000,0.3 s\nmakespan,1,350 ms\n"
RECORDED: Final[dict[str, Any]] = {
    "hwsim": "recording/1", "clock": "wall", "wall_s": 0.01, "cpu_s": 0.01, "notes": [],
    "ops": [{"name": "b", "function": "matmul", "line": "step.py:5", "times": 5, "wall_total_s": 0.001, "cpu_total_s": 0.001}],
}  # fmt: skip


@cache
def library(folder: str) -> tuple[Path, ...]:
    """The files of a folder of the library, those that are small."""
    return tuple(sorted(path for path in (ROOT / folder).rglob("*.yaml") if path.stat().st_size <= LARGEST))


@cache
def documents(folder: str) -> tuple[Any, ...]:
    """The same files as values."""
    return tuple(yaml.load(path.read_bytes(), LOADER) for path in library(folder))


@cache
def studies() -> tuple[Any, ...]:
    """Studies as values."""
    return tuple(yaml.load(study, LOADER) for study in (STUDY, DRAWN))


def pair(dice: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A machine and a workload that fit each other: the example of a key, or a random pair."""
    if dice.random() < 0.6:
        example = dice.choice(EXAMPLES)
        return json.loads(json.dumps(example.machine)), json.loads(json.dumps(example.workload))
    made = random_pair(dice)
    return made.machine, made.workload


@cache
def kineto() -> bytes:
    """A profile of PyTorch."""
    return json.dumps(traces.kineto(traces.run())).encode()


@cache
def graph() -> bytes:
    """An op graph as an archive."""
    return _written("graph.npz")


def _written(name: str) -> bytes:
    from tempfile import TemporaryDirectory

    import hwsim

    run = hwsim.simulate("d2l-4gpu-pcie", "d2l/allreduce-160mb", expect=False, fold="never")
    with TemporaryDirectory() as folder:
        return hwsim.save_graph(run.timeline.flat.graph, Path(folder, name)).read_bytes()


@cache
def result() -> bytes:
    """The JSON of a run."""
    import hwsim

    return json.dumps(hwsim.simulate("d2l-laptop", "d2l/async-loop", set={"n": 20}, expect=False).to_json(ops=True)).encode()


@cache
def journal() -> bytes:
    """The journal of the same sweep, one point more."""
    from tempfile import TemporaryDirectory

    from hwsim.studies.sweeps import sweep

    with TemporaryDirectory() as folder:
        file = Path(folder, "s.journal.jsonl")
        sweep("d2l-laptop", "d2l/async-loop", {"n": "1..4"}, journal=file)
        return file.read_bytes()
