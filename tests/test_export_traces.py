"""Runs as traces of other tools: what is written is what ran, to the femtosecond, and reads back as that."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import hwsim
from hwsim.exporters.tools import TOOLS, files
from hwsim.importers.formats import read
from hwsim.importers.recording import Recording, What
from hwsim.views.trace.run import TracedRun, run_of
from tests import command

FOUR = "d2l-4gpu-pcie"
WORK = frozenset({What.OP, What.KERNEL, What.COPY})


def ranks(*statements: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", "program": {"each": "gpu*", "do": list(statements)}, **top}


def busy(time: str, **keys: Any) -> dict[str, Any]:
    return {"busy": {"name": "work", "device": "$self", "time": time, **keys}}


# One slow rank, a late one, exchanges of two kinds beside the next step's work, and what waits for them.
SKEWED = ranks(
    busy("2 ms + 3 ms * $rank", writes="g"),
    {"allreduce": {"among": "gpu*", "bytes": "16 MB", "updates": "g"}},
    busy("7 ms - 1 ms * $rank", writes="h"),
    {"allgather": {"among": "gpu*", "bytes": "8 MB", "updates": "h"}},
    busy("1 ms", reads=["g", "h"]),
)
CASES: dict[str, tuple[str, Any]] = {
    "a host that runs ahead": ("d2l-gpu-workstation", "d2l/async-matmul-gpu"),
    "two streams": ("d2l-gpu-workstation", "d2l/copy-overlap"),
    "a host that reads and decodes": ("d2l-gpu-workstation", "d2l/data-loading"),
    "ranks that come late": (FOUR, SKEWED),
    "a training": ("p3.16xlarge", "resnet50-dp"),
}


def run(name: str) -> TracedRun:
    machine, workload = CASES[name]
    return run_of(hwsim.simulate(machine, workload, expect=False, fold="never"))


def written(run: TracedRun, tool: str, folder: Path) -> list[Path]:
    for name, chunks in files(tool, run).files.items():
        (folder / name).write_bytes(b"".join(chunks))
    return sorted(folder.iterdir())


def spans(recording: Recording, rank: int) -> list[tuple[int, int]]:
    slices = next(recorded_rank for recorded_rank in recording.ranks if recorded_rank.number == rank).slices
    columns = (slices.what.tolist(), slices.start.tolist(), slices.end.tolist())
    return sorted((start, end) for what, start, end in zip(*columns, strict=True) if what in WORK)


@pytest.mark.parametrize("tool", ["kineto", "chakra"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "a training"])
def test_what_is_written_is_read_as_the_run_to_the_femtosecond(name: str, tool: str, tmp_path: Path) -> None:
    given = run(name)
    recording = read(tool, written(given, tool, tmp_path))
    assert [rank.number for rank in recording.ranks] == list(range(given.world))
    for rank in range(given.world):
        own = [span for span in given.slices.all if given.ranks[span.track] == rank]
        assert spans(recording, rank) == sorted((span.start, span.end) for span in own)


def test_ranks_keep_their_waiting(tmp_path: Path) -> None:
    given = run("ranks that come late")
    waiting = defaultdict(list)
    for number, span in enumerate(given.slices.all):
        if number in given.slices.members:
            waiting[given.ranks[span.track]].append(span.waiting / 1e12)
    assert [round(waits[0]) for _, waits in sorted(waiting.items())] == [9, 6, 3, 0]
    [first, *_] = [json.loads(gzip.decompress(b"".join(chunks))) for chunks in files("kineto", given).files.values()]
    nccl = [event for event in first["traceEvents"] if event["name"].startswith("nccl")]
    assert [event["args"]["Collective name"] for event in nccl] == ["allreduce", "_allgather_base"]
    assert [event["args"]["In msg nelems"] for event in nccl] == [16_000_000, 2_000_000]
    assert {event["args"]["Process Group Ranks"] for event in nccl} == {"[0, 1, 2, 3]"}


def events(given: TracedRun, rank: int = 0) -> list[dict[str, Any]]:
    data = gzip.decompress(b"".join(files("kineto", given).files[f"rank{rank}.json.gz"]))
    found: list[dict[str, Any]] = json.loads(data, parse_float=Decimal)["traceEvents"]
    return found


@pytest.mark.parametrize("name", CASES)
def test_slices_of_a_thread_nest_and_launches_come_before_what_they_launch(name: str) -> None:
    given = run(name)
    found = [event for event in events(given) if event["ph"] == "X"]
    tracks = defaultdict(list)
    for event in found:
        if event["tid"] != -1 and event["cat"] != "cuda_sync":
            start = Decimal(event["ts"])
            tracks[event["pid"], event["tid"]].append((start, -Decimal(event["dur"])))
    for slices in tracks.values():
        until: list[Decimal] = []
        for start, length in sorted(slices):
            while until and until[-1] <= start:
                until.pop()
            assert not until or start - length <= until[-1]
            until.append(start - length)
    calls = {event["args"]["correlation"]: event for event in found if event["cat"] == "cuda_runtime"}
    on_gpu = [event for event in found if event["cat"] in ("kernel", "gpu_memcpy")]
    late = Decimal(len(on_gpu) * 3) / 10**9  # a program that costs no time launches within femtoseconds
    for event in on_gpu:
        assert Decimal(calls[event["args"]["correlation"]]["ts"]) <= Decimal(event["ts"]) + late
        if event["cat"] == "gpu_memcpy":
            rate = float(event["args"]["memory bandwidth (GB/s)"])
            assert rate == pytest.approx(event["args"]["bytes"] / float(event["dur"]) / 1e3, rel=1e-5)
    for wait in (event for event in found if event["name"] == "Stream Wait Event"):
        record = wait["args"]["wait_on_cuda_event_record_corr_id"]
        assert calls[record]["name"] == "cudaEventRecord"
        before = max(
            (event for event in on_gpu if event["args"]["correlation"] < record), key=lambda event: event["args"]["correlation"]
        )
        assert before["args"]["stream"] == wait["args"]["wait_on_stream"] != wait["args"]["stream"]


def test_streams_are_control_dependencies_and_other_waits_data_of_chakra(tmp_path: Path) -> None:
    recording = read("chakra", written(run("two streams"), "chakra", tmp_path))
    rank = recording.ranks[0]
    assert rank.stated is not None
    names = [rank.lanes[lane].name for lane in rank.slices.lane.tolist()]
    pairs = [(names[before], names[then]) for before, then in zip(rank.stated.before, rank.stated.then, strict=True)]
    assert pairs.count(("gpu.compute", "gpu.d2h")) == 10
    assert pairs.count(("gpu.compute", "gpu.compute")) == pairs.count(("gpu.d2h", "gpu.d2h")) == 9
    assert not recording.left


def test_the_command_says_what_a_tool_has_no_words_for(tmp_path: Path) -> None:
    arguments = ["export", "kineto", "d2l-gpu-workstation", "d2l/data-loading", "-o", str(tmp_path / "out")]
    done = command.hwsim(*arguments)
    assert done.stdout.splitlines()[0] == f"wrote 1 file to {tmp_path / 'out'}: rank0.json.gz"
    assert "x waits between host threads: " in done.stdout
    document = json.loads(command.hwsim(*arguments[:-1], tmp_path / "again", "--json").stdout)
    assert document["hwsim"] == "export/2"
    assert [left["name"] for left in document["omitted"]] == ["waits between host threads"]
    refused = command.hwsim(*arguments, code=2)
    assert "is not empty" in refused.stderr, "no file stays among the new ones"
    refused = command.hwsim(*arguments[:-1], tmp_path / "no" / "out", code=2)
    assert "there is no folder" in refused.stderr


def test_ranks_that_were_folded_are_listed_not_forgotten() -> None:
    folded = hwsim.simulate("dgx-a100", "d2l/bucketed-overlap", expect=False, fold="always")
    [left] = [omission for omission in files("chakra", run_of(folded)).unsaid if omission.name == "ranks"]
    assert left.count == 7


@pytest.mark.parametrize("tool", TOOLS)
def test_a_run_without_a_gpu_is_written(tool: str) -> None:
    given = run_of(hwsim.simulate("d2l-laptop", "d2l/async-loop", expect=False, set={"n": "3"}))
    assert all(b"".join(chunks) for chunks in files(tool, given).files.values())
