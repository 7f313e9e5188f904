"""Who sets the pace of a pipeline is what was measured: the sentences of the summary never contradict each other."""

from __future__ import annotations

import pytest

import hwsim
from hwsim.families.pipeline.starving import CHECKPOINTS, buffers, pipelines
from tests.test_pipeline import MACHINE, busy, workload


def test_workers_that_ahead_keeps_idle_set_the_pace_and_are_warned_of() -> None:
    run = hwsim.simulate(MACHINE, workload([busy("decode", 90, at_once=32, ahead=8), busy("train", 4)], batches=400))
    (steady,) = pipelines(run.timeline)[0].epochs
    first, then = steady.slowest
    assert (first.name, first.under_way) == ("decode", 9)
    assert steady.rate == pytest.approx(first.rate, rel=0.1)
    assert then is not None
    assert then.name == "train"
    assert any("at_once: 32 is more than `ahead` allows: at most 9" in each.text for each in run.warnings)


def test_as_many_workers_as_ahead_allows_are_not_warned_of() -> None:
    run = hwsim.simulate(MACHINE, workload([busy("decode", 90, at_once=9, ahead=8), busy("train", 4)], batches=40))
    assert not any("at_once" in each.text for each in run.warnings)


def test_checkpoints_may_set_the_pace() -> None:
    stages = [busy("load", 500), {"busy": {"name": "train", "device": "gpu0", "time": "1 ms"}}]
    save = {"every": 5, "bytes": "100 MB", "to": "disk", "mode": "sync"}
    run = hwsim.simulate(MACHINE, workload(stages, batches=100, checkpoint=save))
    assert pipelines(run.timeline)[0].epochs[0].slowest[0].name == CHECKPOINTS
    assert "checkpoints set the pace" in str(run)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_buffer_has_no_more_than_its_room_while_a_checkpoint_is_written(mode: str) -> None:
    stages = [busy("load", 50), busy("decode", 70, at_once=2), {"busy": {"name": "train", "device": "gpu0", "time": "1 ms"}}]
    save = {"every": 5, "bytes": "100 MB", "to": "disk", "mode": mode}
    run = hwsim.simulate(MACHINE, workload(stages, batches=40, ahead=2, checkpoint=save))
    assert [max(each.level) for each in buffers(run.timeline)] == [2, 2]


def test_a_training_in_a_pipeline_has_its_lines_and_its_ops() -> None:
    stages = [busy("decode", 100), {"train": {"model": "resnet-18", "dtype": "fp32"}}]
    run = hwsim.simulate(MACHINE, workload(stages, batch=8, epochs=2, dataset={"samples": 32, "bytes": "1 kB"}))
    assert [each.steps for each in run.trainings] == [8]
    assert "epoch" in str(run)
