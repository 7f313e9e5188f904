"""Compare this checkout with an earlier commit:  python -m benchmarks.against REF [--short] [NAME ...]

Each command runs as a whole process of both states in turn. The table shows CPU time and peak memory of both, and their ratios. A
command fails if it is more than 10 % slower or takes more than 20 % more memory: mend it, or explain it in the change log.
Ratios of one run do not depend on the machine or its load as times do.
"""

from __future__ import annotations

import argparse
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
FILES: Final = {"event.yaml": EVENT, "plan.yaml": PLAN}
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
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}")
    parser.add_argument("--short", action="store_true", help="only commands of less than a few seconds")
    given = parser.parse_args()
    cases = {name: text for name, text in (SHORT if given.short else CASES).items() if not given.names or name in given.names}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        states = [_installed(_exported(ref, Path(folder) / ref.replace("/", "-"))) for ref in (given.ref, "HEAD")]
        print(f"{'command':32} {'CPU before':>11} {'now':>8} {'ratio':>6} {'MB before':>10} {'now':>6} {'ratio':>6}")
        return max([_compare(name, text.split(), states, Path(folder)) for name, text in cases.items()], default=0)


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


def _compare(name: str, arguments: Sequence[str], states: Sequence[Path], folder: Path) -> int:
    """Print the row of a command; return 1 if it got slower or larger."""
    taken: tuple[list[processes.Taken], list[processes.Taken]] = ([], [])
    for turn in range(RUNS + 1):
        for state, runs in zip(states, taken, strict=True):
            one = processes.run([sys.executable, "-c", _START, os.fspath(state), os.fspath(folder), *arguments])
            runs.extend([one] if turn else [])  # the first run compiles bytecode
    before, now = (statistics.median(run.seconds for run in runs) for runs in taken)
    held, holds = (statistics.median(run.memory for run in runs) / 1e6 for runs in taken)
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
