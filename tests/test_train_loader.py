"""A data loader of a training: the step takes the longer of both, and its first batch comes before it."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.families.pipeline.starvation import buffers
from hwsim.families.training.results import TrainingResult
from hwsim.spec import SpecError
from tests.test_train_checkpoints import MACHINE

TRANSFORMER: Final = {"kind": "transformer", "layers": 4, "hidden": 1024, "heads": 8, "vocab": 8000, "sequence": 512}
CNN: Final = {"kind": "mlp", "units": [784, 4096, 4096, 10]}
MODELS: Final = {"transformer": TRANSFORMER, "mlp": CNN}
PLANS: Final[dict[str, dict[str, Any]]] = {
    "replicas": {"model": TRANSFORMER},
    "accumulation": {"model": TRANSFORMER, "microbatch": 2, "global_batch": 64},
    "sharded": {"model": TRANSFORMER, "sharding": "zero-3"},
    "tensor parallel": {"model": TRANSFORMER, "parallel": {"tp": 4}},
    "stages": {"model": TRANSFORMER, "parallel": {"pp": 4, "order": ["pp", "dp"]}},
    "kernels": {"model": CNN},
    "one thread": {"model": CNN, "threads": "one"},
    "eager": {"model": CNN, "framework": "mxnet-eager"},
}


def machine(cores: int = 32, nodes: int = 2) -> dict[str, Any]:
    made = copy.deepcopy(MACHINE)
    made["parts"]["node"]["count"] = nodes
    made["parts"]["node"]["parts"]["cpu"]["cores"] = cores
    return made


def decode(seconds: float, *, at_once: int = 1, **keys: Any) -> dict[str, Any]:
    return {"busy": {"name": "decode", "device": "cpu", "time": f"{seconds} s"}, "at_once": at_once, **keys}


def workload(loader: dict[str, Any] | None, more: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    train = {"global_batch": 32, **keys, **({} if loader is None else {"loader": loader})}
    return {"hwsim": "workload/1", "train": train, **(more or {})}


def run(loader: dict[str, Any] | None, on: dict[str, Any] | None = None, more: dict[str, Any] | None = None, **keys: Any) -> Any:
    return hwsim.simulate(on or machine(), workload(loader, more, **keys))


def trained(loader: dict[str, Any] | None, on: dict[str, Any] | None = None, **keys: Any) -> TrainingResult:
    [found] = run(loader, on, **keys).trainings
    assert isinstance(found, TrainingResult)
    return found


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_a_step_takes_the_longer_of_training_and_loader_after_the_first_batch(plan: str, ratio: float) -> None:
    keys = PLANS[plan]
    alone = trained(None, **keys, steps=8)
    found = trained({"stages": [decode(ratio * alone.step_s)]}, **keys)
    assert found.step_s == pytest.approx(alone.step_s * max(1.0, ratio), rel=2e-3)
    assert 0.9 < found.first_s / (alone.first_s + ratio * alone.step_s) < 1.001  # work before the first kernel overlaps


@given(
    times=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=3),
    workers=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    ahead=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    model=st.sampled_from(sorted(MODELS)),
    each=st.sampled_from(["node*", "node*.gpu*"]),
    cores=st.sampled_from([4, 64]),
    handoff=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_estimate_and_simulation_agree(
    times: list[float], workers: list[int], ahead: list[int], model: str, each: str, cores: int, handoff: float
) -> None:
    """Many cores: every bound of the loader. Few cores: they are shared, and the loader needs all of them."""
    keys: dict[str, Any] = {"model": MODELS[model]}
    unit = 0.005
    work = [time * (1 if cores > 32 else 20) for time in times]  # above the training on the same cores
    stages = [decode(time * unit, at_once=count, ahead=room) for time, count, room in zip(work, workers, ahead, strict=False)]
    stages[-1]["handoff"] = f"{handoff * unit} s"
    for number, stage in enumerate(stages):
        stage["busy"]["name"] = f"stage {number}"
    loader, on = {"each": each, "stages": stages}, machine(cores)
    estimate = hwsim.estimate(on, workload(loader, **keys)).seconds
    plain = hwsim.estimate(on, workload(None, **keys)).seconds
    alone = trained(None, on, **keys, steps=4).step_s
    found = trained(loader, on, **keys, steps=24).step_s
    assert found == pytest.approx(estimate, rel=abs(plain / alone - 1) + (0.02 if cores > 32 else 0.08))


def test_a_fast_loader_changes_no_step() -> None:
    for keys in PLANS.values():
        alone, loaded = trained(None, **keys, steps=4), trained({"stages": [decode(1e-7)]}, **keys)
        assert loaded.step_s == pytest.approx(alone.step_s, rel=1e-4)
        assert loaded.mfu == pytest.approx(alone.mfu, rel=1e-4)


@pytest.mark.parametrize("each", ["node*", "node*.gpu*"])
def test_loaders_of_a_node_share_its_cores_and_no_others(each: str) -> None:
    loaders = 1 if each == "node*" else 4
    work = {"each": each, "ahead": 8, "stages": [decode(0.4, at_once=8 // loaders)]}
    for nodes in (1, 2):
        for cores in (2, 8):
            assert trained(work, machine(cores, nodes), model=CNN).step_s == pytest.approx(
                0.4 / min(8, cores) * loaders, rel=0.05
            )


def test_loaders_of_all_nodes_share_a_file_system() -> None:
    read = {"stages": [{"read": {"from": "store"}}], "dataset": {"samples": 1000, "bytes": "10 MB", "shuffle": False}}
    steps = [trained(read, machine(32, nodes), model=CNN, global_batch=32 * nodes).step_s for nodes in (1, 2)]
    assert steps[0] == pytest.approx(0.32 / 4, rel=1e-3)
    assert steps[1] == pytest.approx(2 * steps[0], rel=1e-3)


def test_a_later_epoch_reads_from_the_cache() -> None:
    data = {"samples": 1000, "bytes": "10 MB"}
    keys = {"stages": [{"read": {"from": "store", "depth": 32}}], "dataset": data, "cache": {"bytes": "64 GB"}}
    first, second = (trained({**keys, "epoch": epoch}, machine(32, 1), model=CNN).step_s for epoch in (1, 2))
    assert second < first / 5


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_loader_continues_during_a_checkpoint(mode: str, ratio: float) -> None:
    """One loader with one worker: the recurrence of its batches and steps, by hand."""
    keys: dict[str, Any] = {"model": CNN, "device": ["node0.gpu0"], "steps": 12}
    saved = {"every": 4, "bytes": "1 MB", "write": "5 ms", "mode": mode, "snapshot": "0 s"}
    step, ahead, stop = trained(None, **keys).step_s, 2, 0.005 if mode == "sync" else 0.0
    load = ratio * step
    done = run({"ahead": ahead, "stages": [decode(load)]}, **keys, checkpoint=saved)
    host = 2e-3  # before a step: `step` of the framework
    ready, free, ends = [0.0] * 14, [host] * 14, [0.0] * 14
    for number in range(13):
        before = max(ready[number - 1] if number else 0.0, free[number - ahead] if number >= ahead else 0.0)
        ready[number] = before + load
        ends[number] = max(ready[number], free[number]) + step - host
        free[number + 1] = ends[number] + host + (stop if (number + 1) % 4 == 0 else 0.0)
    assert done.trainings[0].ended_s == pytest.approx(ends[12 if mode == "async" else 11], rel=1e-6)
    assert max(max(buffer.level) for buffer in buffers(done.timeline)) <= ahead


def test_failures_see_the_step_with_its_loader() -> None:
    rates = {"hwsim": "failures/1", "name": "ours", "source": "measured", "ref": "a log", "date": "2026-10",
             "parts": {"gpu": {"mtbf": "1000 h"}}}  # fmt: skip
    keys: dict[str, Any] = {"model": CNN, "samples": 1e6, "epochs": 100.0, "failures": rates,
                            "checkpoint": {"every": "30 min", "bytes": "1 GB", "write": "10 s"}}  # fmt: skip
    slow = trained({"stages": [decode(0.5)]}, **keys)
    assert slow.step_s == pytest.approx(0.5, rel=1e-3)
    assert slow.failing is not None
    assert slow.failing.seconds > slow.days * 86400 == pytest.approx(1e8 / 32 * 0.5, rel=1e-3)


def test_a_straggler_slows_the_training_and_a_slow_host_the_loader() -> None:
    keys = PLANS["replicas"]
    alone = trained(None, **keys, steps=4).step_s
    gpu, host = ([{"at": "0 s", "part": part, "speed": "25 %"}] for part in ("node1.gpu3", "node0.cpu"))
    loader = {"stages": [decode(1.1 * alone)]}
    slowed = trained(None, **keys, steps=4, more={"events": gpu}).step_s
    assert slowed > 1.2 * alone
    assert trained(loader, **keys, more={"events": gpu}).step_s == pytest.approx(slowed, rel=0.02)
    assert trained(loader, **keys, more={"events": host}).step_s == pytest.approx(4.4 * alone, rel=1e-3)


def test_a_training_that_begins_later_does_all_later() -> None:
    train = {"model": CNN, "global_batch": 32, "loader": {"ahead": 3, "stages": [decode(0.01, at_once=3)]}}
    ends = [
        hwsim.simulate(machine(), {"hwsim": "workload/1", "jobs": {"one": {"start": start, "train": train}}}).makespan_s
        for start in ("0 s", "2 s")
    ]
    assert ends[1] - ends[0] == pytest.approx(2.0, rel=1e-6)


def test_two_trainings_load_on_the_same_cores() -> None:
    jobs = {
        name: {
            "train": {"model": CNN, "device": [f"node0.{gpu}"], "global_batch": 8, "loader": {"stages": [decode(0.1, at_once=2)]}}
        }
        for name, gpu in (("a", "gpu0"), ("b", "gpu1"))
    }
    found = hwsim.simulate(machine(2), {"hwsim": "workload/1", "jobs": jobs}).trainings
    assert [training.step_s for training in found] == pytest.approx([0.1, 0.1], rel=0.05)


def test_the_cause_is_named() -> None:
    slow, fast = (run({"stages": [decode(seconds)]}, model=TRANSFORMER) for seconds in (0.5, 1e-5))
    assert "slowest stage  decode" in str(slow)
    assert "waiting" in str(slow)
    assert "slowest stage  training step" in str(fast)
    assert slow.to_json()["pipelines"][0]["epochs"][0]["bottleneck"] == "decode"
    rate = slow.to_json()["pipelines"][0]["epochs"][0]["batches_per_s"]
    assert 1 / rate == pytest.approx(slow.trainings[0].step_s, rel=1e-9)


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        ({"stages": []}, "a loader needs at least one stage"),
        ({"stages": [{"bussy": {"device": "cpu", "time": "1 s"}}]}, "there is no op 'bussy'"),
        ({"stages": [decode(1)], "batch": 4}, "batch"),
        ({"stages": [decode(1)], "each": ["node0.gpu0"]}, "the 1 loaders do not share the 8 replicas equally"),
        ({"stages": [decode(1)], "each": ["xpu*"]}, "there is no part"),
        ({"stages": [{"allreduce": {"among": "node*.gpu*", "bytes": "1 MB"}}]}, "`allreduce` joins several loaders"),
        ({"stages": [decode(1)], "epoch": 0}, "below the minimum of 1"),
    ],
)
def test_what_is_wrong_with_a_loader_is_said(loader: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        run(loader, model=CNN)


def test_a_batch_that_cannot_be_split_is_refused() -> None:
    with pytest.raises(SpecError, match="cannot be split evenly over 8 loaders"):
        run({"each": "node*.gpu*", "stages": [decode(1)]}, model=TRANSFORMER, parallel={"tp": 4}, global_batch=4, microbatch=1)


def test_what_has_no_closed_form_with_a_loader_is_refused() -> None:
    for option in ({"nodes": 2}, {"plan": "auto"}):
        with pytest.raises(SpecError, match="the estimate of a training with `loader`"):
            hwsim.estimate("dgx-h100", workload({"stages": [decode(1)]}, model="opt-125m"), **option)
