"""hwsim checks every answer before it gives it: seeded defects are found, and called its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hwsim
from hwsim import api
from hwsim.cli import EXIT_BROKEN
from hwsim.families.serving.results.log import Log
from hwsim.results import checks
from hwsim.results.activities import activities
from hwsim.results.invariants import DEFECT, BrokenInvariant, checked_text, document, impossible_numbers, numbers
from hwsim.results.timeline import Timeline
from hwsim.results.usage import usage
from hwsim.views.explain import explanation
from tests import command

ROOT = Path(__file__).resolve().parent.parent
MACHINE = """hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 100 GFLOP/s}, memory: {bandwidth: 10 GB/s, size: 1 GB}}
  gpu: {kind: gpu, count: 2, flop: {fp32: 1 TFLOP/s}, memory: {bandwidth: 100 GB/s, size: 1 GB}}
links: [{name: up, between: [cpu, "gpu*"], kind: direct, bandwidth: 1 GB/s, latency: 1 us}]
"""
COPIES = {
    "hwsim": "workload/1",
    "program": {
        "each": "gpu*",
        "do": [
            {"copy": {"name": "in", "from": "cpu", "to": "$self", "bytes": "10 MB", "writes": {"x": "10 MB"}}},
            {"matmul": {"name": "mm", "m": 512, "n": 512, "k": 512, "reads": "x"}},
        ],
    },
}


@pytest.fixture
def run() -> api.Run:
    return hwsim.simulate(MACHINE, COPIES)


def found(run: api.Run, **wrong: Any) -> str:
    """What is said of a run with something wrong."""
    return "; ".join(checks.violations(replace(run, **wrong)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"busy_fs": -1}, "busy for -1e-15 s"),
        ({"busy_fs": 2**70}, "is busy for"),
        ({"utilization": 1.04}, "is used to 104 %"),
        ({"utilization": float("nan")}, "is used to nan %"),
        ({"moved": -1.0}, "moved -1.0"),
        ({"moved": float("inf")}, "moved inf"),
        ({"busy_fs": 0}, "and never busy"),
    ],
)
def test_a_wrong_use_is_found(run: api.Run, wrong: dict[str, Any], said: str) -> None:
    at = next(index for index, row in enumerate(run.usage) if row.utilization > 0)
    rows = [replace(row, **wrong) if number == at else row for number, row in enumerate(run.usage)]
    assert said in found(run, usage=tuple(rows))


def test_a_link_cannot_move_more_than_its_rate(run: api.Run) -> None:
    rows = tuple(replace(row, moved=3 * row.moved) if row.capacity.startswith("up:") else row for row in run.usage)
    assert "at a rate of 1e+09 a second" in found(run, usage=rows)


@pytest.mark.parametrize("wide", [False, True])
def test_times_that_wrapped_are_found(run: api.Run, *, wide: bool) -> None:
    timeline = run.timeline
    end = timeline.end.astype(object if wide else np.int64)
    end[0] -= 2**62
    wrapped = replace(timeline, end=end)
    assert "an op starts before 0, or ends before it starts" in found(run, simulated=wrapped)


def test_memory_is_what_its_values_are(run: api.Run) -> None:
    [memory, *others] = run.memory
    fewer = replace(memory, taken=memory.taken - 2**40)
    assert "holds" in found(run, memory=(fewer, *others))


@pytest.mark.parametrize("lost", ["came", "ended", "answered", "all answered", "counted"])
@pytest.mark.parametrize("warm_up", ["0 s", "30 ms"])
def test_a_request_of_a_served_model_that_is_lost_is_found(lost: str, warm_up: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(log: Log) -> Any:
        columns = finished(log)
        for name, counts in (("came", log.course.came), ("ended", log.course.ended)):
            if lost == name:
                counts[next(iter(counts))] -= 1
        log.requests -= {"answered": 1, "all answered": log.requests}.get(lost, 0)
        log.totals.requests -= lost == "counted"
        return {} if lost == "all answered" else columns

    arrivals = {"every": "10 ms"}
    infer = {
        "model": "gpt2",
        "device": "gpu0",
        "requests": 30,
        "prompt": 20,
        "output": 3,
        "warm_up": warm_up,
        "arrivals": arrivals,
    }
    workload = {"hwsim": "workload/1", "infer": infer}
    assert found(hwsim.simulate("dgx-h100", workload, interval=False)) == ""
    finished = Log.finish
    monkeypatch.setattr(Log, "finish", finish)
    with pytest.raises(BrokenInvariant, match="of 30 requests"):
        hwsim.simulate("dgx-h100", workload, interval=False)


def test_what_a_report_holds_is_finite_and_not_negative() -> None:
    rows = {"time_s": float("nan"), "error": -0.5, "many": [{"busy_s": -1}], "set": {"x": -3}}
    assert list(numbers(rows)) == ["time_s is nan", "many[0].busy_s is -1"]
    with pytest.raises(BrokenInvariant, match="time_s is nan"):
        document(rows)
    assert json.loads(document({"x": 1.5})) == {"x": 1.5}


@pytest.mark.parametrize(
    "text", ["-2.45 h", "busy -90 ms", "nan s", "rate inf GB/s", "+1.1e+02 %", "████████████  104 %", "−3 B/s"]
)
def test_a_text_that_shows_what_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(BrokenInvariant, match="it shows"):
        checked_text(f"  cpu   {text}  cores\n")


@pytest.mark.parametrize(
    "text", ["2-3 s", "error -3 %", "gpu0-4 GB", "information", "infiniband", "████████████  100 %", "1e-3 s"]
)
def test_a_text_that_shows_what_can_be_is_printed(text: str) -> None:
    assert checked_text(f"  cpu   {text}  cores\n") == f"  cpu   {text}  cores\n"


# ---- on every path


def half_served(timeline: Timeline) -> Timeline:
    """As if demands that share something had been given half of what they need."""
    paces = [[change._replace(pace=change.pace // 2) for change in history] for history in timeline.paces]
    return replace(timeline, paces=tuple(paces))


def test_a_flow_served_half_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from hwsim.engine import driver

    played: Callable[[Any], Timeline] = driver.Driver.run
    monkeypatch.setattr(driver.Driver, "run", lambda self: half_served(played(self)))
    monkeypatch.setenv("HWSIM_FAST", "never")
    with pytest.raises(BrokenInvariant, match="units of service and received"):
        hwsim.simulate(MACHINE.replace("bandwidth: 10 GB/s", "bandwidth: 1.5 GB/s"), COPIES)


WRONG_USE = "hwsim.api.usage"


def wrong_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """All capacities are used to 104 %."""
    monkeypatch.setattr(WRONG_USE, lambda timeline: tuple(replace(row, utilization=1.04) for row in usage(timeline)))


@pytest.mark.parametrize("keys", [{"fold": "always"}, {"fold": "never"}, {"expect": True}])
def test_every_way_to_run_is_checked(monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]) -> None:
    wrong_usage(monkeypatch)
    with pytest.raises(BrokenInvariant, match="104 %"):
        hwsim.simulate(MACHINE, {**COPIES, "expect": {"makespan": "at most 1 us"}}, **keys)


def test_a_run_is_checked_before_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is no verdict on the user's machine."""
    large = json.loads(json.dumps(COPIES).replace('"x": "10 MB"', '"x": "5 GB"'))
    with pytest.raises(hwsim.OutOfMemory):
        hwsim.simulate(MACHINE, large)
    wrong_usage(monkeypatch)
    with pytest.raises(BrokenInvariant):
        hwsim.simulate(MACHINE, large)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    machine, workload = tmp_path / "m.yaml", tmp_path / "w.yaml"
    machine.write_text(MACHINE, encoding="utf-8")
    workload.write_text(json.dumps({**COPIES, "let": {"n": 1}}), encoding="utf-8")
    return str(machine), str(workload)


