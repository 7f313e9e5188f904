"""Is the GPU starving, and on what: the time in which a pipeline's last stage does nothing, told exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.pipeline.starvation import CHECKPOINTS, OTHERS, buffers, epoch_s, pipelines
from hwsim.results.result import Result
from hwsim.spec import SpecError
from tests.test_pipeline import MACHINE, US, busy, reading, workload


def run(stages: list[Any], **keys: Any) -> Result:
    return hwsim.simulate(MACHINE, workload(stages, **keys))


def idle_by_hand(result: Result, name: str) -> int:
    """From the start of the run to the end of the last op of that name, the time in which none of them runs."""
    spans = sorted((round(op.start_s * 1e15), round(op.end_s * 1e15)) for op in result.ops if op.name == name)
    reached = idle = 0
    for start, end in spans:
        idle += max(0, start - reached)
        reached = max(reached, end)
    return idle


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=4), st.integers(1, 30))
def test_the_causes_add_up_to_the_idle_time_exactly(line: list[tuple[int, int, int]], batches: int) -> None:
    stages = [busy(f"s{n}", time, ahead=ahead, at_once=workers) for n, (time, ahead, workers) in enumerate(line)]
    result = run([*stages, busy("train", 20)], batches=batches)
    (found,) = pipelines(result.timeline)
    assert found.whole.idle_fs == idle_by_hand(result, "train") == sum(wait.time_fs for wait in found.whole.waits)
    assert found.whole.time_fs - found.whole.idle_fs == batches * 20 * US == found.whole.stages[-1].busy_fs


@pytest.mark.parametrize(("keys", "seconds"), [({"dataset": {"samples": 100_000, "bytes": "1 kB"}}, 0.4), ({}, 0.0012)])
def test_an_epoch_is_a_pass_over_the_data(keys: dict[str, Any], seconds: float) -> None:
    """5,000 batches of 20 at 80 us, however few are simulated; of unknown data, over the batches that there are."""
    result = run([busy("load", 80, ahead=2), busy("train", 20)], batches=15, batch=20, **keys)
    assert epoch_s(pipelines(result.timeline)) == pytest.approx(seconds, rel=1e-9)


@pytest.mark.parametrize(("slow", "time"), [("read", 50), ("decode", 35), ("copy", 40)])
def test_only_the_bottleneck_is_blamed_once_the_pipeline_runs(slow: str, time: int) -> None:
    stages = [busy(name, time if name == slow else 12) for name in ("read", "decode", "copy")]
    (found,) = pipelines(run([*stages, busy("train", 20)], batches=200, ahead=2).timeline)
    (steady,) = found.epochs
    assert [wait.name for wait in steady.waits] == [slow]
    assert steady.idle_fs == steady.batches * (time - 20) * US
    assert steady.slowest[0].name == slow
    assert steady.slowest[1].name == "train"


def test_a_stage_that_sets_the_pace_waits_for_nothing() -> None:
    (found,) = pipelines(run([busy("read", 10), busy("train", 20)], batches=100).timeline)
    assert found.epochs[0].waits == ()
    assert found.epochs[0].busy == pytest.approx(1)
    assert found.whole.waits == (("read", "cpu", 10 * US),)  # before the first batch


def test_each_epoch_has_its_own_bottleneck() -> None:
    stages = [{"read": {"from": "disk", "depth": 4}}, busy("decode", 3000), busy("train", 2000)]
    data = {"samples": 20_000, "bytes": "100 kB"}
    result = run(stages, batch=100, epochs=2, dataset=data, cache={"bytes": "64 GB"}, ahead=4)
    (found,) = pipelines(result.timeline)
    first, second = ([wait.name for wait in phase.waits] for phase in found.epochs)
    assert first == ["read"]
    assert second == ["decode"]
    assert "epoch 2        33300 samples/s" in str(result)


def data_parallel(**keys: Any) -> dict[str, Any]:
    stages = [
        busy("decode", 30),
        {"copy": {"from": "cpu", "to": "$self", "bytes": "16 kB"}},
        {
            "name": "train",
            "do": [
                {"busy": {"name": "compute", "device": "$self", "time": "(20 + 5 * $rank) * 1 us"}},
                {"allreduce": {"among": "gpu*", "bytes": "1.6 MB"}},
            ],
        },
    ]
    return workload(stages, each="gpu*", batches=40, batch=8, **keys)


def test_who_is_done_early_waits_for_the_others() -> None:
    result = hwsim.simulate(MACHINE, data_parallel())
    found = pipelines(result.timeline)
    assert [pipeline.program for pipeline in found] == ["gpu0", "gpu1", "gpu2", "gpu3"]
    assert {pipeline.epochs[0].batches for pipeline in found} == {20}
    waits = [sum(wait.time_fs for wait in pipeline.epochs[0].waits if wait.name == OTHERS) for pipeline in found]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] == 20 * 15 * US
    assert waits[3] == 0
    assert len({pipeline.epochs[0].rate for pipeline in found}) == 1
    assert "at least 92 % (gpu0)" in str(result)


def test_readers_of_one_file_system_share_it() -> None:
    stages = [{"read": {"from": "disk", "bytes": "1 MB"}}, {"busy": {"name": "train", "device": "$self", "time": "2 ms"}}]
    alone = pipelines(hwsim.simulate(MACHINE, workload(stages, each="gpu0", batches=50)).timeline)[0]
    four = pipelines(hwsim.simulate(MACHINE, workload(stages, each="gpu*", batches=50)).timeline)
    assert alone.epochs[0].busy == pytest.approx(1)
    assert [pipeline.epochs[0].busy for pipeline in four] == pytest.approx([0.5] * 4)
    assert all(wait.name == "read" for pipeline in four for wait in pipeline.epochs[0].waits)


def test_a_training_is_a_stage() -> None:
    stages = [busy("decode", 100), {"train": {"model": {"kind": "mlp", "units": [784, 256, 10]}, "dtype": "fp32"}}]
    result = run(stages, batches=6, batch=64)
    (found,) = pipelines(result.timeline)
    alone = hwsim.simulate(MACHINE, {"hwsim": "workload/1", "train": {**stages[1]["train"], "global_batch": 64, "steps": 1}})
    assert result.timeline.makespan_fs == pytest.approx(100 * US + 6 * alone.timeline.makespan_fs, rel=1e-6)
    assert found.whole.batches == 6
    assert found.whole.idle_fs + found.whole.stages[-1].busy_fs == found.whole.time_fs
    assert found.device == "gpu0"


def test_steps_and_batches_of_a_training_stage_are_the_pipelines() -> None:
    for keys, said in (({"steps": 3}, "one step per batch"), ({"global_batch": 7}, "expected the 64 samples per step")):
        stages = [busy("decode", 100), {"train": {"model": "resnet-18", **keys}}]
        with pytest.raises(SpecError, match=said):
            run(stages, batches=6, batch=64)


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"busy": {"device": "cpu", "time": "1 s"}, "copy": {}}, "busy and copy at once"),
        ({"busy": {"device": "cpu", "time": "1 s"}, "at_once": 0}, "0 is below the minimum of 1"),
        ({"at_once": 2}, "expected a stage with one op"),
        ("busy", "expected a stage with one op"),
        ({"bussy": {"device": "cpu", "time": "1 s"}}, "there is no op 'bussy'"),
        ({"busy": {"device": "cpu", "time": "1 s", "queue": "x"}}, "a stage has no 'queue'"),
        ({"busy": {"device": "xpu", "time": "1 s"}}, "there is no part"),
        ({"do": [{"busy": {"device": "cpu", "time": "1 s"}}, "wait"]}, "expected an op with one key"),
        ({"allreduce": {"among": "gpu*", "bytes": "1 MB", "overlaps": "x"}}, "`overlaps` has no effect in a pipeline"),
    ],
)
def test_what_is_wrong_with_a_stage_is_said(stage: Any, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        run([stage], batches=2)


def test_runs_of_hours_are_told_exactly() -> None:
    result = run([busy("read", 3e10), busy("train", 2e10)], batches=3)  # beyond what an int64 of femtoseconds holds
    (found,) = pipelines(result.timeline)
    assert result.timeline.end.dtype == np.dtype(object)
    assert found.whole.waits == (("read", "cpu", 5 * 10**10 * US),)


def test_buffers_fill_before_the_bottleneck_and_stay_empty_behind_it() -> None:
    result = run([busy("read", 10), busy("decode", 30), busy("copy", 5), busy("train", 20)], batches=100, ahead=3)
    first, second, third = buffers(result.timeline)
    assert [(buffer.before, buffer.then) for buffer in (first, second, third)] == [
        ("read", "decode"),
        ("decode", "copy"),
        ("copy", "train"),
    ]
    assert max(first.level) == first.room == 3
    assert max(second.level) == max(third.level) == 0
    assert first.level[-1] == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(1, 3)), min_size=2, max_size=4))
def test_no_buffer_holds_more_than_there_is_room_for_and_one_in_each_hand(line: list[tuple[int, int, int]]) -> None:
    stages = [busy(f"s{n}", time, ahead=ahead, at_once=workers) for n, (time, ahead, workers) in enumerate(line)]
    for buffer, (_, ahead, _), (_, _, next_workers) in zip(
        buffers(run(stages, batches=40).timeline), line, line[1:], strict=False
    ):
        assert min(buffer.level) >= 0
        assert max(buffer.level) <= ahead + next_workers


def test_the_buffers_can_be_drawn(tmp_path: Path) -> None:
    result = hwsim.simulate(MACHINE, reading("1 GB", epochs=2))
    assert result.plot("queues", tmp_path / "queues.svg").read_text(encoding="utf-8").count("read -&gt; train") == 1


# ---- who sets the pace is what was measured: the sentences never contradict each other


def test_workers_that_ahead_keeps_idle_set_the_pace_and_are_warned_of() -> None:
    told = run([busy("decode", 90, at_once=32, ahead=8), busy("train", 4)], batches=400)
    (steady,) = pipelines(told.timeline)[0].epochs
    first, then = steady.slowest
    assert (first.name, first.in_flight) == ("decode", 9)
    assert steady.rate == pytest.approx(first.rate, rel=0.1)
    assert then.name == "train"
    assert any("at_once: 32 exceeds the limit of `ahead`: at most 9" in warning.text for warning in told.warnings)


def test_as_many_workers_as_ahead_allows_are_not_warned_of() -> None:
    told = run([busy("decode", 90, at_once=9, ahead=8), busy("train", 4)], batches=40)
    assert not any("at_once" in warning.text for warning in told.warnings)


def test_checkpoints_may_set_the_pace() -> None:
    stages = [busy("load", 500), {"busy": {"name": "train", "device": "gpu0", "time": "1 ms"}}]
    save = {"every": 5, "bytes": "100 MB", "to": "disk", "mode": "sync"}
    told = run(stages, batches=100, checkpoint=save)
    assert pipelines(told.timeline)[0].epochs[0].slowest[0].name == CHECKPOINTS
    assert "slowest stage  checkpoints" in str(told)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_buffer_has_no_more_than_its_room_while_a_checkpoint_is_written(mode: str) -> None:
    stages = [busy("load", 50), busy("decode", 70, at_once=2), {"busy": {"name": "train", "device": "gpu0", "time": "1 ms"}}]
    save = {"every": 5, "bytes": "100 MB", "to": "disk", "mode": mode}
    told = run(stages, batches=40, ahead=2, checkpoint=save)
    assert [max(buffer.level) for buffer in buffers(told.timeline)] == [2, 2]


def test_a_training_in_a_pipeline_has_its_lines_and_its_ops() -> None:
    stages = [busy("decode", 100), {"train": {"model": "resnet-18", "dtype": "fp32"}}]
    told = run(stages, batch=8, epochs=2, dataset={"samples": 32, "bytes": "1 kB"})
    assert [training.steps for training in told.trainings] == [8]
    assert "epoch" in str(told)
