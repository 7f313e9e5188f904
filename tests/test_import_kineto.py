"""Reading profiles of PyTorch: what is taken, with all digits of its times; ranks, clocks; damaged and hostile files."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.importers import text
from hwsim.importers.columns import all_microseconds, microseconds
from hwsim.importers.formats import read
from hwsim.importers.recording import HOST, Rank, RecordedCollective, Recording, What
from hwsim.importers.replay import explain
from hwsim.importers.say import launches
from hwsim.importers.say import text as words
from hwsim.spec import SpecError
from tests.each import each
from tests.traces import dumps, kineto, run, write_kineto

OP: dict[str, Any] = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1000, "dur": 10, "args": {}}


def document(*events: Any, **more: Any) -> bytes:
    return dumps({"schemaVersion": 1, **more, "traceEvents": list(events)}).encode()


def one(path: Path, content: bytes) -> Rank:
    path.write_bytes(content)
    return read("kineto", [path]).ranks[0]


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(SpecError) as error:
        read("kineto", [path])
    (mistake,) = error.value.mistakes
    assert str(path) in str(error.value)
    assert "\n" not in mistake.message
    return str(mistake.message)


# ------------------------------------------------------------ what is taken


def test_a_run_is_read_with_all_digits_of_its_times(tmp_path: Path) -> None:
    events = run(steps=2, layers=3)
    rank = read("kineto", [write_kineto(tmp_path / "a.json.gz", kineto(events))]).ranks[0]
    first = min(event["start"] for event in events)
    wanted = sorted((span["start"] - first, -span["length"], span["name"]) for span in events)
    slices = rank.slices
    found = sorted(
        (start // 10**6, -(length // 10**6), rank.names[name])
        for start, length, name in zip(slices.start.tolist(), slices.duration.tolist(), slices.name.tolist(), strict=True)
    )
    assert found == wanted
    assert (np.diff(slices.start) >= 0).all()
    assert not (slices.start % 10**6).any()
    assert {what: int((slices.what == what).sum()) for what in What if (slices.what == what).any()} == {
        What.OP: 14, What.MARK: 2, What.CALL: 10, What.KERNEL: 6, What.COPY: 2,
    }  # fmt: skip
    assert launches(rank) == (8, 8)
    assert rank.devices == ((0, "NVIDIA A100-SXM4-80GB"),)
    assert {(lane.device, lane.number) for lane in rank.lanes} == {(HOST, 1000), (0, 7)}


def test_facts_are_shapes_types_bytes_and_equal_ones_are_one(tmp_path: Path) -> None:
    rank = read("kineto", [write_kineto(tmp_path / "a.json", kineto(run(steps=5)))]).ranks[0]
    slices = rank.slices
    addmm = rank.facts[slices.facts[slices.name == rank.names.index("aten::addmm")][0]]
    assert addmm.shapes == ((64,), (32, 128), (128, 64))
    assert addmm.dtypes == ("float",) * 3
    copy = rank.facts[slices.facts[slices.what == What.COPY][0]]
    assert (copy.bytes, copy.kind) == (8192, "DtoH")
    assert len(rank.facts) == 3
    tensors = {"Input Dims": [[[2, 3], [4]], []], "Input type": ["TensorList", "Scalar"], "Concrete Inputs": ["", "0"]}
    cat = one(tmp_path / "b.json", document({**OP, "args": tensors}))
    assert cat.facts[0].shapes == (((2, 3), (4,)), ())
    assert cat.facts[0].values == ("", "0")


@given(st.lists(st.tuples(st.integers(0, 10**16), st.integers(0, 10**9 - 1), st.integers(0, 9)), min_size=1, max_size=20))
def test_many_times_are_read_as_each_alone(parts: list[tuple[int, int, int]]) -> None:
    values = [f"{whole}.{str(part).zfill(9)[:digits]}" if digits else whole for whole, part, digits in parts]
    exact = [whole * 10**9 + int(str(part).zfill(9)[:digits].ljust(9, "0")) for whole, part, digits in parts]
    assert all_microseconds(values) == [microseconds(value) for value in values] == exact


def test_metadata_of_collectives_old_and_new(tmp_path: Path) -> None:
    args = {
        "Collective name": "all_to_allv", "In msg nelems": 6, "Out msg nelems": 8, "Group size": 40, "dtype": "BFloat16",
        "Process Group Name": "tp", "Process Group Ranks": "[0, 2, 4, ...]", "Global rank start": 0, "Global rank stride": 2,
    }  # fmt: skip
    old = {"Input Dims": [[394241]], "Input type": ["float"]}
    rank = one(
        tmp_path / "a.json",
        document(
            {**OP, "name": "record_param_comms", "args": args},
            {**OP, "cat": "user_annotation", "name": "nccl:_all_gather_base", "ts": 1001, "args": old},
            {**OP, "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "ts": 1002,
             "args": {"device": 1, "stream": 3, "correlation": 5}},
            {**OP, "name": "record_param_comms", "ts": 1003, "args": {**args, "Collective name": "wait"}},
        ),
    )  # fmt: skip
    new, before, kernel, wait = (rank.facts[number].collective for number in rank.slices.facts.tolist())
    assert new == RecordedCollective("alltoall", 6, 8, "bf16", tuple(range(0, 80, 2)), 40, "tp")
    assert before == RecordedCollective("allgather", 394241, 0, "fp32")
    assert kernel == RecordedCollective("allreduce", dtype="fp32")
    assert wait is None


def test_what_is_left_out_is_counted_with_its_time(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(
        document(
            OP, {**OP, "cat": "overhead", "name": "Activity Buffer Request", "dur": 30}, {**OP, "cat": "new_thing", "dur": 7},
            {"ph": "s", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g"},
            {"ph": "f", "id": 1, "pid": 1, "tid": 1, "ts": 1, "cat": "ac2g", "name": "ac2g", "bp": "e"},
            {"ph": "s", "cat": "ac2g", "id": 2}, {"ph": "C", "name": "power", "ts": 1, "args": {}},
        )
    )  # fmt: skip
    recording = read("kineto", [path])
    assert [(left.name, left.count, left.duration) for left in recording.left] == [
        ("overhead", 1, 30 * 10**9), ("new_thing", 1, 7 * 10**9), ("ac2g", 3, 0), ("power", 1, 0),
    ]  # fmt: skip
    assert "  omitted: 1 x new_thing, 7.00 us (70 % of the time): unknown category" in words(recording)


# ------------------------------------------------------------ ranks


def ranks(folder: Path, count: int, **more: Any) -> Recording:
    files = [write_kineto(folder / f"rank{r}.json", kineto(run(r, count, **more), r, count)) for r in range(count)]
    return read("kineto", files[::-1])


@pytest.mark.parametrize(
    ("hosts", "late", "shift"), [("ab", 7_000_000, -7), ("aa", 7_000_000, 0), (" ", 0, 0), (" ", 2_000_000, -2)]
)
def test_clocks_of_other_hosts_are_set_by_collectives(tmp_path: Path, hosts: str, late: int, shift: int) -> None:
    files = []
    for rank, host in enumerate(hosts * (2 // len(hosts))):
        events = run(rank, 2, steps=4, slow=1 + 0.5 * rank, late=rank * late)
        files.append(write_kineto(tmp_path / f"{rank}.json", kineto(events, rank, 2, host=host.strip())))
    recording = read("kineto", files)
    assert [rank.shift for rank in recording.ranks] == [0, shift * 10**12]
    assert any("clock" in note for note in recording.notes) == bool(shift)
    assert any("begin up to 7.00 ms apart" in note for note in recording.notes) == (not shift and bool(late))
    if shift:
        nccl = [(rank.slices.end[[rank.names[n].startswith("nccl") for n in rank.slices.name]]) for rank in recording.ranks]
        assert nccl[0].tolist() == nccl[1].tolist()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"distributedInfo": {"rank": 0, "world_size": 4}}, "the file is of rank 0, like"),
        ({"distributedInfo": {"rank": 1, "world_size": 2}}, "the file is of a run of 2 ranks, another file of a run of 4"),
        ({"distributedInfo": {"rank": 5, "world_size": 4}}, "expected a rank from 0 to 3, got 5"),
        ({"distributedInfo": {"rank": 1, "world_size": 4}, "baseTimeNanoseconds": 10**18}, "it is of another run"),
    ],
)
def test_files_of_two_runs_are_refused(tmp_path: Path, second: dict[str, Any], message: str) -> None:
    (tmp_path / "a.json").write_bytes(document(OP, distributedInfo={"rank": 0, "world_size": 4}))
    (tmp_path / "b.json").write_bytes(document(OP, **second))
    with pytest.raises(SpecError, match=message):
        read("kineto", [tmp_path / "a.json", tmp_path / "b.json"])


def test_ranks_from_names_and_places(tmp_path: Path) -> None:
    for name in ("trace_rank3.json", "other.json"):
        (tmp_path / name).write_bytes(document({**OP, "pid": len(name)}))
    recording = read("kineto", [tmp_path / "other.json", tmp_path / "trace_rank3.json"])
    assert [rank.number for rank in recording.ranks] == [0, 3]
    assert "rank 0 is assumed, by order of the file names" in recording.notes[0]
    (tmp_path / "another.json").write_bytes(document({**OP, "pid": 1}))
    files = [tmp_path / f"{name}.json" for name in ("other", "another")]
    assert [Path(rank.file).stem for order in (1, -1) for rank in read("kineto", files[::order]).ranks] == [
        "another",
        "other",
    ] * 2
    with pytest.raises(SpecError, match="the file is given twice"):
        read("kineto", [tmp_path / "other.json"] * 2)


# ------------------------------------------------------------ damaged and hostile files


@each(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"<!doctype html>", "this is HTML or XML"),
        (b"PK\x03\x04abc", "this is a zip archive"),
        (b"SQLite format 3\0abc", "this is an SQLite database"),
        (b'{"schemaVersion": 1}', "no list 'traceEvents' of events; the file has 'schemaVersion'"),
        (b'{"nodes": [{"id": 1}]}', "no list 'traceEvents' of events; the file has 'nodes'"),
        (document(), "no known event in the file"),
        (document(OP)[:-20], "the file is truncated"),
        (gzip.compress(document(*[OP] * 100))[:-15], "the compressed data are truncated"),
        (document(OP) + b"x", "the document ends here, but the file continues"),
        (document(OP, 5), "expected events, got 5"),
        (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "byte 29 of the text: expected a comma or ]"),
        (b'{"traceEvents": [{"ph": "X", blah}, {"ph": "X"}, {"ph": "X"}]}', "invalid JSON"),
        (b'{"traceEvents": [{"ph": "X", "args": ' + b"[" * 100_000, "nested too deeply"),
        (document({**OP, "args": {"Input Dims": json.loads("[" * 500 + "]" * 500)}}), "shapes are nested too deeply"),
        (document({**OP, "ts": 2**63}, OP), "h after the first event, the limit is 77 min"),
        (document(OP, {**OP, "dur": 2**70}), "event 'aten::mm': it lasts 3.28e+11 h, the limit is 77 min"),
        (b'{"traceEvents": [{"ph": "X", "ts": ' + b"1" * 5000 + b"}]}", "invalid number"),
        (document(OP, {**OP, "ts": float("nan")}), "expected a finite time in us, got NaN"),
        (document(OP, OP, {**OP, "dur": -1}), "event 'aten::mm': a negative duration"),
        (document(OP, {**OP, "ts": "abc"}), "expected a time in us, got 'abc'"),
        (document(OP, {"ph": "X", "cat": "cpu_op", "name": "a"}), "missing key 'pid'"),
        (document({**OP, "name": 5}), "its name is not a text"),
        (document({**OP, "cat": ["a"]}), "a value has an unexpected type"),
        (document({**OP, "args": [1]}), "a value has an unexpected type"),
        (document({**OP, "cat": "cuda_runtime", "args": {"correlation": "x"}}), "expected a number"),
        (document({**OP, "cat": "gpu_memcpy", "args": {"stream": 1, "device": 0, "bytes": -1}}), "expected a number of bytes"),
    ],
)
def test_one_clear_error_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in refused(tmp_path / "a.json", content)


@pytest.mark.parametrize("inside", [b" ", b'{"name": "a'])
def test_a_small_file_that_unpacks_to_much_is_refused_in_little_memory(tmp_path: Path, inside: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr(text, "LONGEST", 1 << 20)
    bomb = b'{"traceEvents": [' + inside + (b" " if inside == b" " else b"a") * (1 << 24)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(bomb, 1))
    del bomb
    tracemalloc.start()
    with pytest.raises(SpecError):
        read("kineto", [tmp_path / "a.json.gz"])
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("chunk", [64, 1000, 1 << 20])
@pytest.mark.parametrize("rewrite", [lambda x: x, lambda x: dict(reversed(x.items()))], ids=["as written", "keys reversed"])
def test_pieces_and_order_of_keys_change_nothing(
    tmp_path: Path, chunk: int, rewrite: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kineto(run(steps=1))
    expected = read("kineto", [write_kineto(tmp_path / "a.json", whole)])
    changed = rewrite(whole | {"traceEvents": [rewrite(event) for event in whole["traceEvents"]]})
    monkeypatch.setattr(text, "CHUNK", chunk)
    found = read("kineto", [write_kineto(tmp_path / "b.json", changed)])
    for column in ("what", "name", "lane", "start", "duration", "link", "facts"):
        assert getattr(found.ranks[0].slices, column).tolist() == getattr(expected.ranks[0].slices, column).tolist()
    assert found.left == expected.left
    assert found.ranks[0].facts == expected.ranks[0].facts


# ------------------------------------------------------------ real files

LAUNCHED = {  # kernels, copies and sets of the file; those whose call is in it
    "param_RTX2080Ti_resnet": (10_113, 10_113), "hta_A100_ddp_2rank_nccl_r0": (3_774, 3_774),
    "hta_A100_event_sync_multistream": (6, 6), "hta_A100_simple_add_small": (4, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHED)
def test_every_launch_of_published_profiles_is_found(reference_data: Path, name: str) -> None:
    recording = read("kineto", [reference_data / f"traces/gpu/{name}.json.gz"])
    assert launches(recording.ranks[0]) == LAUNCHED[name]


@pytest.mark.parametrize("late", [0, 5_000_000])
def test_the_clock_of_a_rank_that_begins_a_step_later_is_set_by_the_steps_of_both(tmp_path: Path, late: int) -> None:
    """As many collectives in both files, of steps 0 to 2 and 1 to 3: the n-th of each are not the same."""
    files = []
    for rank in range(2):
        first, *more = [index for index, op in enumerate(run(rank, 2, steps=4)) if op["name"].startswith("ProfilerStep")]
        events = run(rank, 2, steps=4, slow=1 + 0.5 * rank, late=rank * late)
        files.append(
            write_kineto(tmp_path / f"{rank}.json", kineto(events[first + 1 :] if rank else events[: more[1] + 1], rank, 2))
        )
    recording = read("kineto", files)
    nccl = [rank.slices.end[[rank.names[n].startswith("nccl") for n in rank.slices.name]] for rank in recording.ranks]
    assert nccl[0][1:].tolist() == nccl[1][:-1].tolist()
    assert len(explain(recording).meetings) == 2


@pytest.mark.parametrize("chunk", [64, 1 << 20])
def test_paths_of_windows_damage_their_names_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """PyTorch does not escape the backslashes of paths there."""
    monkeypatch.setattr(text, "CHUNK", chunk)
    plain = dumps(kineto(run()))
    hurt = plain.replace("aten::linear", r"C:\Users\P\ut\x.py", 2).replace("aten::copy_", r"a\\b", 1)
    whole, found = (one(tmp_path / "a.json", content.encode()) for content in (plain, hurt))
    assert found.slices.start.tolist() == whole.slices.start.tolist()
    assert {r"C:\Users\P\ut\x.py", r"a\b"} <= set(found.names)
