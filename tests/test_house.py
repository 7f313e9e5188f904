"""The house stays in order: code lines of each package within its budget, and a small run loads few modules.

A budget rises only in a commit that lowers another by as much and says why. Docstrings, comments and blank lines are free.
"""

from __future__ import annotations

from typing import Final

from tests.loading import script

BUDGETS: Final = {  # code lines
    "cli": 1_960,
    "communication": 3_115,
    "comparing": 2_389,
    "costs": 1_353,
    "devices": 5_677,
    "engine": 2_321,
    "explorer": 1_907,
    "exporters": 196,
    "failures": 640,
    "families": 17_246,
    "functions": 1_155,
    "graph": 1_481,
    "hwsim": 1_797,
    "hwsim_calibrate": 9_405,
    "importers": 4_844,
    "links": 427,
    "machine": 4_818,
    "models": 5_690,
    "ops": 1_527,
    "planning": 4_266,
    "published": 8_762,
    "results": 3_257,
    "scoring": 279,
    "sensitivities": 716,
    "spec": 2_564,
    "studies": 2_760,
    "views": 8_371,
    "workload": 4_473,
}
SIZES: Final = {
    "modules of a run of three ops": 130,
    "files that a bandwidth passes": 24,
    "functions that a bandwidth passes": 69,
}


def test_each_package_keeps_its_budget() -> None:
    found: dict[str, int] = script("counts").code_lines()
    assert found.keys() == BUDGETS.keys()
    assert {name: count for name, count in found.items() if count > BUDGETS[name]} == {}


def test_a_small_run_stays_small() -> None:
    counted: dict[str, int] = script("counts").counts()
    assert {name: count for name, count in counted.items() if count > SIZES[name]} == {}
