"""Compare this checkout with an earlier commit:  python -m benchmarks.against REF [--short] [NAME ...]

Each command runs as a whole process of both states in turn. The table shows CPU time and peak memory of both, and their ratios. A
command fails if it is more than 10 % slower or takes more than 20 % more memory: mend it, or explain it in the change log.
Ratios of one run do not depend on the machine or its load as times do.

Without --short, runs with an event, with jobs, with a router and with an odd part are also compared at two sizes each. Such a
family fails if the exponent of its CPU time (seconds ~ size ** exponent) has grown by more than 0.1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks import processes

ROOT: Final = Path(__file__).resolve().parent.parent
SLOWER: Final = 1.10
LARGER: Final = 1.20
LEAST: Final = 0.05  # seconds of CPU time by which a command may always differ
RUNS: Final = 5
EVENT: Final = """\
hwsim: workload/1
use: scale/allreduce
let: {steps: explicit}
events: [{at: 1 ms, link: ports, of: gpu3, speed: 90 %}]
"""
PLAN: Final = """\
hwsim: plan/1
machine: scale/planning-cluster
workload: llama3-70b
vary: {let.node: [dgx-h100, dgx-b200], let.nodes: 16..640, workload.train.parallel: auto}
require: [training p90 at most 60 day]
minimise: cost
simulate: 0
"""
ODD: Final = """\
hwsim: workload/1
use: llama3-70b
events: [{at: 0 s, part: node0.gpu0, speed: 80 %}]
"""
ROUTED: Final = """\
hwsim: workload/1
let: {requests: 1000}
infer:
  {model: llama-3-8b, framework: vllm, dtype: bf16, parallel: {tp: 1, dp: rest}, arrivals: {poisson: 80 1/s}, requests: $requests,
   shared: {tokens: 2000, groups: 64, skew: 1}, prompt: {lognormal: {median: 300, sigma: 1}}, output: 150, seed: 1,
   router: {prefix: 2, queue: 1, room: 1}}
"""
FAMILIES: Final[dict[str, tuple[str, int, int]]] = {  # command, smaller and larger size
    "event": ("simulate scale/star event.yaml --set machine.let.ranks={0} --no-fold --no-expect", 64, 256),
    "jobs": ("simulate scale/rail-fat-tree jobs-{0}.json --set machine.let.nodes={0} --no-expect", 16, 64),
    "router": ("simulate dgx-h100 routed.yaml --set workload.let.requests={0} --no-expect", 1000, 4000),
    "odd part": ("simulate scale/rail-fat-tree odd.yaml --set machine.let.nodes={0} --no-expect", 32, 128),
}
STEEPER: Final = 0.1  # difference of exponents


def _jobs(nodes: int) -> str:
    """Return a workload of two trainings, on every other node each."""
    train = {"sequence": 8192, "microbatch": 1, "global_batch": 1024, "dtype": "bf16"}
    plans = (("llama-3-70b", {"tp": 8, "pp": 4, "dp": "rest"}, "zero-1"), ("llama-3-8b", {"tp": 1, "dp": "rest"}, "fsdp"))
    jobs = {
        model: {
            "train": train
            | {"model": model, "device": [f"node{node}.gpu*" for node in range(first, nodes, 2)]}
            | {"parallel": parallel, "sharding": sharding}
        }
        for first, (model, parallel, sharding) in enumerate(plans)
    }
    return json.dumps({"hwsim": "workload/1", "jobs": jobs})


FILES: Final = {
    "event.yaml": EVENT, "plan.yaml": PLAN, "odd.yaml": ODD, "routed.yaml": ROUTED,
    **{f"jobs-{nodes}.json": _jobs(nodes) for nodes in FAMILIES["jobs"][1:]},
}  # fmt: skip
SHORT: Final[dict[str, str]] = {
    "small run": "simulate d2l-laptop d2l/async-loop --no-expect",
    "explain a training step": "explain dgx-h100 resnet50-dp",
    "sweep of 100 points": "sweep d2l-laptop d2l/async-loop --vary n=1..100 --workers 1",
    "serving": "simulate dgx-h100 llama3-8b-serving --no-expect",
    "ring of 1,024": "simulate scale/star scale/allreduce --no-expect",
    "ring of 256, sends one by one": "simulate scale/star scale/allreduce --set let.ranks=256 --set steps=explicit --no-fold "
    "--no-expect",
    "the same with a slow link": "simulate scale/star event.yaml --set machine.let.ranks=256 --no-fold --no-expect",
}
CASES: Final[dict[str, str]] = {
    **SHORT,
    "plan": "plan plan.yaml",
    "estimate": "estimate dgx-h100 llama-3-70b --nodes 16 --tp 8 --pp 4 --global-batch 1024",
    "all-reduce, 100,000 GPUs": "simulate scale/rail-fat-tree scale/allreduce --set let.nodes=12500 --set let.pods=4 "
    "--set algorithm=hierarchical --no-expect",
    "training step, 65,536 GPUs": "simulate scale/rail-fat-tree scale/llm-65536 --set let.nodes=8192 --set let.pods=4 "
    "--no-expect",
}


def main() -> int:
    """Print the table; the exit status is 1 if a command is slower or larger."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", help="commit or tag to compare with")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*CASES, *FAMILIES])}")
    parser.add_argument("--short", action="store_true", help="only commands of less than a few seconds")
    given = parser.parse_args()
    cases = {name: text for name, text in (SHORT if given.short else CASES).items() if not given.names or name in given.names}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        states = [_installed(_exported(ref, Path(folder) / ref.replace("/", "-"))) for ref in (given.ref, "HEAD")]
        print(f"{'command':32} {'CPU before':>11} {'now':>8} {'ratio':>6} {'MB before':>10} {'now':>6} {'ratio':>6}")
        wrong = [_compare(name, text.split(), states, Path(folder)) for name, text in cases.items()]
        families = {} if given.short else {name: FAMILIES[name] for name in FAMILIES if not given.names or name in given.names}
        wrong += [_compare_growth(name, *family, states, Path(folder)) for name, family in families.items()]
        return max(wrong, default=0)


