"""The same question has the same answer, whatever Python's seed of hashes, and counts each number of the files once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.sensitivities.terms import joined, terms_of
from hwsim.spec import SpecError
from hwsim.spec.library import find, names
from hwsim.spec.tree import Tree
from hwsim.spec.yaml_parser import read

RUN = """
import hashlib, sys
from pathlib import Path
from click.testing import CliRunner
from hwsim.cli import main
for line in sys.argv[1:]:
    with CliRunner().isolated_filesystem():
        done = CliRunner().invoke(main, line.split(), prog_name="hwsim")
        made = b"".join(path.read_bytes() for path in sorted(Path().iterdir()))
    print(line, done.exit_code, hashlib.sha256(done.output.encode() + made).hexdigest())
"""
PAIRS = (
    ("d2l-laptop", "d2l/async-loop"), ("d2l-4gpu-pcie", "d2l/allreduce-160mb"), ("d2l-quad-core", "d2l/stride"),
    ("d2l-gpu-workstation", "d2l/data-loading"), ("p3.16xlarge", "d2l/layer-split"), ("d2l-8gpu-nvlink", "d2l/two-nvlink-rings"),
    ("d2l-disks", "d2l/ssd-queue-depth"), ("p3.16xlarge", "d2l/multi-gpu-lenet"), ("scale/star", "scale/allreduce"),
    ("desktop", "d2l/false-sharing"), ("d2l-ps-cluster", "d2l/hierarchical-ps"), ("dgx-a100", "resnet50-dp"),
    ("p3.16xlarge", "resnet50-dp"), ("dgx-h100", "llama3-8b-serving"), ("storage-client", "mlperf-storage-unet3d"),
)  # fmt: skip
COMMANDS = (
    "sensitivity {m} {w} --by time --json", "sensitivity {m} {w} --against {n} --by time", "compare {m} {n} {w} --json",
    "explain {m} {w} --json", "simulate {m} {w} --json --ops --prices library", "simulate {m} {w} --report page.html",
    "plan {m} {w} --minimise cost --json", "simulate {m} {w} --plot gantt g.svg", "check {w} --on {m}", "show {m} --topology",
)  # fmt: skip


def machine(name: str) -> Tree:
    return read(find("machine", name))


@given(st.data())
def test_each_unsure_number_of_both_files_is_counted_once(data: st.DataObject) -> None:
    chosen = [machine(data.draw(st.sampled_from(names("machine")))) for _ in range(2)]
    try:
        both = [terms_of(tree, read(find("workload", "d2l/async-loop"))) for tree in chosen]
    except SpecError:
        return
    terms = joined(both)
    for index, mine in enumerate(both):
        assert sorted(term.place for term in terms if index in term.options) == sorted(term.place for term in mine)
    assert len({term.name for term in terms}) == len(terms)
    assert joined(both) == joined([tuple(reversed(side)) for side in both])


def told(lines: Sequence[str], seed: int, folder: Path) -> str:
    variables = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *lines], cwd=folder, env=variables, capture_output=True, text=True, check=True
    )
    return done.stdout


def drawn(seed: int, many: int, most: int) -> list[str]:
    dice = random.Random(seed)
    lines = []
    for _ in range(many):
        m, w = dice.choice(PAIRS[:most])
        lines.append(dice.choice(COMMANDS).format(m=m, n=dice.choice(PAIRS[:most])[0], w=w))
    return [line for line in lines if not ("serving" in line and line.startswith("sensitivity"))]  # it takes a minute


@pytest.mark.slow
@pytest.mark.parametrize("dice", range(3))
def test_no_seed_of_hashes_changes_a_byte_of_any_command(dice: int, tmp_path: Path) -> None:
    lines = drawn(dice + 1, 8, len(PAIRS))
    assert told(lines, 0, tmp_path) == told(lines, dice + 1, tmp_path)
