"""Reading SQLite of Nsight Systems: processes, correlation within each, missing tables and columns, damaged files."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hwsim.importers.formats import read
from hwsim.importers.recording import Rank, What
from hwsim.importers.say import launches
from hwsim.spec import SpecError
from tests.traces import kineto, run, write_kineto, write_nsys


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as base:
        base.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;")
        for statement in statements:
            base.execute(statement)
        base.commit()
    return path


def test_two_processes_are_two_ranks_with_the_same_correlation_ids(tmp_path: Path) -> None:
    recording = read("nsys", [write_nsys(tmp_path / "a.sqlite", {1000: run(0, 2), 1001: run(1, 2, slow=3)})])
    assert [rank.number for rank in recording.ranks] == [0, 1]
    assert [rank.devices for rank in recording.ranks] == [((0, "NVIDIA A100"),), ((1, "NVIDIA A100"),)]
    for rank in recording.ranks:
        assert launches(rank) == (10, 10)
    kernels = [int(rank.slices.duration[rank.slices.what == What.KERNEL].sum()) for rank in recording.ranks]
    assert kernels[0] != kernels[1]
    assert "process 1001 of" in recording.notes[1]
    assert [(left.name, left.count, left.duration) for left in recording.left] == [("OSRT_API", 2, 2 * 5 * 10**9)]


def test_the_same_run_is_the_same_as_of_kineto(tmp_path: Path) -> None:
    """Times, links and streams are equal; nsys knows ops by the ranges that PyTorch pushes, with shapes in their names."""
    events = run()
    nsys = read("nsys", [write_nsys(tmp_path / "a.sqlite", {1000: events})]).ranks[0]
    kin = read("kineto", [write_kineto(tmp_path / "a.json", kineto(events))]).ranks[0]

    def rows(rank: Rank, kind: What) -> list[tuple[object, ...]]:
        slices, names = rank.slices, rank.names
        keep = slices.what == kind
        lanes = [rank.lanes[lane].number for lane in slices.lane[keep]]
        return list(zip(slices.start[keep].tolist(), slices.duration[keep].tolist(), slices.link[keep].tolist(), lanes,
                        [names[name] for name in slices.name[keep]], strict=True))  # fmt: skip

    assert rows(nsys, What.KERNEL) == rows(kin, What.KERNEL)
    assert [row[:4] for row in rows(nsys, What.COPY)] == [row[:4] for row in rows(kin, What.COPY)]
    assert [(*row[:3], row[4]) for row in rows(nsys, What.CALL)] == [(*row[:3], row[4]) for row in rows(kin, What.CALL)]
    shaped = {nsys.names[name]: nsys.facts[fact].shapes for name, fact in zip(nsys.slices.name, nsys.slices.facts, strict=True)
              if nsys.names[name] == "aten::addmm"}  # fmt: skip
    assert shaped == {"aten::addmm": ((64,), (32, 128), (128, 64))}


def test_waits_find_the_last_record_of_their_event(tmp_path: Path) -> None:
    path = changed(
        write_nsys(tmp_path / "a.sqlite", {1: run(steps=1)}),
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (globalPid INT, eventId INT, correlationId INT, streamId INT)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES ({1 << 24}, 5, 10, 7), ({1 << 24}, 5, 20, 8), ({1 << 24}, 5, 40, 9)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, deviceId INT, streamId INT, correlationId INT,"
        " globalPid INT, syncType INT, eventId INT)",
        f"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1000000000, 1000000005, 0, 13, 30, {1 << 24}, 2, 5),"
        f" (1000000006, 1000000007, 0, 4294967295, 31, {1 << 24}, 4, 0)",
    )
    rank = read("nsys", [path]).ranks[0]
    waits = [rank.facts[fact] for fact in rank.slices.facts[rank.slices.what == What.WAIT]]
    assert [(wait.kind, wait.waits_on_stream, wait.waits_on_link) for wait in waits] == [
        ("Stream Wait Event", 8, 20), ("Context Sync", -1, -1),
    ]  # fmt: skip
    assert [rank.lanes[lane].number for lane in rank.slices.lane[rank.slices.what == What.WAIT]] == [13, -1]


@pytest.mark.parametrize("gone", ["CUPTI_ACTIVITY_KIND_MEMCPY", "NVTX_EVENTS", "TARGET_INFO_GPU", "StringIds", "OSRT_API"])
def test_tables_may_be_missing(tmp_path: Path, gone: str) -> None:
    path = changed(write_nsys(tmp_path / "a.sqlite", {1: run()}), f"DROP TABLE {gone}")
    assert len(read("nsys", [path]).ranks) == 1


def test_old_files_do_not_say_the_process_of_a_kernel(tmp_path: Path) -> None:
    without = "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN globalPid"
    one = changed(write_nsys(tmp_path / "a.sqlite", {1: run()}), without)
    assert launches(read("nsys", [one]).ranks[0]) == (8, 8)
    two = changed(write_nsys(tmp_path / "b.sqlite", {1: run(), 2: run(1)}), without)
    with pytest.raises(SpecError, match="the file has several processes, but no process ids of kernels"):
        read("nsys", [two])


KERNEL = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (KERNEL + f"(20, 10, 0, 1, 7, 1, {1 << 24}, 1, 1)", "table CUPTI_ACTIVITY_KIND_KERNEL: a negative duration"),
        (KERNEL + f"(1, {2**62}, 0, 1, 7, 1, {1 << 24}, 1, 1)", "table CUPTI_ACTIVITY_KIND_KERNEL: it lasts 1.28e.06 h"),
        (KERNEL + f"('x', 10, 0, 1, 7, 1, {1 << 24}, 1, 1)", "table CUPTI_ACTIVITY_KIND_KERNEL: an invalid or too large number"),
        (KERNEL + f"(1, 2, 0, 1, 7, 'x', {1 << 24}, 1, 1)", "table CUPTI_ACTIVITY_KIND_KERNEL: an invalid or too large number"),
    ],
)
def test_rows_that_make_no_sense_are_refused_with_their_table(tmp_path: Path, statement: str, message: str) -> None:
    path = changed(write_nsys(tmp_path / "a.sqlite", {1: run()}), statement)
    with pytest.raises(SpecError, match=message):
        read("nsys", [path])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b""), "the file is empty"),
        (lambda path: write_kineto(path, kineto(run())), "expected an SQLite export of Nsight Systems"),
        (lambda path: changed(path, "CREATE TABLE a (start INT)"), "no table of CUPTI or NVTX in the file"),
        (lambda path: changed(path, "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT)"), "no known event"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    write(tmp_path / "a.sqlite")
    with pytest.raises(SpecError, match=message):
        read("nsys", [tmp_path / "a.sqlite"])


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file that is well."""
    return write_nsys(tmp_path_factory.mktemp("good") / "a.sqlite", {1: run(steps=1)}).read_bytes()


def test_tables_that_are_no_text_are_damage(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(good.replace(b"CREATE TABLE", b"CRE\x96TE TABLE"))
    with pytest.raises(SpecError, match="the database is damaged: a name is not valid text"):
        read("nsys", [path])
