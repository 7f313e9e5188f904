"""A session runs one machine and workload with other settings: each run is what `simulate` finds alone, to the last byte."""

from __future__ import annotations

import json
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim import api
from hwsim.engine import Deadlock
from hwsim.explorer.sliders import made, sliders
from hwsim.spec import Mistakes, SpecError
from hwsim.studies.session import Session
from hwsim.views.explain.explanation import explain
from hwsim.workload.sources import changed
from tests.effort import effort
from tests.test_study_sharing import PAIRS


def told(run: api.Run) -> str:
    """All that a run and its explanation say."""
    why = explain(run, again=False)
    times = [(column.dtype, column.tolist()) for column in (run.timeline.start, run.timeline.end, run.timeline.granted)]
    return json.dumps(run.to_json(), sort_keys=True) + str(run) + repr((why, times, run.timeline.flat.graph.labels))


def outcome(call: Any, *given: Any, **more: Any) -> str:
    """What a run says, or how it fails."""
    try:
        return told(call(*given, **more))
    except api.ExpectationFailed as failed:
        return f"{type(failed).__name__}: {failed}\n{told(failed.run)}"
    except (SpecError, Deadlock) as failed:
        return f"{type(failed).__name__}: {failed}"


@pytest.mark.parametrize("name", PAIRS)
@given(data=st.data())
@settings(max_examples=2, deadline=None)
def test_a_run_of_a_session_is_the_run_alone(name: str, data: st.DataObject) -> None:
    machine, workload, choices = PAIRS[name]
    session = Session(machine, workload)
    one = st.fixed_dictionaries({}, optional={path: st.sampled_from(values) for path, values in choices.items()})
    for point in data.draw(st.lists(one, min_size=2, max_size=3)):
        assert outcome(session.run, point) == outcome(hwsim.simulate, machine, workload, set=point)


@pytest.mark.parametrize(
    ("machine", "workload"), [("d2l-gpu-workstation", "d2l/copy-overlap"), ("dgx-a100", "resnet50-dp"), ("laptop", "serve")]
)
def test_every_slider_sets_a_number(machine: str, workload: str) -> None:
    if workload == "serve":
        workload = "hwsim: workload/1\nlet: {n: 3}\nprogram: [{repeat: {times: $n, do: [{busy: {device: cpu, time: 3 ms}}]}}]\n"
    session = Session(machine, workload)
    found = sliders(*session.files)
    assert len({slider.path for slider in found}) == len(found) > 20
    for slider in found:
        assert slider.values[slider.at] == slider.text
        assert sorted(slider.numbers) == list(slider.numbers)
        assert len(slider.values) == len(slider.numbers) == len(set(slider.values)) > 1
        for value in {slider.values[0], slider.values[-1]}:
            before = session.files
            after = changed(*before, {slider.path: value}, Mistakes(), [])
            assert after[0] is not before[0] or after[1] is not before[1]


@given(st.floats(1e-9, 1e12), st.sampled_from(["GB/s", "us", "GHz", "%", "", "KiB", "W", "TFLOP/s"]))
def test_values_of_a_slider_are_written_in_its_unit(number: float, unit: str) -> None:
    text = f"{number:.4g} {unit}".strip()
    one = made("a", "a", "machine", text)
    assert one.text == one.values[one.at] == text
    assert one.unit == unit
    assert all(label.partition(" ")[2] == unit and float(label.partition(" ")[0]) >= 0 for label in one.values)
    assert all(
        abs(float(text.partition(" ")[0]) - value) <= 5e-3 * value for text, value in zip(one.values, one.numbers, strict=True)
    )


def test_a_session_reads_the_files_once(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    text = "hwsim: machine/1\nclass: ideal\nparts: {cpu: {use: d2l-laptop-cpu, kind: cpu}}\n"
    machine.write_text(text)
    session = Session(machine, "hwsim: workload/1\nlet: {t: 1 ms}\nprogram: [{busy: {device: cpu, time: $t}}]\n")
    assert session.run().makespan_s == pytest.approx(1e-3)
    machine.write_text("no machine")
    assert session.run({"t": "3 ms"}).makespan_s == pytest.approx(3e-3)
    assert [tree.place.file for tree in session.files] == [str(machine), "<text>"]


def test_a_change_of_the_workload_costs_a_part_of_a_run() -> None:
    session = Session("d2l-gpu-workstation", "d2l/copy-overlap")
    session.run({"times": 9})
    warm = effort(lambda: [session.run({"times": times}) for times in range(10, 20)])
    cold = Context().run(  # in which no other test's files of the library are shared
        effort,
        lambda: [hwsim.simulate("d2l-gpu-workstation", "d2l/copy-overlap", set={"times": times}) for times in range(10, 20)],
    )
    assert warm < 0.7 * cold


@pytest.mark.parametrize("times", [("20 1/s", "20e-9 1/s", "20 1/s"), ("20e-9 1/s", "20 1/s")])
def test_a_run_beyond_what_64_bits_hold_follows_a_shorter_one_and_the_other_way_round(times: tuple[str, ...]) -> None:
    infer = {"model": "gpt2", "device": "gpu0", "requests": 3, "prompt": 50, "output": 4, "arrivals": {"poisson": "1 1/s"}}
    session = Session("dgx-a100", {"hwsim": "workload/1", "infer": infer})
    for rate in times:
        settings = {"workload.infer.arrivals.poisson": rate}
        assert outcome(session.run, settings) == outcome(hwsim.simulate, *session.files, set=settings)
