from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hwsim.studies import study_run as running
from hwsim.studies.sweeps import sweep
from hwsim.studies.table import Sweep
from tests.command import hwsim

LOOP = ("d2l-laptop", "d2l/async-loop")


def test_the_same_sweep_prints_the_same_bytes(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.csv", "b.csv", "a.svg", "b.svg")]
    runs = [hwsim("sweep", *LOOP, "--vary", "n=1..8", "--json", "-o", files[run], "--plot", files[run + 2]) for run in (0, 1)]
    assert runs[0].stdout == runs[1].stdout
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[2].read_bytes() == files[3].read_bytes()
    assert json.loads(runs[0].stdout) == sweep(*LOOP, {"n": "1..8"}).to_json()


def test_a_file_may_come_from_standard_input() -> None:
    text = "hwsim: workload/1\nlet: {n: 1}\nprogram: [{busy: {device: cpu, time: $n * 1 us}}]\n"
    found = hwsim("sweep", "d2l-laptop", "-", "--vary", "n=1..3", stdin=text)
    assert [line.split()[1] for line in found.stdout.splitlines()[3:6]] == ["1.00", "2.00", "3.00"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--vary"),
        (["--vary", "n"], "PATH=VALUES"),
        (["--vary", "n=1", "--set", "n=2"], "both set and varied"),
        (["--vary", "n=1..20000"], "20000 points exceed the limit of 10000"),
        (["--vary", "n=1", "--plot", "x.jpg"], ".png, .svg or .pdf"),
        (["--vary", "n=1", "-o", "no/such/folder.csv"], "there is no folder"),
        (["--vary", "m=1,2"], "every point failed:\nthe workload has no parameter 'm'"),
    ],
)
def test_mistakes_are_said_and_nothing_is_printed(arguments: list[str], said: str) -> None:
    found = hwsim("sweep", *LOOP, *arguments, code=2)
    assert said in found.stderr
    assert found.stdout == ""


PARAMETER = """hwsim: workload/1
let: {n: 2, t: 1 s}
program: [{repeat: {times: $n, do: [{busy: {name: add, device: cpu, time: $t}}]}}]
"""


def test_negative_numbers_of_files_are_shown_as_the_user_wrote_them(tmp_path: Path) -> None:
    """They were taken for numbers of hwsim, with exit code 4."""
    (tmp_path / "loop.yaml").write_text(PARAMETER, encoding="utf-8")
    document = {"hwsim": "study/1", "machine": "d2l-laptop", "workload": "loop.yaml", "points": {"grid": {"t": ["-1 s", "1 s"]}}}
    (tmp_path / "study.json").write_text(json.dumps(document), encoding="utf-8")
    assert "'-1 s' cannot be negative" in hwsim("study", tmp_path / "study.json", "--workers", "1").stdout
    machine = ("plan", "d2l-laptop", str(tmp_path / "loop.yaml"), "--minimise", "time")
    assert "t=-1 s: '-1 s' cannot be negative" in hwsim(*machine, "--vary", "t=-1 s,1 s").stdout
    (tmp_path / "loop.yaml").write_text(PARAMETER.replace("1 s", "-1 s"), encoding="utf-8")
    assert "n=1: '-1 s' cannot be negative" in hwsim(*machine, "--vary", "n=1,2", code=3).stdout


def test_nothing_is_drawn_when_every_point_failed(tmp_path: Path) -> None:
    found = hwsim("sweep", *LOOP, "--vary", "n=x,y", "--plot", tmp_path / "a.png", "--json", "-o", tmp_path / "a.csv", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert len(json.loads(found.stdout)["rows"]) == 2


def test_an_interrupted_sweep_prints_and_writes_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*arguments: Any, progress: Callable[[int, int], None] | None, **more: Any) -> Sweep:
        def stop(done: int, points: int) -> None:
            if done == 2:
                raise KeyboardInterrupt

        return sweep(*arguments, progress=stop, **more)

    file = tmp_path / "a.csv"
    monkeypatch.setattr("hwsim.studies.sweeps.sweep", interrupted)
    found = hwsim("sweep", *LOOP, "--vary", "n=1..5", "-o", file, code=130)
    assert "3 of 5 points were not run" in found.stdout
    assert "interrupted: 2 of 5 points are done; the same command goes on" in found.stderr
    assert file.with_suffix(".journal.jsonl").is_file(), "of what is done"
    monkeypatch.undo()
    hwsim("sweep", *LOOP, "--vary", "n=1..5", "-o", file)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert file.read_text(encoding="utf-8") == sweep(*LOOP, {"n": "1..5"}).to_csv()


def test_interrupted_before_the_first_point_is_an_empty_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_point", stopped)
    found = hwsim("sweep", *LOOP, "--vary", "n=1,2", "--json", code=130)
    assert json.loads(found.stdout)["rows"] == []
    assert "interrupted: 0 of 2 points are done" in found.stderr
    assert "2 of 2 points were not run" in hwsim("sweep", *LOOP, "--vary", "n=1,2", code=130).stdout


@pytest.mark.usefixtures("heard")
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent to a process group")
@pytest.mark.parametrize(("workers", "number"), [(1, "SIGINT"), (2, "SIGINT"), (1, "SIGTERM"), (2, "SIGHUP")])
def test_a_signal_ends_a_real_study_at_once(workers: int, number: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    command = [sys.executable, "-m", "hwsim", "sweep", *LOOP, "--vary", "n=1..5000", "-o", str(file), "--workers", str(workers)]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
        cwd=Path(__file__).parents[1],
    )
    time.sleep(6)
    os.killpg(running.pid, signal.Signals[number])
    stdout, stderr = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.Signals[number]
    assert "Traceback" not in stderr
    with file.open(encoding="utf-8", newline="") as lines:
        assert 1 < len(list(csv.reader(lines))) < 5001
    assert "points were not run" in stdout
