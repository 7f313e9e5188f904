"""SimGrid beside hwsim, where its headers and a C++ compiler are: `peers/simgrid.cpp`, compiled once per run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from benchmarks.processes import Taken, run

SOURCE = Path(__file__).with_name("peers") / "simgrid.cpp"
QUIET = "--log=root.thres:error"


@cache
def program() -> Path | None:
    """The compiled peer; None where it cannot be made."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    target = Path(tempfile.mkdtemp(prefix="hwsim-peer-")) / "simgrid"
    made = subprocess.run([compiler, "-O2", "-o", target, SOURCE, "-lsimgrid"], capture_output=True, check=False)
    return target if made.returncode == 0 else None


def ring(ranks: int, size: float) -> Taken | None:
    """A ring all-reduce, message by message."""
    return _run("ring", str(ranks), str(size))


def flows(fabric: str, drawn: Iterable[tuple[int, int, float]]) -> Taken | None:
    """Flows (from, to, bytes) over a star or a fat-tree of 512 hosts, all at once."""
    return _with((f"{source} {target} {size:.0f}\n" for source, target, size in drawn), "flows", fabric)


def tasks(lines: Iterable[str]) -> Taken | None:
    """Tasks on 64 hosts of a star, with transfers between them (see `peers/simgrid.cpp`)."""
    return _with(lines, "tasks")


def _with(lines: Iterable[str], *words: str) -> Taken | None:
    """A run whose last word is a file of these lines."""
    if program() is None:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8", delete=False) as file:
        file.writelines(lines)
    try:
        return _run(*words, file.name)
    finally:
        Path(file.name).unlink()


def _run(*words: str) -> Taken | None:
    made = program()
    return None if made is None else run([str(made), *words, QUIET])
