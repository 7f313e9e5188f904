"""A journal keeps what is finished, whatever ends the run; a study goes on from it and writes the same bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hwsim.spec import SpecError
from hwsim.studies import journal
from hwsim.studies.file import load_study
from hwsim.studies.journal import Journal
from hwsim.studies.point import Outcome, read_source, run_point
from hwsim.studies.sweeps import study

HEAD = {"study": "a", "version": "1"}
STUDY = """\
hwsim: study/1
machine: d2l-laptop
workload: d2l/async-loop
points: {latin: {points: POINTS, seed: 1, of: {n: 10..1000:log, workload.runtime.queue_depth: 1..64}}}
rows: rows.csv
"""


def test_rows_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEAD) as journal:
        journal.add(7, {"x": 0.1 + 0.2})
        journal.add(3, {"x": None})
        journal.add(7, {"x": 1.0})
    with Journal(tmp_path / "j", HEAD) as again:
        assert again.done == {7: {"n": 7, "x": 0.1 + 0.2}, 3: {"n": 3, "x": None}}
    assert len((tmp_path / "j").read_bytes().splitlines()) == 3


def test_whatever_is_cut_off_the_whole_lines_stay(tmp_path: Path) -> None:
    with Journal(tmp_path / "whole", HEAD) as journal:
        for number in range(4):
            journal.add(number, {"x": number / 3, "text": "ü\n"})
    content = (tmp_path / "whole").read_bytes()
    for length in range(len(content) + 1):
        (tmp_path / "j").write_bytes(content[:length])
        with Journal(tmp_path / "j", HEAD) as cut:
            assert len(cut.done) == max(0, content[:length].count(b"\n") - 1)
            for number in range(4):
                cut.add(number, {"x": number / 3, "text": "ü\n"})
        assert (tmp_path / "j").read_bytes() == content


def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    for content, said in (
        (b"notes\n", "not a journal"),
        (b"notes", "not a journal"),
        (b'{"hwsim": "sweep/2"}\n', "not a journal"),
        (b'{"hwsim":"journal/1","study":"b","version":"1"}\n', "study differs"),
        (b'{"hwsim":"journal/1","study":"a","version":"2"}\n', "started by hwsim 2"),
    ):
        (tmp_path / "j").write_bytes(content)
        with pytest.raises(SpecError, match=said):
            Journal(tmp_path / "j", HEAD)
        assert (tmp_path / "j").read_bytes() == content


def test_two_processes_do_not_write_to_one_journal(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with Journal(tmp_path / "j", HEAD), pytest.raises(SpecError, match="another process"):
        Journal(tmp_path / "j", HEAD)
    Journal(tmp_path / "j", HEAD).close()


def test_a_journal_that_its_process_has_removed_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process ends, and removes the file, between the opening of this one and its lock."""
    pytest.importorskip("fcntl")
    lock = journal._lock
    opened: list[int] = []

    def late(file: int) -> bool:
        if not opened:
            (tmp_path / "j").unlink()
        opened.append(file)
        return lock(file)

    monkeypatch.setattr(journal, "_lock", late)
    with Journal(tmp_path / "j", HEAD) as anew:
        anew.add(0, {"x": 1.0})
    assert (tmp_path / "j").read_bytes().count(b"\n") == 2


def test_a_damaged_line_before_whole_ones_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", HEAD) as whole:
        for number in range(4):
            whole.add(number, {"x": number / 3})
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    for wrong in (b"\n", b"\0\0\n", b'{"n": 1, "x": 0.\n', b'{"x": 1}\n', b"<<<<<<< ours\n"):
        (tmp_path / "j").write_bytes(content := b"".join([*lines[:2], wrong, *lines[3:]]))
        with pytest.raises(SpecError, match=r"j:3:1: damaged line"):
            Journal(tmp_path / "j", HEAD)
        assert (tmp_path / "j").read_bytes() == content
        (tmp_path / "j").write_bytes(b"".join(lines) + wrong)
        with Journal(tmp_path / "j", HEAD) as cut:
            assert len(cut.done) == 4
        assert (tmp_path / "j").read_bytes() == b"".join(lines)


@pytest.mark.parametrize(
    "settings", [{"n": 5}, {"n": "x"}, {"machine.cpu.use": "no-such-cpu"}, {"workload.runtime.queue_depth": 3}]
)
def test_an_outcome_comes_back_as_it_was(settings: dict[str, Any], tmp_path: Path) -> None:
    found = run_point(read_source("machine", "d2l-laptop"), read_source("workload", "d2l/async-loop"), settings, ["time"])
    with Journal(tmp_path / "j", HEAD) as journal:
        journal.add(0, found.as_dict())
    with Journal(tmp_path / "j", HEAD) as again:
        assert Outcome.of(again.done[0]) == found


def test_a_study_goes_on_with_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.yaml").write_text(STUDY.replace("POINTS", "9"))
    asked = load_study(tmp_path / "s.yaml")
    whole = study(asked, workers=1)
    journal = tmp_path / "j"
    study(asked, workers=1, journal=journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    random.Random(1).shuffle(rows := lines[1:])
    journal.write_bytes(lines[0] + b"".join(rows[:4]) + rows[4][:-9])
    ran: list[int] = []
    found = study(asked, workers=1, journal=journal, progress=lambda done, points: ran.append(done))
    assert ran == [4, 5, 6, 7, 8, 9]
    assert found == whole
    assert found.to_csv() == whole.to_csv()
