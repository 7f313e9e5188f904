"""What the import of a run reports and writes: steps, unexplained delay, collectives, other lengths; the file of a step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.importers.findings import Straggler, find
from hwsim.importers.recording import SliceFacts, What
from hwsim.importers.replay import explain
from hwsim.importers.report import as_dict, text, warnings
from hwsim.importers.steps import one_step
from tests.recorded import US, Row, rank, recording
from tests.test_import_replay import exchange, launched, wait

STEPS = [
    row
    for n in range(3)
    for row in (
        Row(What.MARK, f"ProfilerStep#{n + 4}", "main", 200 * n, 195),
        Row(What.OP, "aten::mm", "main", 200 * n, 12, facts=SliceFacts(shapes=((8, 4), (4, 2)), dtypes=("float", "float"))),
        *launched("gemm", 200 * n + 2, 200 * n + 8, 100 + 10 * n, n + 1),
        Row(What.CALL, "cudaDeviceSynchronize", "main", 200 * n + 20, 95 + 10 * n),
    )
]


def test_steps_have_their_times_and_follow_the_gpu() -> None:
    replay = explain(recording(rank(STEPS)))
    found = find(replay)
    assert [(step.name, time / US) for step, _, time in found.steps] == [(f"ProfilerStep#{n + 4}", 195) for n in range(3)]
    half, double = found.trials
    assert double.step / US == pytest.approx(195 + 110, abs=0.1)  # a mean kernel of 110 us, waited for
    assert half.step / US == pytest.approx(195 - 55, abs=0.1)
    assert found.share < 0.001
    assert {195 * US, 395 * US} <= set(replay.ranks[0].pieces.end.tolist())  # a thread is cut where a step ends


@settings(max_examples=25)
@given(st.integers(50, 1000), st.integers(10, 2000), st.integers(1, 4), st.integers(1, 5))
def test_a_step_takes_as_long_as_the_slower_of_host_and_gpu(host: int, gpu: int, kernels: int, count: int) -> None:
    """A host that never waits marks steps of its own length; the GPU works them off behind it."""
    rows: list[Row] = []
    free = 0
    for step in range(count):
        rows.append(Row(What.MARK, f"ProfilerStep#{step}", "main", host * step, host))
        for number in range(kernels):
            at = host * step + host * number // kernels
            start = max(free, at + 5)
            rows += launched("gemm", at, start, gpu, step * kernels + number + 1)
            free = start + gpu
    found = find(explain(recording(rank(rows))))
    total = (host * count if gpu * kernels <= host else gpu * kernels * count) * US
    for times in ([recorded for _, recorded, _ in found.steps], [replayed for _, _, replayed in found.steps]):
        assert sum(times) == pytest.approx(total, rel=0.1 / count, abs=count * (10 + gpu) * US)
    if gpu * kernels > 2 * host:
        assert found.trials[1].step == pytest.approx(2 * found.steps[-1][2], rel=0.02, abs=20 * US)
    if count > 1 and gpu * kernels > host + gpu:
        assert "busy" in "".join(one_step(found.replay.recording, "1").notes)


def test_one_step_alone() -> None:
    run = recording(rank(STEPS))
    alone = explain(one_step(run, "5"))
    assert int(alone.is_gpu.sum()) == 1
    assert alone.recorded_end.max() == 125 * US
    with pytest.raises(ValueError, match="the steps are: 4, 5, 6"):
        one_step(run, "9")


def test_collectives_are_split_where_all_ranks_are_there() -> None:
    ranks = [
        rank([*launched("gemm", 0, 6, long, 1), *wait(long), *exchange(9, long + 30, 380)], n)
        for n, long in enumerate((100, 300))
    ]
    both, alone = find(explain(recording(*ranks))), find(explain(recording(ranks[0])))
    assert both.straggler == Straggler(1, 1, 200 * US)
    assert both.gpu_time["exposed communication"] == pytest.approx(300 / 760, abs=0.02)
    (row,) = both.traffic
    assert (row.kernels / US, row.waiting / US, row.transfer / US) == (300, 200, 100)
    (row,) = alone.traffic
    assert (row.kernels / US, row.waiting, row.transfer) == (250, -1, -1)
    assert "0 to 250 us" in "\n".join(text(alone))


def test_a_report_lists_what_has_no_launch_and_what_is_unexplained() -> None:
    rows = [*launched("late", 0, 400, 10, 1), Row(What.KERNEL, "before the window", "9", 0, 50, 77)]
    found = find(explain(recording(rank(rows))))
    words = "\n".join(text(found))
    assert "unmapped       1 GPU ops, 83.3 % of GPU time: no launch in the file" in words
    assert "before 1 x late" in words
    assert "do not rely on what-ifs" in "".join(warnings(found))
    document = as_dict(found)
    assert document["unexplained"][0] == {"name": "late", "op": "", "count": 1, "delay_s": pytest.approx(393e-6, abs=2e-6)}
    assert document["unexplained_share"] == pytest.approx(393 / 410, abs=0.01)


def test_a_stream_that_was_busy_before_the_recording_is_said() -> None:
    found = find(explain(recording(rank([*launched("gemm", 0, 5000, 100, 1), *launched("next", 100, 5101, 100, 2)]))))
    assert [(row.count, row.time / US) for row in found.unmapped if "not in the file" in row.why] == [(1, 100)]
