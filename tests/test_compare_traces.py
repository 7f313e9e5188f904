"""Runs beside recordings: places of the time that add up, ops that meet by name and by kind of work, and the command."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.api import simulated
from hwsim.comparing.recorded import sides
from hwsim.comparing.recorded.against import AgainstTrace, against
from hwsim.comparing.recorded.compared_run import ComparedRun
from hwsim.comparing.recorded.time_categories import TimeCategory
from hwsim.importers.formats import read
from hwsim.importers.recording import RecordedCollective, SliceFacts, What
from hwsim.spec.library import library_root
from tests.command import hwsim
from tests.recorded import US, Row, rank, recording
from tests.test_import_replay import random_rows

SUM = SliceFacts(collective=RecordedCollective("allreduce", 1000, 1000, "fp32", (0, 1), 2, "all"))
LENET = ("d2l-4gpu-pcie", "d2l/multi-gpu-lenet")


def micro(played: ComparedRun, name: str) -> dict[str, float]:
    """Places of a device's time in us."""
    spent = next(device.spent for device in played.devices if device.name == name)
    return {where.words: time / US for where, time in spent.items() if time}


def beside(traced: Path, settings: dict[str, str]) -> AgainstTrace:
    first, run = sides.of_recording(read("kineto", [traced])), simulated(*LENET, set=settings)
    return against(first, sides.of_run(run, sides.turns_of(run, first)))


def one(late: float = 0.0) -> list[Row]:
    """A product at 10 us, a sum over the ranks from 40 us on, and a copy that the host waits 25 us to launch."""
    return [
        Row(What.OP, "aten::mm", "main", late, 8),
        Row(What.CALL, "cudaLaunchKernel", "main", late + 1, 5, 1),
        Row(What.KERNEL, "sgemm", "7", late + 10, 30, 1),
        Row(What.CALL, "cudaLaunchKernel", "main", late + 10, 5, 2),
        Row(What.KERNEL, "ncclAllReduce", "7", late + 40, 100 - late, 2, SUM),
        Row(What.CALL, "cudaMemcpyAsync", "main", 165, 5, 3),
        Row(What.COPY, "Memcpy DtoH (Device -> Pinned)", "7", 175, 10, 3),
        Row(What.CALL, "cudaDeviceSynchronize", "main", 170, 16),
    ]