def _exported(ref: str, folder: Path) -> Path:
    """Return a folder with the files of a commit."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", ref], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    return folder


def _installed(source: Path) -> Path:
    """Return a folder with the package of a source, and its compiled core where there is a compiler."""
    target = source.with_name(f"{source.name}-installed")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, source]
    subprocess.run(list(map(str, command)), check=True)
    return target


def _measured(arguments: Sequence[str], states: Sequence[Path], folder: Path) -> tuple[list[float], list[float]]:
    """Return the median CPU seconds and bytes of a command for each state."""
    taken: tuple[list[processes.Taken], list[processes.Taken]] = ([], [])
    for turn in range(RUNS + 1):
        for state, runs in zip(states, taken, strict=True):
            one = processes.run([sys.executable, "-c", _START, os.fspath(state), os.fspath(folder), *arguments])
            runs.extend([one] if turn else [])  # the first run compiles bytecode
    seconds, memory = ([statistics.median(getattr(run, key) for run in runs) for runs in taken] for key in ("seconds", "memory"))
    return seconds, memory


def _compare_growth(name: str, text: str, small: int, large: int, states: Sequence[Path], folder: Path) -> int:
    """Print the row of a family; return 1 if the exponent of its CPU time has grown."""
    (less, _), (more, _) = (_measured(text.format(size).split(), states, folder) for size in (small, large))
    before, now = (math.log(many / few) / math.log(large / small) for few, many in zip(less, more, strict=True))
    is_steeper = now > before + STEEPER
    print(f"{f'{name}, {small} to {large}: exponent':32} {before:11.2f} {now:8.2f}" + "  steeper" * is_steeper, flush=True)
    return int(is_steeper)


def _compare(name: str, arguments: Sequence[str], states: Sequence[Path], folder: Path) -> int:
    """Print the row of a command; return 1 if it got slower or larger."""
    (before, now), (held, holds) = _measured(arguments, states, folder)
    held, holds = held / 1e6, holds / 1e6
    slower = now > SLOWER * before and now > before + LEAST
    wrong = ["slower"] * slower + ["larger"] * (holds > LARGER * held)
    print(
        f"{name:32} {before:9.2f} s {now:6.2f} s {now / before:6.2f} {held:10.0f} {holds:6.0f} {holds / held:6.2f}"
        + (f"  {' and '.join(wrong)}" if wrong else ""),
        flush=True,
    )
    return int(bool(wrong))


_START: Final = """
import os, sys
sys.path.insert(0, sys.argv[1])
os.chdir(sys.argv[2])
sys.argv = ["hwsim", *sys.argv[3:]]
from hwsim.cli import main
main()
"""

if __name__ == "__main__":
    sys.exit(main())
