"""Whole runs: damaged library files, and random pairs that are valid, end in a result, a SpecError or a verdict.

HWSIM_FUZZ is the number of damaged files (10000 for a thorough run); a fifth as many valid pairs.
"""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.api import ExpectationFailed, Run
from hwsim.engine import Deadlock
from hwsim.spec import SpecError
from tests.fuzz.damage import torn
from tests.random_pairs import random_pair

COUNT = int(os.environ.get("HWSIM_FUZZ", "150"))
ROOT = Path(__file__).resolve().parent.parent
VERDICTS = (SpecError, Deadlock, ExpectationFailed)


def assert_sane(run: Run) -> None:
    text = json.dumps(run.to_json(), allow_nan=False)
    assert math.isfinite(run.makespan_s)
    assert run.makespan_s >= 0
    assert text
    assert "nan" not in str(run).lower().split()


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_end_in_a_result_or_in_words(part: int, tmp_path: Path) -> None:
    dice = random.Random(20_000 + part)
    machines = sorted((ROOT / "machines").glob("*.yaml"))
    workloads = sorted((ROOT / "workloads").rglob("*.yaml"))
    for number in range(COUNT // 4):
        machine, workload = dice.choice(machines), dice.choice(workloads)
        at_machine = dice.random() < 0.4
        victim = machine if at_machine else workload
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(_small(torn(victim.read_bytes(), dice)))
        pair = (path, workload) if at_machine else (machine, path)
        try:
            assert_sane(hwsim.simulate(*pair))
        except VERDICTS as said:
            assert str(said)  # noqa: PT017 (any of several, or none, may be raised)


def _small(data: bytes) -> bytes:
    """Counts that damage makes huge would only make the test slow."""
    return data.replace(b"1000000", b"1000")


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same mappings with their keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(child, dice) for child in value] if isinstance(value, list) else value


@pytest.mark.parametrize("part", range(4))
def test_valid_pairs_run_and_the_order_of_keys_changes_nothing(part: int) -> None:
    dice = random.Random(30_000 + part)
    for _ in range(max(1, COUNT // 20)):
        machine, workload = random_pair(dice)
        run = hwsim.simulate(machine, workload)
        assert_sane(run)
        machine["links"] = dice.sample(machine["links"], len(machine["links"]))
        again = hwsim.simulate(shuffled(machine, dice), shuffled(workload, dice))
        assert json.dumps(again.to_json(ops=True)) == json.dumps(run.to_json(ops=True))
