"""`hwsim explain`, as people and scripts meet it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command import hwsim
from tests.explain_cases import MACHINE, workload

STATION, OVERLAP = "d2l-gpu-workstation", "d2l/copy-overlap"


def test_the_json_accounts_for_every_femtosecond() -> None:
    found: dict[str, Any] = json.loads(hwsim("explain", STATION, OVERLAP, "--json", "--set", "stream=compute").stdout)
    assert set(found) == {
        "hwsim", "machine", "workload", "set", "makespan_s", "makespan_fs", "sentences", "accounting", "critical_path",
        "activities", "bounds", "derivations", "what_if", "what_if_measure", "what_if_omitted", "events", "warnings", "interval",
    }  # fmt: skip
    assert found["hwsim"] == "explain/2"
    assert found["set"] == {"stream": "compute"}
    assert set(found["accounting"][0]) == {"cause", "kind", "time_s", "time_fs", "share"}
    assert sum(row["time_fs"] for row in found["accounting"]) == found["makespan_fs"]
    assert found["critical_path"][0]["times"] == 10
    assert set(found["derivations"][0]["lines"][0]["inputs"][0]) == {"name", "value", "source"}
    assert found["what_if"][0]["speedup"] > 1


def test_the_path_is_printed_piece_by_piece_when_asked_for() -> None:
    assert hwsim("explain", STATION, OVERLAP, "--path").stdout.count("matmul on gpu, iteration") == 9
    assert len(json.loads(hwsim("explain", STATION, OVERLAP, "--path", "--json").stdout)["segments"]) == 12


def test_one_op_is_derived_when_asked_for() -> None:
    done = hwsim("explain", STATION, OVERLAP, "--op", "copy to CPU", "--no-what-if")
    assert "link gpu->cpu: bytes / bandwidth = 16 MB / 1.665 GB/s = 9.610 ms   [bound]" in done.stdout
    assert "compute: flop" not in done.stdout


def test_an_op_that_does_not_exist_is_a_mistake_with_a_hint() -> None:
    done = hwsim("explain", STATION, OVERLAP, "--op", "copy to CPO", code=2)
    assert "did you mean 'copy to CPU'" in done.stderr


def test_the_figure_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "path.pdf"
    done = hwsim("explain", STATION, OVERLAP, "--plot", path, "--no-what-if")
    assert f"wrote {path}" in done.stderr
    assert path.stat().st_size > 1000


def test_arguments_that_cannot_be_are_refused_before_the_run() -> None:
    assert "only one of the two" in hwsim("explain", "-", "-", code=2).stderr
    assert ".png, .svg or .pdf" in hwsim("explain", STATION, OVERLAP, "--plot", "x.bmp", code=2).stderr
    assert "no-such-folder" in hwsim("explain", STATION, OVERLAP, "--plot", "no-such-folder/x.png", code=2).stderr
    hwsim("explain", STATION, "d2l/copy-overlab", code=2)


def test_a_long_workload_and_many_devices_still_fit(tmp_path: Path) -> None:
    machine, work = tmp_path / "m.yaml", tmp_path / "w.yaml"
    machine.write_text(MACHINE, encoding="utf-8")
    work.write_text(workload("copy").replace("name: up,", f"name: {'very ' * 30}long,"), encoding="utf-8")
    done = hwsim("explain", machine, work)
    assert max(map(len, done.stdout.splitlines())) <= 100
