"""The iterations of a loop are those of its workload, however the ops behind them are written out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.graph.files import load_graph, save_graph
from hwsim.graph.flat import flatten

RUNTIMES = [None, "pytorch-eager"]


def looped(times: int, back: int, *, inner: int = 1, runtime: str | None = None) -> dict[str, Any]:
    """Copies and steps, each after the step of `back` iterations ago; an op before the loop, one after it, then another loop."""
    body: list[dict[str, Any]] = [
        {"copy": {"name": "batch", "from": "cpu", "to": "gpu", "bytes": "16 MB"}},
        {"busy": {"name": "train", "device": "gpu", "time": "15 ms"}},
        {"repeat": {"times": inner, "do": [{"busy": {"name": "part", "device": "cpu", "time": "1 ms"}}]}},
        {"wait": {"name": "train", "back": back}},
    ]
    program = [
        {"busy": {"name": "before", "device": "cpu", "time": "3 ms"}},
        {"repeat": {"times": times, "do": body}},
        {"busy": {"name": "after", "device": "gpu", "time": "3 ms"}},
        {"repeat": {"times": 3, "do": [{"busy": {"name": "again", "device": "gpu", "time": "1 ms"}}]}},
    ]
    keys = {"runtime": {"use": runtime}} if runtime else {}
    return {"hwsim": "workload/1", **keys, "program": program}


def iterations(run: api.Run) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in run.ops:
        if row.kind not in ("dispatch", "return"):
            found.setdefault(row.name, []).append(row.iteration)
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 30), st.integers(0, 7), st.integers(1, 3), st.sampled_from(RUNTIMES))
def test_iterations_count_those_of_the_loop_however_far_a_wait_looks_back(
    times: int, back: int, inner: int, runtime: str | None
) -> None:
    found = iterations(api.simulate("d2l-gpu-workstation", looped(times, back, inner=inner, runtime=runtime)))
    assert found["batch"] == found["train"] == list(range(times))
    assert Counter(found["part"]) == dict.fromkeys(range(times), inner)
    assert (found["before"], found["after"], found["again"]) == ([0], [0], [0, 1, 2])


def test_a_graph_of_a_file_has_the_iterations_of_its_workload(tmp_path: Any) -> None:
    run = api.simulate("d2l-gpu-workstation", looped(23, 2))
    again = load_graph(save_graph(run.timeline.flat.graph, tmp_path / "graph.npz"))
    assert flatten(again).iteration.tolist() == run.timeline.flat.iteration.tolist()


@pytest.mark.parametrize(("one", "other"), [(0, 2), (2, 3), (1, 0), (2, 2)])
@pytest.mark.parametrize("times", [2, 7, 23])
def test_programs_that_meet_at_a_barrier_count_the_same_iterations(one: int, other: int, times: int) -> None:
    def program(device: str, back: int) -> list[dict[str, Any]]:
        work = {"busy": {"name": f"on {device}", "device": device, "time": "3 ms"}}
        return [{"repeat": {"times": times, "do": [work, {"wait": {"name": f"on {device}", "back": back}}, {"barrier": "b"}]}}]

    programs = {"a": program("cpu", one), "b": program("gpu", other)}
    found = iterations(api.simulate("d2l-gpu-workstation", {"hwsim": "workload/1", "programs": programs}))
    assert found["on cpu"] == found["on gpu"] == list(range(times))
