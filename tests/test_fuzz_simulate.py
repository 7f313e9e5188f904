"""Whole runs: damaged library files, and random pairs that are valid, end in a result, a SpecError or a verdict.

HWSIM_FUZZ is the number of damaged files (10000 for a thorough run); a fifth as many valid pairs.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.api import ExpectationFailed, Run
from hwsim.engine import Deadlock
from hwsim.spec import SpecError

COUNT = int(os.environ.get("HWSIM_FUZZ", "150"))
ROOT = Path(__file__).resolve().parent.parent
VERDICTS = (SpecError, Deadlock, ExpectationFailed)


def _damage() -> Callable[[bytes, random.Random], bytes]:
    spec = importlib.util.spec_from_file_location("fuzz_yaml", ROOT / "tests" / "test_fuzz_yaml.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz_yaml"] = module
    spec.loader.exec_module(module)
    damage: Callable[[bytes, random.Random], bytes] = module.damage
    return damage


def assert_sane(run: Run) -> None:
    text = json.dumps(run.to_json(), allow_nan=False)
    assert math.isfinite(run.makespan_s)
    assert run.makespan_s >= 0
    assert text
    assert "nan" not in str(run).lower().split()


@pytest.mark.parametrize("part", range(4))
def test_damaged_files_end_in_a_result_or_in_words(part: int, tmp_path: Path) -> None:
    damage = _damage()
    dice = random.Random(20_000 + part)
    machines = sorted((ROOT / "machines").glob("*.yaml"))
    workloads = sorted((ROOT / "workloads").rglob("*.yaml"))
    for number in range(COUNT // 4):
        machine, workload = dice.choice(machines), dice.choice(workloads)
        at_machine = dice.random() < 0.4
        victim = machine if at_machine else workload
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(_small(damage(victim.read_bytes(), dice)))
        pair = (path, workload) if at_machine else (machine, path)
        try:
            assert_sane(hwsim.simulate(*pair))
        except VERDICTS as said:
            assert str(said)  # noqa: PT017 (any of several, or none, may be raised)


def _small(data: bytes) -> bytes:
    """Counts that damage makes huge would only make the test slow."""
    return data.replace(b"1000000", b"1000")


def _quantity(dice: random.Random, low: float, high: float, unit: str) -> str:
    return f"{math.exp(dice.uniform(math.log(low), math.log(high))):.4g} {unit}"


def random_machine(dice: random.Random) -> dict[str, Any]:
    gpus = dice.randint(0, 4)
    parts: dict[str, Any] = {
        "cpu": {
            "kind": "cpu", "cores": dice.randint(1, 8), "flop": {"fp32": _quantity(dice, 1e10, 1e13, "FLOP/s")},
            "random": _quantity(dice, 1e6, 1e9, "1/s"),
            "memory": {"size": "16 GiB", "bandwidth": _quantity(dice, 1e9, 1e11, "B/s")},
        },
        "psw": {"kind": "switch"},
        "disk": {
            "kind": "disk", "read": _quantity(dice, 1e8, 1e10, "B/s"), "write": _quantity(dice, 1e8, 1e10, "B/s"),
            "latency": _quantity(dice, 1e-6, 1e-2, "s"),
        },
    }  # fmt: skip
    links: list[dict[str, Any]] = [
        {"between": ["cpu", "psw"], "kind": "pcie", "bandwidth": _quantity(dice, 1e9, 1e11, "B/s")},
        {"between": ["cpu", "disk"], "kind": "direct", "bandwidth": _quantity(dice, 1e8, 1e10, "B/s"), "latency": "1 us"},
    ]
    if gpus:
        parts["gpu"] = {
            "kind": "gpu", "count": gpus, "flop": {"fp32": _quantity(dice, 1e11, 1e14, "FLOP/s")},
            "random": _quantity(dice, 1e6, 1e9, "1/s"),
            "memory": {"size": "16 GiB", "bandwidth": _quantity(dice, 1e10, 1e12, "B/s")},
            "launch": dice.choice(["0 s", "4 us"]),
        }  # fmt: skip
        links.append({"between": ["psw", "gpu*"], "kind": "pcie", "bandwidth": _quantity(dice, 1e9, 1e11, "B/s")})
    return {"hwsim": "machine/1", "name": "a random machine", "parts": parts, "links": links}


def random_workload(dice: random.Random, gpus: int) -> dict[str, Any]:
    devices = ["cpu", *(f"gpu{number}" for number in range(gpus))]
    values = ["x", "y", "z"]

    def op() -> dict[str, Any]:
        keys: dict[str, Any] = {}
        for access in ("reads", "writes", "updates"):
            if dice.random() < 0.3:
                keys[access] = dice.choice(values)
        if dice.random() < 0.1:
            keys["block"] = True
        device, elements = dice.choice(devices), dice.choice([1, 1000, 10**6])
        match dice.choice(["busy", "matmul", "elementwise", "reduce", "random", "compute", "copy", "read", "write"]):
            case "busy":
                return {"busy": {"device": device, "time": _quantity(dice, 1e-9, 1e-3, "s"), **keys}}
            case "matmul":
                return {"matmul": {"device": device, "m": dice.randint(1, 999), "n": 64, "k": dice.randint(1, 999), **keys}}
            case "compute":
                return {
                    "compute": {"device": device, "flop": _quantity(dice, 1, 1e12, "FLOP"), "pieces": dice.randint(1, 3), **keys}
                }
            case "copy":
                return {"copy": {"from": device, "to": dice.choice(devices), "bytes": _quantity(dice, 1, 1e9, "B"), **keys}}
            case "read":
                return {"read": {"from": "disk", "bytes": "4 KiB", "times": dice.randint(1, 99), "access": "random", **keys}}
            case "write":
                return {"write": {"to": "disk", "bytes": _quantity(dice, 1, 1e9, "B"), **keys}}
            case kind:
                return {kind: {"device": device, "count": elements, **keys}}

    def body(depth: int) -> list[dict[str, Any]]:
        statements: list[dict[str, Any]] = []
        for _ in range(dice.randint(1, 4)):
            chance = dice.random()
            if chance < 0.2 and depth < 2:
                statements.append({"repeat": {"times": dice.randint(0, 12), "do": body(depth + 1)}})
            elif chance < 0.3:
                statements.append({"wait": "all"})
            else:
                statements.append(op())
        return statements

    workload: dict[str, Any] = {"hwsim": "workload/1", "name": "a random workload"}
    if dice.random() < 0.5:
        workload["runtime"] = {"dispatch": "10 us", "return": "5 us", "queue_depth": dice.randint(1, 20)}
    if dice.random() < 0.3:
        workload["programs"] = {name: [*body(0), {"barrier": "b"}] for name in ("one", "two")}
    else:
        workload["program"] = body(0)
    return workload


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same mappings with their keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(each, dice) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("part", range(4))
def test_valid_pairs_run_and_the_order_of_keys_changes_nothing(part: int) -> None:
    dice = random.Random(30_000 + part)
    for _ in range(max(1, COUNT // 20)):
        machine = random_machine(dice)
        workload = random_workload(dice, machine["parts"].get("gpu", {}).get("count", 0))
        run = hwsim.simulate(machine, workload)
        assert_sane(run)
        machine["links"] = dice.sample(machine["links"], len(machine["links"]))
        again = hwsim.simulate(shuffled(machine, dice), shuffled(workload, dice))
        assert json.dumps(again.to_json(ops=True)) == json.dumps(run.to_json(ops=True))
