"""The house stays in order: code lines of each package within its budget, and a small run loads few modules.

A budget rises only in a commit that lowers another by as much and says why. Docstrings, comments and blank lines are free.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tests.test_docs import ROOT

BUDGETS: Final = {  # code lines
    "cli": 1_806,
    "communication": 2_974,
    "comparing": 2_349,
    "costs": 1_180,
    "devices": 5_505,
    "engine": 2_320,
    "explorer": 1_486,
    "exporters": 190,
    "failures": 628,
    "families": 16_414,
    "functions": 1_097,
    "graph": 1_472,
    "hwsim": 1_757,
    "hwsim_calibrate": 9_297,
    "importers": 4_743,
    "links": 429,
    "machine": 4_627,
    "models": 5_330,
    "ops": 1_510,
    "planning": 3_000,
    "published": 8_492,
    "results": 3_153,
    "sensitivities": 698,
    "spec": 2_564,
    "studies": 2_742,
    "views": 8_220,
    "workload": 4_270,
}
SIZES: Final = {
    "modules of a run of three ops": 129,
    "files that a bandwidth passes": 25,
    "functions that a bandwidth passes": 74,
}


def script(name: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_package_keeps_its_budget() -> None:
    found: dict[str, int] = script("counts").code_lines()
    assert found.keys() == BUDGETS.keys()
    assert {name: count for name, count in found.items() if count > BUDGETS[name]} == {}


def test_a_small_run_stays_small() -> None:
    counted: dict[str, int] = script("counts").counts()
    assert {name: count for name, count in counted.items() if count > SIZES[name]} == {}
