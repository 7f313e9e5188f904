"""Families of workloads are behind doors: nobody else names them, and none is loaded that is not there."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from hwsim.families_interface import FAMILIES, family_interface, family_module, family_report
from hwsim.studies.measures import UNITS
from hwsim.views import FIGURES
from hwsim.workload.file import Job, Workload

ASKS_BY_NAME: Final = "hwsim/families_interface.py"
RUN: Final = """
import sys, hwsim
copy = {"copy": {"from": "cpu", "to": "gpu0", "bytes": "16 MB"}}
run = hwsim.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "program": [copy]})
run.to_json(), str(run), str(run.explain())
print(*[name for name in sys.modules if name.startswith("hwsim.families.")])
"""


@pytest.mark.parametrize("key", FAMILIES)
def test_a_family_is_a_key_of_a_workload_and_of_a_job(key: str) -> None:
    assert all(key in {field.name for field in fields(kind)} for kind in (Workload, Job))
    assert FAMILIES[key].figure in FIGURES
    assert callable(family_module(key, "draw").render)
    assert (family_interface(key), family_report(key)) == (family_module(key, "door").DOOR, family_module(key, "facts").FACTS)


def test_what_answers_requests_says_nothing_of_the_graph() -> None:
    assert [key for key, family in FAMILIES.items() if bool(family.graph) == family_interface(key).answers] == []


def test_a_run_without_families_loads_none(root: Path) -> None:
    told = subprocess.run([sys.executable, "-c", RUN], cwd=root, check=True, capture_output=True, text=True)
    assert told.stdout.split() == []


def test_only_doors_know_where_families_are(root: Path) -> None:
    for path in sorted((root / "hwsim").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.startswith("hwsim/families/") or name == ASKS_BY_NAME:
            continue
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "families" in text else ()
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        assert [text for text in texts if text.startswith("hwsim.families")] == [], name


def test_measures_of_families_are_columns_of_studies() -> None:
    import hwsim

    pipeline = {"batches": 4, "ahead": 1, "stages": [{"busy": {"device": "cpu", "time": "1 ms"}}]}
    run = hwsim.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "pipeline": pipeline})
    assert {name for name, _ in family_report("pipeline").measures(run)} <= UNITS.keys()
