"""Nothing that was computed is lost: not by a kill, a full disk, or a file that cannot be written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from hwsim.studies import journal
from hwsim.studies.study_run import Interrupted
from hwsim.studies.sweeps import sweep
from hwsim.views.kit.file_output import write
from tests.command import hwsim

LOOP = ("d2l-laptop", "d2l/async-loop")
POINTS = ("sweep", *LOOP, "--vary", "n=1..6", "--workers", "1")


class Killed(BaseException):
    """An end that nothing catches."""


def test_a_full_disk_ends_a_study_with_the_points_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "s.journal.jsonl"
    add = journal.Journal.add

    def full(self: journal.Journal, number: int, row: Any) -> None:
        if len(self.done) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        add(self, number, row)

    monkeypatch.setattr(journal.Journal, "add", full)
    with pytest.raises(Interrupted) as stopped:
        sweep(*LOOP, {"n": "1..6"}, workers=1, journal=kept)
    assert len(stopped.value.sweep.rows) == 4
    assert stopped.value.error is not None
    done = hwsim(*POINTS, "-o", tmp_path / "t.csv", code=130)
    assert f"{tmp_path / 't.journal.jsonl'}: No space left on device" in done.stderr
    assert "4 of 6 points are done" in done.stderr
    assert done.stdout.count("us") >= 4


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("simulate", *LOOP, "--set", "n=5", "--trace"), "resource"),
        (("explain", *LOOP, "--set", "n=5", "--plot"), "critical path"),
        ((*POINTS, "-o"), "bottleneck"),
        (("latency", "d2l-latency", "--plot"), "latency numbers"),
    ],
)
def test_an_answer_is_shown_before_a_full_disk_is_reported(
    arguments: tuple[str, ...], answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(self: Path, *given: Any, **more: Any) -> Any:
        file = opened(self, *given, **more)
        if self.name.endswith(".part"):
            file.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return file

    monkeypatch.setattr(Path, "open", full)
    file = tmp_path / ("out.svg" if arguments[-1] == "--plot" else "out.json" if arguments[-1] == "--trace" else "out.csv")
    done = hwsim(*arguments, file, code=1)
    assert done.stderr.splitlines()[-1] == f"{file}: No space left on device"
    assert answer in done.stdout
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.touch(mode=0o600)
    write(file, [b"new"])
    assert (stat.S_IMODE(file.stat().st_mode), file.read_bytes()) == (0o600, b"new")


def test_an_op_graph_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    import hwsim

    graph = hwsim.simulate(*LOOP, set={"n": 3}, expect=False).timeline.flat.graph
    file = hwsim.save_graph(graph, tmp_path / "g.npz")
    before = file.read_bytes()

    def half(opened: Any, **arrays: Any) -> None:
        opened.write(b"PK")
        raise Killed

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(Killed):
        hwsim.save_graph(graph, file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["g.npz"]


@pytest.mark.parametrize("name", ["w.yaml", "link.yaml", "sub/../w.yaml"])
def test_a_file_that_a_command_reads_is_not_written_over(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    workload = tmp_path / "w.yaml"
    workload.write_text(text := "hwsim: workload/1\nlet: {n: 1}\nprogram: [{busy: {device: cpu, time: $n ms}}]\n")
    (tmp_path / "link.yaml").symlink_to(workload)
    found = hwsim("sweep", "d2l-laptop", workload, "--vary", "n=1,2", "-o", tmp_path / name, code=2)
    assert workload.read_text() == text
    assert "is an input of this command" in found.stderr


def test_rows_and_journal_of_a_study_are_two_files(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("hwsim: study/1\nmachine: d2l-laptop\nworkload: d2l/async-loop\npoints: {grid: {n: 1..2}}\n")
    found = hwsim("study", file, "--rows", tmp_path / "r.csv", "--journal", tmp_path / "r.csv", code=2)
    assert "is the file of the rows" in found.stderr


def test_a_link_that_leads_in_a_circle_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "s.csv").symlink_to("s.csv")
    hwsim(*POINTS, "-o", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().startswith("n,makespan_s")
