"""`pipeline:` what a line of stages with bounded buffers takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim.spec import SpecError

FEMTO = 10**15
MACHINE = {
    "hwsim": "machine/1",
    "class": "ideal",
    "parts": {"cpu": {"kind": "cpu", "cores": 64, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}}},
}


def pipeline(times_us: list[int], batches: int, ahead: int, **stage: Any) -> dict[str, Any]:
    stages = [{"busy": {"name": f"s{n}", "device": "cpu", "time": f"{time} us", **stage}} for n, time in enumerate(times_us)]
    return {"hwsim": "workload/1", "pipeline": {"batches": batches, "ahead": ahead, "stages": stages}}


def by_hand(times: list[int], batches: int, ahead: int) -> int:
    """A batch starts at a stage when the stage before has ended it, the stage is free, and there is room behind it."""
    end = [[0] * batches for _ in times]
    begin = [[0] * batches for _ in times]
    for batch in range(batches):
        for stage, time in enumerate(times):
            waits = [end[stage][batch - 1]] if batch else [0]
            if stage:
                waits.append(end[stage - 1][batch])
            if stage + 1 < len(times) and batch > ahead:
                waits.append(end[stage + 1][batch - ahead - 1])
            begin[stage][batch] = max(waits)
            end[stage][batch] = begin[stage][batch] + time
    return end[-1][-1] if batches else 0


@given(st.lists(st.integers(0, 50), min_size=1, max_size=5), st.integers(0, 30), st.integers(0, 4))
def test_a_pipeline_takes_what_it_takes_by_hand(times_us: list[int], batches: int, ahead: int) -> None:
    run = hwsim.simulate(MACHINE, pipeline(times_us, batches, ahead))
    assert run.timeline.makespan_fs == by_hand([time * 10**9 for time in times_us], batches, ahead)


def test_the_slowest_stage_sets_the_pace() -> None:
    run = hwsim.simulate(MACHINE, pipeline([10, 30, 20], 1000, 1))
    assert run.timeline.makespan_fs == (10 + 1000 * 30 + 20) * 10**9


def test_workers_share_the_cores_there_are() -> None:
    few = {**MACHINE, "parts": {"cpu": {**MACHINE["parts"]["cpu"], "cores": 4}}}  # type: ignore[index]
    eight = pipeline([6000], 1, 1, times=64, workers=8)
    assert hwsim.simulate(MACHINE, eight).makespan_s == pytest.approx(8 * 6e-3)
    assert hwsim.simulate(few, eight).makespan_s == pytest.approx(16 * 6e-3)


def test_an_uneven_number_of_items_is_rounded_up() -> None:
    assert hwsim.simulate(MACHINE, pipeline([6000], 1, 1, times=9, workers=8)).makespan_s == pytest.approx(12e-3)


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"bussy": {"device": "cpu", "time": "1 s"}}, "there is no op 'bussy'"),
        ({"busy": {"device": "cpu", "time": "1 s", "queue": "x"}}, "a stage has no 'queue'"),
        ({"busy": {"device": "gpu", "time": "1 s"}}, "there is no part"),
        ("busy", "a stage is a mapping of one op"),
    ],
)
def test_what_is_wrong_with_a_stage_is_said(stage: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        hwsim.simulate(MACHINE, {"hwsim": "workload/1", "pipeline": {"batches": 2, "stages": [stage]}})


def test_a_workload_has_one_front_door() -> None:
    both = {**pipeline([1], 1, 1), "program": []}
    with pytest.raises(SpecError, match="program and pipeline"):
        hwsim.simulate(MACHINE, both)


def test_a_stage_of_all_gpus_exchanges_each_batch() -> None:
    """Four batches of 5 ms, each with 160 MB summed in 15 ms by a ring of four GPUs."""
    stage = {
        "do": [
            {"busy": {"device": "$self", "time": "5 ms"}},
            {"allreduce": {"among": "gpu*", "bytes": "160 MB", "algorithm": "ring"}},
        ]
    }
    told = hwsim.simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "pipeline": {"each": "gpu*", "batches": 4, "stages": [stage]}})
    assert told.makespan_s == pytest.approx(4 * 0.020, rel=0.01)