def test_the_places_of_a_recording_are_what_it_was_made_of() -> None:
    """Rank 1 is 60 us late: rank 0 waits for it, and each place has its microseconds."""
    played = sides.of_recording(recording(rank(one()), rank(one(60), 1)))
    first, second = (micro(played, f"rank{number}.gpu0") for number in (0, 1))
    assert played.makespan_fs == 186 * US
    assert (first["kernels"], second["kernels"]) == (30, 30)
    assert first["waiting"] == 60
    assert "waiting" not in second
    assert first["transfer"] == second["transfer"] == 40 + 10
    assert sum(first.values()) == sum(second.values()) == 186
    assert second["not recorded"] == 60
    assert {key: time for key, time in second.items() if key != "not recorded"} == {
        key: time for key, time in first.items() if key != "waiting"
    }


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_places_add_up_to_the_run_along_the_path_and_on_every_gpu(seed: int) -> None:
    played = sides.of_recording(recording(rank(random_rows(seed)), rank(random_rows(seed + 1), 1)))
    assert sum(played.path.values()) == played.makespan_fs
    assert [sum(gpu.spent.values()) for gpu in played.devices] == [played.makespan_fs] * len(played.devices)
    of_device = {name: number for number, name in enumerate(played.device_names)}
    for device in played.devices:  # the time in which kernels run, counted in another way
        mine = (played.spans.device == of_device[device.name]) & (played.spans.place == TimeCategory.KERNELS)
        ticks = np.zeros(played.makespan_fs // (US // 10) + 1, bool)
        for begin, end in zip(played.spans.begin[mine].tolist(), played.spans.end[mine].tolist(), strict=True):
            ticks[begin // (US // 10) : end // (US // 10)] = True
        assert device.spent[TimeCategory.KERNELS] == pytest.approx(int(ticks.sum()) * (US // 10))


def test_a_recording_beside_itself_differs_in_nothing_and_swapped_in_the_opposite() -> None:
    fast, slow = (sides.of_recording(recording(rank(one(late)), rank(one(), 1))) for late in (0, 30))
    same = against(fast, fast)
    assert same.error == 0
    assert all(row.first == row.second for row in (*same.causes, *same.of_gpu))
    assert all(pair.error == 0 for pair in same.ops)
    there, back = against(fast, slow), against(slow, fast)
    assert {row.where: row.second - row.first for row in there.of_gpu} == {
        row.where: row.first - row.second for row in back.of_gpu
    }


# ---- a run's own trace


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a run of ten steps, in the form of PyTorch's profiler."""
    path = tmp_path_factory.mktemp("trace") / "own.json.gz"
    hwsim("simulate", *LENET, "--trace", str(path), "--quiet")
    return path


def test_a_run_beside_its_own_trace_differs_in_nothing_but_launches(traced: Path) -> None:
    both = beside(traced, {})
    assert both.error == 0
    assert both.is_inside
    assert both.first.steps == both.second.steps == 10
    assert both.first.path[TimeCategory.KERNELS] == both.second.path[TimeCategory.KERNELS]
    assert len(both.ops) > 20
    assert all(pair.error == pytest.approx(0, abs=1e-9) for pair in both.ops)
    assert {pair.name for pair in both.families} == {"convolutions", "pooling", "matrix products", "optimizer"}


def test_the_command_takes_a_run_and_two_traces(traced: Path, tmp_path: Path) -> None:
    said = hwsim("compare", *LENET, traced, "--plot", tmp_path / "a.png")
    assert "+0.0 %: recorded 1.43 ms, simulated 1.43 ms per step" in said.stdout
    assert (tmp_path / "a.png").stat().st_size > 10_000
    document = json.loads(hwsim("compare", *LENET, traced, "--json").stdout)
    assert document["hwsim"] == "compare-trace/2"
    assert sum(document["first"]["path_fs"].values()) == document["first"]["makespan_fs"]
    (tmp_path / "ranks").mkdir()
    for number in range(2):
        (tmp_path / "ranks" / f"{number}.json.gz").write_bytes(traced.read_bytes())
    assert hwsim("compare", traced, tmp_path / "ranks", code=None).exit_code in (
        0,
        2,
    )  # two files of one rank are refused, or taken as two
    two = hwsim("compare", traced, traced)
    assert "+0.0 %: A 1.43 ms, B 1.43 ms per step" in two.stdout


def test_an_import_is_compared_with_its_own_recording(traced: Path, tmp_path: Path) -> None:
    step = tmp_path / "step.npz"
    hwsim("import", "kineto", str(traced), "-o", str(step), "--gpu-times", "2")
    document = json.loads(hwsim("compare", step, traced, "--json").stdout)
    rows = {row["place"]: row for row in document["gpu"]}
    assert rows["kernels"]["second_s"] == pytest.approx(2 * rows["kernels"]["first_s"])
    assert {round(pair["error"], 6) for pair in document["ops"]} == {1.0}


def test_a_prediction_is_compared_with_its_interval(tmp_path: Path) -> None:
    """Written and read again, a prediction has the errors of its formulas, so that it can say how sure it is."""
    files = sorted((library_root() / "workloads" / "profiles" / "mlp").iterdir())
    hwsim("import", "kineto", *files, "--machine", "dgx-a100", "-o", tmp_path / "step.npz")
    document = json.loads(hwsim("compare", tmp_path / "step.npz", *files, "--json").stdout)
    assert document["inside_interval"] is True
    assert document["second"]["interval"]["low_s"] < document["second"]["makespan_s"]
    assert [device["name"] for device in document["second"]["devices"]] == ["rank0.gpu0", "rank1.gpu0"]
    work = {pair["name"]: pair["error"] for pair in document["work"]}
    assert {"matrix products", "collectives", "elementwise"} <= work.keys()
    assert all(abs(work[name]) < 0.3 for name in ("matrix products", "collectives", "elementwise"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["TRACE", "TRACE", "--set", "n=3"], "--set cannot change a recording"),
        ([*LENET, "TRACE", "--by", "step"], "--by cannot be combined with a trace"),
        (["d2l-laptop", "TRACE"], "nothing to compare"),
        ([*LENET, "EMPTY"], "no file in the folder"),
        ([*LENET, "CUT"], "CUT"),
        ([*LENET, "BARE"], "no known event in the file"),
    ],
)
def test_mistakes_say_what_is_accepted(traced: Path, tmp_path: Path, arguments: Sequence[str], said: str) -> None:
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "CUT.json").write_bytes(gzip.decompress(traced.read_bytes())[:20_000])
    (tmp_path / "BARE.json").write_text('{"traceEvents": []}', "utf-8")
    files = {"TRACE": traced, "EMPTY": tmp_path / "EMPTY", "CUT": tmp_path / "CUT.json", "BARE": tmp_path / "BARE.json"}
    done = hwsim("compare", *(files.get(argument, argument) for argument in arguments), code=2)
    assert said in done.output


# ---- recordings of real runs


@pytest.mark.parametrize("name", ["hta_A100_ddp_2rank_nccl_r0", "hta_A100_event_sync_multistream", "hta_sampled_128rank_r0"])
def test_places_of_real_recordings_add_up(reference_data: Path, name: str) -> None:
    played = sides.of_recording(read("kineto", [reference_data / "traces" / "gpu" / f"{name}.json.gz"]))
    for spent in (played.path, *(device.spent for device in played.devices)):
        assert sum(spent.values()) == played.makespan_fs


def test_ranks_of_a_real_job_wait_for_the_last_one(reference_data: Path) -> None:
    files = [reference_data / "traces" / "gpu" / f"dlrm_V100x8_rank{number}.json.gz" for number in range(8)]
    played = sides.of_recording(read("kineto", files))
    assert len(played.devices) == 8
    both: AgainstTrace = against(played, played)
    waits = [device.spent[TimeCategory.WAITING] for device in played.devices]
    assert max(waits) > 5 * min(waits)
    assert sum(played.ops[name].wait_s for name in played.ops) > 0.03
    assert "rank7.gpu7" in both.text(every=True)


def test_marks_that_are_not_the_run_are_said() -> None:
    rows = [Row(What.OP, "aten::mm", "main", start, 20) for start in (0, 310, 410)]
    marked = [*rows, *(Row(What.MARK, f"ProfilerStep#{number}", "main", 200 + 100 * number, 100) for number in (1, 2))]
    assert any("takes 100 us, the whole run 215 us" in note for note in sides.of_recording(recording(rank(marked))).notes)
    assert not sides.of_recording(recording(rank(rows))).notes
