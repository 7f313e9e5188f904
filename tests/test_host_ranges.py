"""Ranges of trainings whose host sets the time: nothing that changes no limit takes their doubt away."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hwsim
from hwsim.results.interval import Interval

CPU = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
GPUS = [f"gpu{number}" for number in range(4)]
LINKS = [{"between": ["cpu", gpu], "kind": "direct", "bandwidth": "25 GB/s"} for gpu in GPUS]
TRAINED: dict[str, Any] = {"model": "mlp-mnist", "device": "gpu0", "global_batch": 64, "steps": 3}


def machine(cores: int) -> dict[str, Any]:
    gpus = {gpu: {"kind": "gpu", "use": "a100-sxm-80gb"} for gpu in GPUS}
    return {"hwsim": "machine/1", "parts": {"cpu": {**CPU, "cores": cores}, **gpus}, "links": LINKS}


def sure(where: str | dict[str, Any], **keys: Any) -> Interval:
    return hwsim.simulate(where, {"hwsim": "workload/1", **keys}).interval


def ends(found: Interval) -> list[float]:
    return [found.below, found.above]


ALONE = ends(sure(machine(4), train=TRAINED))


def test_a_training_that_its_host_limits_is_as_unsure_as_the_host() -> None:
    assert min(ALONE) > 0.05
    assert ends(sure({"hwsim": "machine/1", "parts": {"gpu0": {"kind": "gpu", "use": "a100-sxm-80gb"}}}, train=TRAINED)) == (
        pytest.approx(ALONE, rel=0.02)
    )


@settings(max_examples=8, deadline=None)
@given(part=st.sampled_from(["cpu", "gpu0"]), speed=st.sampled_from([50, 99.99]), cores=st.sampled_from([1, 4]))
def test_a_slower_part_leaves_the_doubt_of_the_host(part: str, speed: float, cores: int) -> None:
    events = [{"at": "0 s", "part": part, "speed": f"{speed} %"}]
    assert ends(sure(machine(cores), train=TRAINED, events=events)) == pytest.approx(ALONE, rel=0.05)


@settings(max_examples=6, deadline=None)
@given(cores=st.sampled_from([1, 2]), many=st.integers(1, 4))
def test_trainings_that_share_the_cores_of_a_host_are_no_surer_than_one(cores: int, many: int) -> None:
    jobs = {gpu: {"train": {**TRAINED, "device": gpu}} for gpu in GPUS[:many]}
    assert min(ends(sure(machine(cores), jobs=jobs))) > 0.95 * min(ALONE)


@pytest.mark.parametrize("model", ["mlp-mnist", "gpt2"])
def test_a_training_is_as_sure_as_the_only_job_and_beside_one_of_no_time(model: str) -> None:
    train = {**TRAINED, "model": model, "device": "gpu0..1", "global_batch": 8}
    nothing = {"program": [{"busy": {"device": "cpu0", "time": "1 fs"}}, {"wait": "all"}]}
    alone = ends(sure("dgx-a100", train=train))
    assert ends(sure("dgx-a100", jobs={"a": {"train": train}})) == pytest.approx(alone)
    assert min(ends(sure("dgx-a100", jobs={"a": {"train": train}, "b": nothing}))) > 0.99 * min(alone)


@pytest.mark.parametrize("events", [(), ({"at": "0 s", "part": "gpu0", "speed": "99.99 %"},)])
def test_a_checkpoint_whose_time_is_stated_is_exact(events: tuple[dict[str, str], ...]) -> None:
    train = {**TRAINED, "model": "bert-large", "global_batch": 8, "steps": 4}
    saved = {**train, "checkpoint": {"every": 4, "bandwidth": "1 GB/s"}}
    alone, found = (
        hwsim.simulate("dgx-a100", {"hwsim": "workload/1", "train": spec, "events": [*events]}) for spec in (train, saved)
    )
    part = alone.makespan_s / found.makespan_s
    assert part < 0.2
    assert found.interval.half == pytest.approx(part * alone.interval.half, rel=0.1)


@settings(max_examples=15, deadline=None)
@given(part=st.floats(0.05, 0.5), first=st.floats(0.1, 2.0), second=st.floats(0.0, 0.8))
def test_a_second_doubt_narrows_no_range(part: float, first: float, second: float) -> None:
    """Two reads one after another: a small part of the time that may be far longer weighs more than its part says."""

    def found(other: float) -> Interval:
        spreads = {"a": first, "b": other}
        disks = {name: {"kind": "disk", "read": {"value": "1 GB/s", "spread": spread}} for name, spread in spreads.items()}
        links = [{"between": ["cpu", name], "kind": "direct", "bandwidth": "10 GB/s"} for name in disks]
        reads = [{"read": {"from": name, "bytes": f"{round(1e9 * of)} B"}} for name, of in (("a", part), ("b", 1 - part))]
        where = {"hwsim": "machine/1", "class": "ideal", "parts": {"cpu": CPU, **disks}, "links": links}
        return sure(where, program=[reads[0], {"wait": "all"}, reads[1], {"wait": "all"}])

    assert found(second).above > 0.99 * found(0.0).above
