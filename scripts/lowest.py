"""The lowest versions of what hwsim needs, beside those that are installed: the same commands print the same bytes.

python scripts/lowest.py            make .venv-lowest with the versions that pyproject.toml names, compare, run some tests there
python scripts/lowest.py compare    only one of the steps: install, compare, tests

It needs Python 3.11 or 3.12: the oldest numpy that hwsim accepts knows no newer one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".venv-lowest"
PYTHON = str(PLACE / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
EXTRAS: Final = ("tables",)
TOOLS: Final = ("hypothesis", "pytest")  # of those that the tests need
BOUND: Final = re.compile(r"([A-Za-z0-9_.-]+)>=([0-9.]+)")
TESTS: Final = (
    "tests/test_fast.py",
    "tests/test_npz.py",
    "tests/test_spec_values.py",
    "tests/test_fair.py",
)
FILES: Final = (".csv", ".json", ".npz", ".yaml")  # whose bytes are compared; of figures only that they are drawn
# Every command, the kinds of machines and of workloads, and each library: simpy, yaml, numpy, rich, matplotlib
COMMANDS: Final = (
    "simulate d2l-laptop d2l/async-loop --json --ops",
    "simulate d2l-4gpu-pcie d2l/allreduce-160mb --json --ops --trace trace.json",
    "simulate d2l-laptop d2l/async-loop --plot gantt.png",
    "simulate dgx-a100 bert-large --json",
    "simulate d2l-gpu-workstation d2l/data-loading --json --ops",
    "simulate dgx-h100 llama3-8b-serving --json --ops",
    "simulate dgx-h100 serving/adapters --json",
    "simulate p3.16xlarge resnet50-dp --json",
    "simulate web-server services/web-and-database --json",
    "estimate dgx-h100 mixtral-8x7b --plan auto --global-batch 128 --json",
    "course new sheets --students students.txt --key key.md",
    "score d2l-4gpu-pcie d2l/allreduce-160mb measured.csv --json",
    "sensitivity d2l-laptop d2l/async-matmul --against d2l-quad-core --json",
    "simulate d2l-disks d2l/ssd-queue-depth",
    "simulate d2l-quad-core d2l/stride",
    "simulate d2l-laptop nowhere",
    "sweep d2l-memory d2l/dram-banks --vary banks=1..8:x2 -o sweep.csv",
    "study study.yaml",
    "plan d2l-laptop d2l/async-loop --vary n=10,100 --minimise time --json",
    "compare d2l-laptop d2l-quad-core d2l/async-loop --json",
    "sensitivity d2l-laptop d2l/async-loop --json",
    "explain d2l-gpu-workstation d2l/data-loading",
    "explain d2l-laptop d2l/async-loop --json",
    "latency d2l-latency --json",
    "roofline p3.16xlarge",
    "collectives dgx-a100",
    "estimate dgx-a100 gpt2-xl --global-batch 64",
    "export kineto d2l-4gpu-pcie d2l/allreduce-160mb -o profile",
    "import kineto profile/rank0.json.gz --json -o step.npz",
    "show dgx-h100 --topology",
    "show d2l-laptop",
    "check d2l-laptop d2l/async-loop",
    "schema workload",
    "new starter",
    "calibrate doctor",
    "doctor",
    "--help",
)
GIVEN: Final = {
    "students.txt": "Ada\nGrace\n",
    "study.yaml": """\
hwsim: study/1
machine: d2l-laptop
workload: d2l/async-loop
points: {latin: {points: 8, of: {n: 10..1000:log, workload.runtime.queue_depth: 1..64}}}
rows: rows.csv
""",
    "measured.csv": "measure,value\ntime,15.1 ms\n",
}  # files that the commands read
THEIR_OWN: Final = ("calibrate doctor", "doctor")  # what they say is of the moment: only that they end well counts


def main() -> int:
    """Run the steps asked for; the exit status is that of the first failure."""
    steps = {"install": install, "compare": compare, "tests": tests}
    wanted = sys.argv[1:] or list(steps)
    if unknown := [step for step in wanted if step not in steps]:
        print(f"no step called {', '.join(unknown)}; there are {', '.join(steps)}")
        return 2
    for step in wanted:
        if status := steps[step]():
            return status
    return 0


def bounds() -> dict[str, str]:
    """Of each package that is needed, and of those that the extras add: the lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    said = [*project["dependencies"], *(requirement for extra in EXTRAS for requirement in extras[extra])]
    said += [requirement for requirement in extras["test"] if BOUND.sub(r"\1", requirement) in TOOLS]
    return {found[1]: found[2] for requirement in said if (found := BOUND.match(requirement))}


def install() -> int:
    """An environment with the lowest versions, and hwsim as it is here."""
    if sys.version_info >= (3, 13):
        print("the lowest versions need Python 3.11 or 3.12")
        return 1
    lowest = bounds()
    print("lowest: " + ", ".join(f"{name} {version}" for name, version in lowest.items()), flush=True)
    venv.create(PLACE, with_pip=True, clear=True)
    exact = [f"{name}=={version}" for name, version in lowest.items()]
    return subprocess.run([PYTHON, "-m", "pip", "install", "-q", *exact, "-e", "."], cwd=ROOT, check=False).returncode


def compare() -> int:
    """Whether each command does here what it does there, one after the other in a folder, and writes the same files."""
    with ThreadPoolExecutor(2) as workers:
        here, there = workers.map(_outcomes, (sys.executable, PYTHON))
    differing = [
        f"{what} differs\n{there.get(what, '')[-2000:]}" for what in {**here, **there} if here.get(what) != there.get(what)
    ]
    print("\n".join([*differing, f"{len(COMMANDS)} commands: {len(differing)} outcomes differ with the lowest versions"]))
    return int(bool(differing))


def tests() -> int:
    """Tests of what the versions might change; warnings of old packages about each other are none of ours."""
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "default", *TESTS]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def _outcomes(python: str) -> dict[str, str]:
    """Of each command: exit status, and what it prints on both streams in order; of each file: its bytes."""
    sys.path.insert(0, str(ROOT))
    from tests.warm import Warm

    variables = {**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    found, server = dict[str, str](), Warm(ROOT, python)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in GIVEN.items():
            (folder / file).write_text(text, encoding="utf-8")
        for command in COMMANDS:
            printed, status = server.run(shlex.split(command), folder, variables)
            found[f"hwsim {command}"] = f"{'' if command in THEIR_OWN else printed.replace(name, '')}(exit {status})"
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            found[path.relative_to(folder).as_posix()] = path.read_bytes().hex() if path.suffix in FILES else ""
    server.close()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