@pytest.mark.parametrize("words", [("simulate",), ("simulate", "--fold"), ("explain",), ("sweep", "--vary", "n=1,2")])
def test_commands_say_that_it_is_a_defect_of_hwsim(
    monkeypatch: pytest.MonkeyPatch, files: tuple[str, str], words: tuple[str, ...]
) -> None:
    wrong_usage(monkeypatch)
    done = command.hwsim(words[0], *files, *words[1:], code=4)
    assert "hwsim contradicts itself" in done.output
    assert DEFECT in done.output


def test_an_explanation_adds_up_to_the_run(monkeypatch: pytest.MonkeyPatch, run: api.Run) -> None:
    monkeypatch.setattr(explanation, "activities", lambda result: replace(activities(result), parts=()))
    with pytest.raises(BrokenInvariant, match="bounds"):
        explanation.explain(run, again=False)


def test_a_summary_that_shows_nonsense_is_not_printed(monkeypatch: pytest.MonkeyPatch, files: tuple[str, str]) -> None:
    monkeypatch.setattr("hwsim.views.summary.say.format_quantity", lambda *_: "-2.45 h")
    assert "it shows '-2.45 h'" in command.hwsim("simulate", *files, code=EXIT_BROKEN).output


# ---- what is committed

PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/golden/**/*.txt"), *ROOT.glob("tests/golden/**/*.md")}
)


def test_no_page_shows_a_number_that_cannot_be() -> None:
    assert len(PAGES) > 20
    found = {
        f"{page.relative_to(ROOT)}: {number}" for page in PAGES for number in impossible_numbers(page.read_text(encoding="utf-8"))
    }
    assert not found
