"""The house stays in order: code lines of each package within its budget, and a small run loads few modules.

A budget rises only in a commit that lowers another by as much and says why. Docstrings, comments and blank lines are free.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tests.test_docs import ROOT

BUDGETS: Final = {  # code lines
    "cli": 1_795,
    "communication": 3_026,
    "comparing": 2_363,
    "costs": 1_194,
    "devices": 5_638,
    "engine": 2_320,
    "explorer": 1_502,
    "exporters": 196,
    "failures": 648,
    "families": 16_581,
    "functions": 1_107,
    "graph": 1_468,
    "hwsim": 1_778,
    "hwsim_calibrate": 9_295,
    "importers": 4_845,
    "links": 427,
    "machine": 4_692,
    "models": 5_421,
    "ops": 1_522,
    "planning": 3_133,
    "published": 8_387,
    "results": 3_167,
    "sensitivities": 707,
    "spec": 2_559,
    "studies": 2_751,
    "views": 8_340,
    "workload": 4_338,
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
