"""Activities and bounds of a run: they add up to its time, in a closed list of terms, and the summary fits a screen."""

from __future__ import annotations

import pytest

import hwsim
from hwsim.results.activities import activities, bounds_of
from hwsim.results.bound import TERMS
from hwsim.spec import find, names, read

PAIRS = [
    (str(wanted.text("machine")), workload)
    for workload in names("workload")
    if (wanted := read(find("workload", workload)).get("expect")) is not None and wanted.get("machine") is not None
]
FEW = [pair for pair in PAIRS if pair[1] in {"d2l/async-loop", "d2l/bucketed-overlap", "d2l/data-loading", "d2l/ssd-queue-depth"}]


@pytest.mark.parametrize(
    ("machine", "workload"), [pytest.param(*pair, marks=() if pair in FEW else pytest.mark.slow, id=pair[1]) for pair in PAIRS]
)
def test_the_critical_path_is_told_in_full_by_bound_and_by_activity(machine: str, workload: str) -> None:
    run = hwsim.simulate(machine, workload, expect=False)
    done = activities(run)
    makespan = run.simulated.makespan_fs
    assert sum(part.time_fs for part in done.parts) == makespan
    assert done.parts == bounds_of(run.simulated, run.devices)
    assert {part.bound.term for row in done.rows for part in row.bounds} | {part.bound.term for part in done.parts} <= TERMS
    for row in done.rows:
        assert 0 <= row.path_fs <= row.total_fs <= makespan
        assert row.path_fs == 0 or sum(part.time_fs for part in row.bounds) == row.path_fs
    assert sum(row.path_fs for row in done.rows) <= makespan


@pytest.mark.parametrize(
    ("machine", "workload"), [pytest.param(*pair, marks=() if pair in FEW else pytest.mark.slow, id=pair[1]) for pair in PAIRS]
)
def test_a_summary_fits_a_screen(machine: str, workload: str) -> None:
    run = hwsim.simulate(machine, workload, expect=False)
    lines = str(run).splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0] == f"{run.workload}, on {run.machine}"
    assert len(lines) <= 48
    assert not any("..." in line for line in lines[1:])
    assert max(map(len, run.summary(verbose=True).splitlines())) <= 100


def test_a_step_number_in_front_of_an_op_name_is_not_its_activity() -> None:
    run = hwsim.simulate("d2l-ps-cluster", "d2l/parameter-server-cluster", expect=False)
    assert [row.name for row in activities(run).rows] == ["copying", "fixed duration", "broadcast", "collective", "update"]
