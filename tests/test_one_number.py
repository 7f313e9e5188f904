"""One run has one time, to the last bit, whatever is asked for it: commands, files, functions, sessions."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import hwsim
from tests import command


@pytest.mark.parametrize(
    ("machine", "workload", "path", "value"),
    [
        ("d2l-gpu-workstation", "d2l/copy-overlap", "times", 3),
        ("d2l-4gpu-pcie", "d2l/few-large-transfers", "copies", 77),
        ("d2l-gpu-workstation", "d2l/data-loading", "workload.pipeline.batches", 5),
        ("dgx-a100", "bert-large", "workload.train.steps", 1),
        ("web-server", "services/cache", "workload.for", "200 ms"),
        ("dgx-a100", "llama3-8b-serving", "workload.infer.requests", 3),
    ],
)
def test_every_way_gives_the_same_time(machine: str, workload: str, path: str, value: Any, tmp_path: Path) -> None:
    pair, rows = (machine, workload), tmp_path / "s.csv"
    run = hwsim.simulate(*pair, set={path: value}, expect=False)
    study = {"hwsim": "study/1", "machine": machine, "workload": workload, "points": {"grid": {path: [value]}}}
    compared = json.loads(command.hwsim("compare", *pair, workload, "--set", f"{path}={value}", "--json").stdout)
    command.hwsim("sweep", *pair, "--vary", f"{path}={value}", "--workers", "1", "-o", rows)
    with rows.open(encoding="utf-8", newline="") as file:
        written = float(next(csv.DictReader(file))["makespan_s"])
    found = {
        "simulate --json": json.loads(
            command.hwsim("simulate", *pair, "--set", f"{path}={value}", "--no-expect", "--json").stdout
        )["makespan_s"],
        "session": hwsim.Session(*pair).run(set={path: value}).makespan_s,
        "sweep": hwsim.sweep(*pair, {path: [value]}, workers=1).rows[0].makespan_s,
        "sweep -o": written,
        "study": hwsim.study(study, workers=1).rows[0].makespan_s,
        "compare, A": compared["a"]["makespan_s"],
        "compare, B": compared["b"]["makespan_s"],
        "explain": hwsim.explain(*pair, set={path: value}).to_json()["makespan_s"],
    }
    assert found == dict.fromkeys(found, run.makespan_s)
    assert run.to_json()["makespan_fs"] == run.timeline.makespan_fs == round(run.makespan_s * 10**15)
