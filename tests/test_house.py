"""The house stays in order: code lines of each package within its budget, and a small run loads few modules.

A budget rises only in a commit that lowers another by as much and says why. Docstrings, comments and blank lines are free.
"""

from __future__ import annotations

from typing import Final

from tests.loading import script

BUDGETS: Final = {  # code lines
    "cli": 1_794,
    "communication": 3_026,
    "comparing": 2_363,
    "costs": 1_194,
    "devices": 5_638,
    "engine": 2_320,
    "explorer": 1_502,
    "exporters": 196,
    "failures": 648,
    "families": 16_581,
    "functions": 1_109,
    "graph": 1_472,
    "hwsim": 1_795,
    "hwsim_calibrate": 9_295,
    "importers": 4_845,
    "links": 427,
    "machine": 4_686,
    "models": 5_553,
    "ops": 1_522,
    "planning": 3_125,
    "published": 8_387,
    "results": 3_150,
    "sensitivities": 707,
    "spec": 2_560,
    "studies": 2_751,
    "views": 8_332,
    "workload": 4_336,
}
SIZES: Final = {
    "modules of a run of three ops": 129,
    "files that a bandwidth passes": 25,
    "functions that a bandwidth passes": 74,
}


def test_each_package_keeps_its_budget() -> None:
    found: dict[str, int] = script("counts").code_lines()
    assert found.keys() == BUDGETS.keys()
    assert {name: count for name, count in found.items() if count > BUDGETS[name]} == {}


def test_a_small_run_stays_small() -> None:
    counted: dict[str, int] = script("counts").counts()
    assert {name: count for name, count in counted.items() if count > SIZES[name]} == {}
