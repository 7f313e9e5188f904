"""The house stays in order: code lines of each package within its budget, and a small run loads few modules.

A budget rises only in a commit that lowers another by as much and says why. Docstrings, comments and blank lines are free.
"""

from __future__ import annotations

from typing import Final

from tests.loading import script

BUDGETS: Final = {  # code lines
    "cli": 1_836,
    "communication": 3_026,
    "comparing": 2_377,
    "costs": 1_353,
    "devices": 5_654,
    "engine": 2_321,
    "explorer": 1_502,
    "exporters": 196,
    "failures": 648,
    "families": 16_770,
    "functions": 1_117,
    "graph": 1_472,
    "hwsim": 1_797,
    "hwsim_calibrate": 9_405,
    "importers": 4_845,
    "links": 427,
    "machine": 4_762,
    "models": 5_639,
    "ops": 1_522,
    "planning": 3_385,
    "published": 8_573,
    "results": 3_253,
    "scoring": 280,
    "sensitivities": 716,
    "spec": 2_562,
    "studies": 2_759,
    "views": 8_361,
    "workload": 4_352,
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
