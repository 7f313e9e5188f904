"""Replays of recordings: exact ones give the recorded times, rules give what is known without them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim.engine
from hwsim.importers.formats import read
from hwsim.importers.recording import RecordedCollective, SliceFacts, What
from hwsim.importers.replay import RecordingReplay, ReplayOpKind, explain
from hwsim.ticks import FEMTO
from tests.recorded import US, Row, rank, recording


def ends(replay: RecordingReplay) -> dict[tuple[int, int], int]:
    """End (fs) of every op that a slice is, by rank and slice."""
    line = hwsim.engine.simulate(replay.graph)
    chosen = replay.is_gpu
    keys = zip(replay.rank[chosen].tolist(), replay.slice[chosen].tolist(), strict=True)
    return dict(zip(keys, line.end[chosen].tolist(), strict=True))


def end_of(replay: RecordingReplay, name: str, times: float = 1.0) -> float:
    """us at which the last op of a name ends, with GPU ops so many times as long."""
    line = hwsim.engine.simulate(replay.scaled(times))
    label = np.array([op_label.name == name for op_label in replay.graph.labels])[replay.graph.blocks[0].label]
    return float(line.end[label].max()) / US


def launched(name: str, at: float, start: float, long: float, link: int, stream: str = "7", thread: str = "main") -> list[Row]:
    """A launch of 5 us and its kernel."""
    return [Row(What.CALL, "cudaLaunchKernel", thread, at, 5, link), Row(What.KERNEL, name, stream, start, long, link)]


def random_rows(seed: int) -> list[Row]:
    """A run that breaks no law of CUDA: streams in order, no kernel before its call, calls that block, two threads."""
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    free = {"7": 0.0, "9": 0.0}
    link = 0
    for thread, time in (("main", 0.0), ("autograd", 40.0)):
        for _ in range(int(random.integers(1, 12))):
            time += float(random.integers(0, 50))
            link += 1
            stream = str(random.choice(["7", "9"]))
            call = float(random.integers(3, 9))
            start = max(time + float(random.integers(2, 30)), free[stream] + float(random.integers(0, 3)))
            long = float(random.integers(1, 60))
            free[stream] = start + long
            rows += [
                Row(What.OP, f"aten::op{link % 5}", thread, time, call + 3),
                Row(What.CALL, "cudaLaunchKernel", thread, time + 1, call, link),
                Row(What.KERNEL, f"k{link % 5}", stream, start, long, link),
            ]
            time += call + 3
            kind = random.integers(0, 4)
            if kind == 0:
                stop = max(*free.values(), time) + 2
                rows.append(Row(What.CALL, "cudaDeviceSynchronize", thread, time, stop - time))
                time = stop
            elif kind == 1:
                rows.append(Row(What.CALL, "cudaEventRecord", thread, time, 1))
                rows.append(Row(What.CALL, "cudaStreamWaitEvent", thread, time + 1, 1))
                time += 2
    return rows


@given(st.integers(0, 10**6), st.integers(0, 40))
@settings(max_examples=40)
def test_an_exact_replay_gives_the_recorded_times(seed: int, ahead: int) -> None:
    """Also where a GPU's clock is ahead, so that its ops seem to start before their launch."""
    ranks = [rank([row._replace(start=row.start + 40 - ahead * (row.what == What.KERNEL)) for row in random_rows(seed + n)], n)
             for n in range(2)]  # fmt: skip
    replay = explain(recording(*ranks), "exact")
    line = hwsim.engine.simulate(replay.graph)
    known = replay.recorded_end >= 0
    assert np.array_equal(line.end[known], replay.recorded_end[known])
    assert np.array_equal(line.start[replay.is_gpu], replay.recorded[replay.is_gpu] + replay.waited[replay.is_gpu])


@given(st.integers(0, 10**6), st.sampled_from([0.25, 0.5, 1.0, 3.0]))
@settings(max_examples=40)
def test_no_op_starts_before_its_call_and_a_stream_keeps_its_order(seed: int, times: float) -> None:
    one = rank(random_rows(seed))
    replay = explain(recording(one))
    line = hwsim.engine.simulate(replay.scaled(times))
    gpu, calls = np.flatnonzero(replay.is_gpu), replay.ranks[0].linked.call
    host = {int(replay.slice[op]): op for op in np.flatnonzero(replay.part == ReplayOpKind.HOST)}
    for op in gpu.tolist():
        assert line.start[op] >= line.start[host[int(calls[replay.slice[op]])]]
    for stream in np.unique(one.slices.lane[replay.slice[gpu]]).tolist():
        mine = gpu[one.slices.lane[replay.slice[gpu]] == stream]
        mine = mine[np.argsort(replay.recorded[mine])]
        assert (line.start[mine[1:]] >= line.end[mine[:-1]]).all()


