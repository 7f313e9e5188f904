"""What a first user of `hwsim calibrate` runs into: refusals in words, interruptions, workloads of one's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hwsim
from hwsim.spec import SpecError
from hwsim_calibrate.case import Case
from hwsim_calibrate.fit.cpu import latencies
from hwsim_calibrate.harness import run
from hwsim_calibrate.session import Plan, measure
from hwsim_calibrate.store import Amounts, Measurements, Row, load
from hwsim_calibrate.workload_cases import cases_for
from tests import command

KERNELS = """
    kernels:
      pages: 10 GB/s
      fault: 2 us
      functions:
        add: {call: 200 ns, each: {fp64: EACH}, counts: [1, 4e6]}
"""
MACHINE = """hwsim: machine/1
class: ideal
name: fitted
parts:
  cpu:
    kind: cpu
    cores: 2
    flop: {fp64: 10 GFLOP/s}
    memory: {bandwidth: 10 GB/s}
    caches: {levels: {L1: {size: 32 KiB}, L2: {size: 512 KiB}, L3: {size: 32 MiB}}}
"""


def machine(path: Path, each: str = "0.1 ns", memory: str = "10 GB/s") -> Path:
    path.write_text((MACHINE + KERNELS[1:]).replace("EACH", each).replace("bandwidth: 10 GB/s", f"bandwidth: {memory}"), "utf-8")
    return path


def workload(path: Path, *ops: str) -> Path:
    path.write_text("hwsim: workload/1\nname: w\nprogram:\n" + "".join(f"  - {op}\n" for op in ops), "utf-8")
    return path


ADD = "elementwise: {function: add, shape: [100], dtype: fp64, inputs: 2, device: cpu}"


def test_a_workload_of_which_nothing_can_be_timed_measures_nothing(tmp_path: Path) -> None:
    path = workload(tmp_path / "w.yaml", "busy: {device: cpu, time: 1 ms}", "busy: {name: other, device: cpu, time: 1 ms}")
    done = command.hwsim("calibrate", "measure", "--for", path, "-o", tmp_path / "m.json", code=2)
    assert "not measured: busy (and 1 more): busy is not a single library call" in done.stderr
    assert "nothing was measured" in done.stderr
    assert not (tmp_path / "m.json").exists()


def test_a_suite_that_cannot_be_measured_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwsim_calibrate.suites.gpu.missing", lambda: "no GPU here")
    done = command.hwsim("calibrate", "measure", "--suite", "gpu", "-o", tmp_path / "m.json", code=2)
    assert "the suite gpu cannot be measured: no GPU here" in done.stderr
    assert not (tmp_path / "m.json").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder that nobody can write to")
def test_a_file_that_cannot_be_written_is_found_before_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hwsim_calibrate.session.measure", None)
    done = command.hwsim("calibrate", "run", "-o", "/proc/f.yaml", code=2)
    assert "'/proc/f.yaml' cannot be written" in done.stderr


def test_what_was_asked_for_by_name_is_measured_first() -> None:
    order: list[str] = []

    def case(name: str) -> Case:
        def make(_: object) -> object:
            order.append(name)
            return lambda: None

        return Case("kernels", name, {}, Amounts(), make, samples=2)  # type: ignore[arg-type]

    cases = [case(f"op{number}") for number in range(20)]
    run(cases, budget=30.0, max_rounds=2, first={cases[7].key, cases[13].key})
    assert set(order[:2]) == {"op7", "op13"}
    assert set(order[20:22]) == {"op7", "op13"}


def test_a_workload_is_measured_with_what_a_machine_file_needs_and_no_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hwsim_calibrate.suites.kernels.SNIPPED", ())  # a thousand that are run to be known, and not kept
    more, _ = cases_for(
        str(workload(tmp_path / "w.yaml", ADD, "elementwise: {function: slice, count: 0, inputs: 0, device: cpu}"))
    )
    assert [case.op for case in more] == ["add", "slice"]
    found = measure(Plan(more=more, needed=True, budget=60.0, rounds=1, keep=lambda case: case.op in ("add", "slice", "pass")))
    assert {row.op for row in found.of("workload")} == {"add", "slice"}
    assert 5 < len(found.rows) < 30


@pytest.mark.usefixtures("heard")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no interrupt to one process")
@pytest.mark.parametrize(("asked", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_twice_for_the_end_it_still_leaves_its_file(tmp_path: Path, asked: signal.Signals, code: int) -> None:
    path = tmp_path / "m.json.gz"
    command = [sys.executable, "-m", "hwsim", "calibrate", "measure", "--suite", "kernels", "-o", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    time.sleep(2.5)
    for _ in range(3):
        process.send_signal(asked)
        time.sleep(0.01)
    _, said = process.communicate(timeout=30)
    if "the measurements so far are in" in said:  # on a very slow machine nothing was measured by then
        assert process.returncode == code
        assert "the same command resumes from them" in said
        assert load(path).rows


def test_no_arithmetic_needs_no_peak(tmp_path: Path) -> None:
    here = machine(tmp_path / "m.yaml")
    view = "elementwise: {function: transpose, count: 0, inputs: 0, flop_each: 0, into: out, device: cpu}"
    assert hwsim.simulate(here, workload(tmp_path / "w.yaml", view)).makespan_s >= 0
    with pytest.raises(SpecError, match="no peak for fp32"):
        hwsim.simulate(here, workload(tmp_path / "v.yaml", "elementwise: {function: erf, count: 9, dtype: fp32, device: cpu}"))


def test_a_measured_function_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("op,time\nadd,1 us\n", "utf-8")
    path = workload(tmp_path / "w.yaml", ADD.replace("{function", "{name: add, function"))
    shown = command.hwsim("compare", machine(tmp_path / "m.yaml"), path, tmp_path / "t.csv").stdout
    assert shown.splitlines()[-1].endswith("  measured")


def test_a_machine_that_does_not_say_what_an_access_takes_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has no memory latency"):
        hwsim.simulate(machine(tmp_path / "m.yaml"), "d2l/measure-cache-size", expect=False)


def test_chains_of_reads_say_what_an_access_takes() -> None:
    times = {8 << 10: 1e-9, 16 << 10: 1e-9, 256 << 10: 4e-9, 4 << 20: 15e-9, 128 << 20: 120e-9}
    rows = tuple(
        Row("memory", f"chase {size}", "chase", {"bytes": size, "pattern": "dependent"}, Amounts(), (seconds,))
        for size, seconds in times.items()
    )
    levels = {"L1": 32768.0, "L2": 524288.0, "L3": 2.0**25}
    assert latencies(Measurements({}, rows), levels) == {"L1": 1e-9, "L2": 4e-9, "L3": 15e-9, "memory": 120e-9}
    assert latencies(Measurements({}, rows[:2]), levels) == {}
