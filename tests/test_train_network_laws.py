"""Laws of the training of networks, mistakes, and what the d2l text finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import hwsim
from hwsim.api import Run
from hwsim.spec import SpecError

V100S = "p3.16xlarge"


def trained(train: Mapping[str, Any], machine: str = V100S, steps: int = 2) -> Run:
    keys = {"dtype": "fp32", "framework": "none", "steps": steps, **train}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "train": keys})


def step(train: Mapping[str, Any], machine: str = V100S) -> float:
    """Seconds of a step among others."""
    return trained(train, machine).trainings[0].step_s


def mistake(train: Mapping[str, Any]) -> str:
    """The lines of mistakes, each with its place."""
    keys = "\n".join(f"  {key}: {value}" for key, value in {"model": "lenet", "global_batch": 64, **train}.items())
    with pytest.raises(SpecError) as caught:
        hwsim.simulate(V100S, f"hwsim: workload/1\ntrain:\n{keys}\n")
    assert all(each.place is not None for each in caught.value.mistakes)
    return "\n".join(each.message for each in caught.value.mistakes)


def test_a_small_network_is_no_faster_on_two_gpus_and_a_large_one_is() -> None:
    def epoch(workload: str, gpus: int) -> float:
        return 60_000 / hwsim.simulate(V100S, workload, set={"gpus": gpus}).trainings[0].rate

    assert epoch("d2l/multi-gpu-lenet", 2) > epoch("d2l/multi-gpu-lenet", 1)
    one, two = (epoch("d2l/multi-gpu-resnet18", gpus) for gpus in (1, 2))
    assert one == pytest.approx(13.2, rel=0.25)  # s an epoch, d2l 13.6
    assert two == pytest.approx(7.3, rel=0.25)
    assert 1.5 < one / two < 2


def test_a_process_for_each_gpu_issues_faster_than_one_for_all() -> None:
    said = {"model": "d2l-resnet-18", "gpus": 8, "global_batch": 2048, "framework": "mxnet-eager"}
    assert step({**said, "threads": "each"}) < 0.6 * step({**said, "threads": "one"})


def test_memory_that_does_not_fit_is_said_by_gpu_and_by_what() -> None:
    with pytest.raises(hwsim.OutOfMemory, match=r"gpu0 needs .* over by .* 'activations'"):
        trained({"model": "resnet-50", "gpus": 2, "global_batch": 1024})


def test_stages_share_the_memory_of_the_weights() -> None:
    def weights(**more: Any) -> float:
        run = trained({"model": "vgg-16", "gpus": 2, "global_batch": 2, **more})
        return sum(each.peak for each in run.memory)

    assert weights(parallel={"tp": 2}) < 0.7 * weights()


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ({"global_batch": 63}, "a batch of 63 cannot be split evenly over 8 copies"),
        ({"parallel": "{tp: 4}"}, "the 6 channels of layer 0.conv cannot be split evenly over 4 GPUs"),
        ({"parallel": "{dp: 3}"}, "tp 1 x pp 1 x dp 3 = 3 GPUs, but there are 8"),
        ({"parallel": "{tp: 2, pp: 2}"}, "cut into stages or its layers are split, not both"),
        ({"parallel": "{pp: 8}"}, "pp 8 stages, but the network has only 7 blocks"),
        ({"microbatch": 3}, "8 examples cannot be split evenly into micro-batches of 3"),
        ({"gpus": 9}, "9 GPUs, but there are 8"),
        ({"recompute": "full"}, "a network has no `recompute`"),
        ({"framework": "pytorch-ngx"}, "no framework 'pytorch-ngx' for networks of convolutions"),
        ({"synchronise": "{algorithm: rong}"}, "there is no algorithm 'rong'"),
        ({"synchronise": "{by: parameter-server, server: gpu3}"}, "neither the first of the GPUs nor other devices"),
        ({"device": "cpu0"}, "cpu0 is no gpu: models are trained on gpus"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(train: Mapping[str, Any], said: str) -> None:
    assert said in mistake(train)