def test_a_chain_of_kernels_takes_as_long_as_its_kernels() -> None:
    rows = [row for n in range(20) for row in launched("k", 10 * n, 6 if n == 0 else 6 + 101 * n, 100, n)]
    replay = explain(recording(rank([*rows, Row(What.CALL, "cudaDeviceSynchronize", "main", 200, 1830)])))
    assert end_of(replay, "k") == pytest.approx(6 + 20 * 100 + 19)
    assert end_of(replay, "k", 3) == pytest.approx(6 + 20 * 300 + 19)
    assert end_of(replay, "cudaDeviceSynchronize", 3) == pytest.approx(6 + 20 * 300 + 19 + 2030 - 2025)
    assert end_of(replay, "k", 0.01) == pytest.approx(190 + 6 + 1)  # the host is in the way


@pytest.mark.parametrize("stated", [False, True])
def test_a_stream_waits_for_an_event(stated: bool) -> None:
    rows = [
        *launched("copy", 0, 6, 200, 1, "9"),
        Row(What.CALL, "cudaEventRecord", "main", 10, 1, 2),
        Row(What.CALL, "cudaStreamWaitEvent", "main", 12, 1, 3),
        *launched("gemm", 20, 208, 50, 4, "7"),
    ]
    if stated:
        event = SliceFacts(waits_on_stream=9, waits_on_link=2, kind="Stream Wait Event")
        rows.append(Row(What.WAIT, "Stream Wait Event", "7", 13, 190, 3, event))
    replay = explain(recording(rank(rows)))
    assert end_of(replay, "gemm", 2) == pytest.approx(6 + 400 + 100)
    assert replay.unexplained.max() <= 2 * US
    assert (len(replay.ranks[0].waits.named), replay.ranks[0].waits.guessed) == ((1, 0) if stated else (0, 1))


@pytest.mark.parametrize("has_wait", [True, False])
def test_an_event_recorded_long_before_is_found_by_the_end_of_its_op(has_wait: bool) -> None:
    """As NCCL's work.wait(): the event is recorded right after the collective's launch, other launches follow before the wait."""
    rows = [
        *launched("nccl", 0, 6, 900, 1, "9"),
        *launched("gemm", 20, 26, 50, 2, "7"),
        *([Row(What.CALL, "cudaStreamWaitEvent", "main", 40, 1, 3)] if has_wait else []),
        *launched("update", 50, 908, 50, 4, "7"),
    ]
    replay = explain(recording(rank(rows)))
    assert end_of(replay, "update", 2) == pytest.approx(6 + 1800 + 100 if has_wait else 26 + 100 + 1 + 100, abs=2)
    assert (replay.unexplained.max() <= 2 * US) == has_wait


def test_what_no_rule_explains_is_counted_and_not_replayed() -> None:
    replay = explain(recording(rank([*launched("k", 0, 6, 10, 1), *launched("late", 10, 500, 10, 2)])))
    late = replay.unexplained[replay.is_gpu]
    assert late.tolist() == [0, (500 - 17) * US]
    assert end_of(replay, "late") == pytest.approx(17 + 10)


def test_an_idle_thread_goes_on_where_another_one_ends() -> None:
    rows = [
        Row(What.OP, "forward", "main", 0, 20),
        Row(What.OP, "backward", "autograd", 25, 300),
        Row(What.CALL, "cudaStreamSynchronize", "autograd", 100, 220),
        *launched("k", 30, 40, 275, 1, thread="autograd"),
        Row(What.OP, "optimizer", "main", 330, 20),
    ]
    replay = explain(recording(rank(rows)))
    assert end_of(replay, "optimizer") == pytest.approx(350, abs=6)
    assert end_of(replay, "optimizer", 2) == pytest.approx(350 + 275, abs=6)


def exchange(number: int, start: float, end: float, facts: SliceFacts | None = None) -> list[Row]:
    said = facts or SliceFacts(collective=RecordedCollective("allreduce", 1000, 1000, "fp32"))
    call = Row(What.CALL, "cudaLaunchKernel", "main", start - 6, 5, number)
    return [call, Row(What.KERNEL, "ncclKernel_AllReduce", "20", start, end - start, number, said)]


def test_a_slow_rank_is_what_the_others_wait_for() -> None:
    """Rank 1 computes 300 us, the others 100: all leave the exchange together, and only its kernel matters."""
    ranks = [
        rank([*launched("gemm", 0, 6, long, 1), *wait(long), *exchange(9, long + 30, 380 + n)], n)
        for n, long in enumerate((100, 300, 100))
    ]
    replay = explain(recording(*ranks))
    assert len(replay.meetings) == 1
    waited = replay.waited[replay.part == ReplayOpKind.COLLECTIVE] / US
    assert waited.tolist() == [200, 0, 200]
    whole = explain(recording(*ranks), "exact")
    assert sorted(ends(whole).values())[-3:] == [380 * US, 381 * US, 382 * US]
    slower = hwsim.engine.simulate(replay.scaled(1.0, {"gemm": 2.0}))
    assert slower.makespan * FEMTO / US == pytest.approx(382 + 300, abs=10)


def wait(long: float) -> list[Row]:
    return [Row(What.CALL, "cudaDeviceSynchronize", "main", 8, long)]


def share(replay: RecordingReplay) -> float:
    """Delay before GPU ops that no rule explains, of the time of all ranks."""
    late = replay.unexplained[replay.is_gpu].sum()
    return float(late / replay.recorded_end.max() / len(replay.ranks))


@pytest.mark.parametrize(
    "name",
    [*(f"dlrm_V100x8_rank{number}" for number in range(8)), "hta_A100_ddp_2rank_nccl_r0", "hta_A100_event_sync_multistream",
     "param_RTX2080Ti_resnet"],
)  # fmt: skip
def test_rules_explain_real_traces(name: str, reference_data: Path) -> None:
    replay = explain(read("kineto", [reference_data / "traces" / "gpu" / f"{name}.json.gz"]))
    line = hwsim.engine.simulate(replay.graph)
    assert share(replay) < 0.02
    assert line.makespan_fs == pytest.approx(int(replay.recorded_end.max()), rel=0.005)


def test_rules_explain_eight_ranks(reference_data: Path) -> None:
    files = sorted((reference_data / "traces" / "gpu").glob("dlrm_V100x8_rank*.json.gz"))
    run = read("kineto", files)
    replay = explain(run)
    assert len(replay.meetings) == 8
    assert share(replay) < 0.05
    exact = explain(run, "exact")
    line = hwsim.engine.simulate(exact.graph)
    known = exact.recorded_end >= 0
    assert np.array_equal(line.end[known], exact.recorded_end[known])


CALLS = ("LaunchKernel", "MemcpyAsync", "DeviceSynchronize", "StreamSynchronize", "StreamWaitEvent", "EventRecord")


def nonsense(seed: int) -> list[Row]:
    """Kernels that overlap on a stream, calls inside calls, numbers twice, launches after their kernels."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(int(random.integers(1, 31))):
        start, long, link = (int(random.integers(0, most)) for most in (400, 300, 12))
        thread, stream = str(random.choice(["a", "b"])), str(random.choice(["7", "9"]))
        call, copy = f"cuda{random.choice(CALLS)}", "Memcpy DtoH (Device -> Pageable)"
        rows.append(
            (
                Row(What.OP, "aten::mm", thread, start, long // 5),
                Row(What.CALL, call, thread, start, long, link),
                Row(What.KERNEL, "k", stream, start, long // 3, link),
                Row(What.COPY, copy, stream, start, long // 3, link),
            )[int(random.integers(0, 4))]
        )
    return rows


@given(st.integers(0, 10**6))
@settings(max_examples=40)
def test_whatever_a_file_holds_is_replayed_as_it_was(seed: int) -> None:
    replay = explain(recording(rank(nonsense(seed)), rank(nonsense(seed + 1), 1)), "exact")
    line = hwsim.engine.simulate(replay.graph)
    gpu = replay.is_gpu
    ends = [replay.recording.ranks[r].slices.end[s] for r, s in zip(replay.rank[gpu], replay.slice[gpu], strict=True)]
    assert (np.abs(line.end[gpu] - np.array(ends, np.int64)) <= US).all()  # whole microseconds: within the clock's resolution
    hwsim.engine.simulate(replay.again("rules").scaled(0.5))
