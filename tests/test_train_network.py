"""Training of networks through `train:`: arithmetic on paper of data, layers and channels over GPUs; laws, and mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import hwsim
from hwsim.api import Run
from hwsim.families.training.workload import lowering
from hwsim.models.step import exposed_bucket_seconds
from hwsim.spec import SpecError

FLOP = 1e12
WIDE = {"kind": "mlp", "units": [512] * 9, "activation": "none", "bias": False}  # eight equal layers
WEIGHTS = 512 * 512


def server(gpus: int = 4, bandwidth: str = "1000000 TB/s", servers: int = 1) -> str:
    """GPUs that only compute, on a switch; memories and hosts take no time."""
    part = "kind: gpu, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1000000 TB/s}"
    return f"""hwsim: machine/1
class: ideal
parts:
  cpu: {{kind: cpu, cores: 64, flop: {{fp32: 1 TFLOP/s}}, memory: {{bandwidth: 1000000 TB/s}}, count: {servers}}}
  gpu: {{{part}, count: {gpus}}}
  switch: {{kind: switch}}
links:
  - {{between: [switch, gpu*], kind: direct, bandwidth: {bandwidth}}}
  - {{between: [switch, cpu*], kind: direct, bandwidth: {bandwidth}}}
"""


def trained(machine: str, model: Any = WIDE, **keys: Any) -> Run:
    keys = {"global_batch": 64, "dtype": "fp32", "framework": "none", "steps": 1, **keys}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "train": {"model": model, **keys}})


def seconds(machine: str, model: Any = WIDE, **keys: Any) -> float:
    return trained(machine, model, **keys).makespan_s


def layer(batch: int) -> float:
    """Of the eight layers, one product: forward, for the inputs or for the weights."""
    return 2 * batch * WEIGHTS / FLOP


def test_one_gpu_does_three_products_a_layer_but_two_of_the_first() -> None:
    assert seconds(server(1)) == pytest.approx((3 * 8 - 1) * layer(64), rel=1e-6)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_copies_that_exchange_for_nothing_take_their_part_of_the_time(gpus: int) -> None:
    assert seconds(server(gpus)) == pytest.approx(seconds(server(1)) / gpus, rel=1e-6)


@pytest.mark.parametrize("by", ["all-reduce", "parameter-server"])
def test_steps_follow_each_other(by: str) -> None:
    machine = server(2, "10 GB/s")
    once, often = (seconds(machine, steps=steps, synchronise={"by": by, "overlap": False}) for steps in (1, 5))
    assert often == pytest.approx(5 * once, rel=1e-6)


@pytest.mark.parametrize("bandwidth", [5e9, 50e9, 200e9])
def test_sums_hide_behind_the_backward_pass_up_to_its_length(bandwidth: float) -> None:
    run = seconds(server(2, f"{bandwidth / 1e9} GB/s"), synchronise={"bucket": "1 B", "algorithm": "ring"})
    forward, backward = 8 * layer(32), 15 * layer(32)
    marks = [((index + 1) * 2 * layer(32), 4.0 * WEIGHTS) for index in range(7)] + [(backward, 4.0 * WEIGHTS)]
    left = exposed_bucket_seconds(marks, lambda size: size / bandwidth, bucket=1.0)
    assert run == pytest.approx(forward + backward + left, rel=1e-5)


def test_without_overlap_all_sums_come_at_the_end() -> None:
    bandwidth, total = 50e9, 8 * 4.0 * WEIGHTS
    run = seconds(server(2, "50 GB/s"), synchronise={"overlap": False, "algorithm": "ring"})
    assert run == pytest.approx(23 * layer(32) + total / bandwidth, rel=1e-5)


@pytest.mark.parametrize(("servers", "copies"), [(1, 2), (1, 4), (2, 4), (4, 4)])
def test_servers_take_in_and_give_out_every_copys_part(servers: int, copies: int) -> None:
    said = {"by": "parameter-server", "server": "cpu*", "overlap": False}
    run = seconds(server(copies, "10 GB/s", servers), synchronise=said)
    total = 8 * 4.0 * WEIGHTS
    assert run == pytest.approx(23 * layer(64 // copies) + 2 * copies / servers * total / 10e9, rel=1e-4)


def test_a_gpu_that_is_the_server_has_its_own_gradients_already() -> None:
    run = seconds(server(4, "10 GB/s"), synchronise={"by": "parameter-server", "server": "gpu0", "overlap": False})
    assert run == pytest.approx(23 * layer(16) + 2 * 3 * 8 * 4.0 * WEIGHTS / 10e9, rel=1e-4)


def test_micro_batches_are_added_up_before_the_gradients_go() -> None:
    whole = seconds(server(2, "10 GB/s"), synchronise={"overlap": False})
    assert seconds(server(2, "10 GB/s"), microbatch=8, synchronise={"overlap": False}) == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_pipeline_waits_for_its_first_and_last_micro_batch(schedule: str) -> None:
    stages, parts = 4, 8
    one = layer(64 // parts)
    forward, backward, first = 2 * one, 4 * one, 3 * one  # two layers a stage; nothing goes back from the very first
    run = seconds(server(stages), parallel={"pp": stages}, microbatch=64 // parts, schedule=schedule)
    full = (parts + stages - 1) * forward + (parts + stages - 2) * backward + first
    assert run == pytest.approx(full, rel=1e-6)


def test_one_micro_batch_keeps_one_stage_busy_at_a_time() -> None:
    assert seconds(server(4), parallel={"pp": 4}) == pytest.approx(seconds(server(1)), rel=1e-6)


def test_channels_over_gpus_share_every_product() -> None:
    assert seconds(server(4), parallel={"tp": 4}) == pytest.approx(seconds(server(1)) / 4, rel=1e-6)


def test_channels_over_gpus_gather_what_comes_in_and_scatter_what_goes_back() -> None:
    array, bandwidth = 64 * 512 * 4.0, 10e9
    run = seconds(server(2, "10 GB/s"), parallel={"tp": 2}, steps=1)
    gathers = 7 * array / 2 / bandwidth  # all layers but the first
    weights = layer(64) / 2
    hidden = min(weights, array / 2 / bandwidth)  # while the gradient goes back, that of the weights is computed
    scatters = 7 * array / 2 / bandwidth - 7 * hidden
    assert run == pytest.approx(23 * layer(64) / 2 + gathers + scatters, rel=0.02)


def test_stages_and_copies_go_together() -> None:
    both = seconds(server(4), parallel={"pp": 2, "dp": 2}, microbatch=8)
    assert both == pytest.approx(seconds(server(2), parallel={"pp": 2}, microbatch=8, global_batch=32), rel=1e-6)


def test_many_copies_told_by_one_take_as_long_as_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = server(8, "10 GB/s")
    every = trained(machine, steps=2)
    monkeypatch.setattr(lowering, "GPUS", 4)
    one = trained(machine, steps=2)
    assert one.makespan_s == every.makespan_s
    assert len(list(one.ops)) < len(list(every.ops))


def test_what_a_step_is_worth_is_counted_in_images() -> None:
    text = str(trained(server(4), "lenet"))
    assert "64 images" in text
    assert "dp 4" in text


def test_a_stage_of_a_network_keeps_its_micro_batches_in_flight() -> None:
    """Of four, the first of two stages keeps four by gpipe and two by 1f1b, simulated and estimated."""
    keys: dict[str, Any] = {"global_batch": 64, "microbatch": 4}
    played, said = list[float](), list[float]()
    for schedule in ("gpipe", "1f1b"):
        train = {"model": "resnet-50", **keys, "schedule": schedule, "parallel": {"pp": 2, "dp": 4}}
        run = hwsim.simulate("dgx-a100", {"hwsim": "workload/1", "train": train})
        played.append(max(memory.peak for memory in run.memory))
        step = hwsim.estimate("dgx-a100", "resnet-50", pp=2, dp=4, schedule=schedule, dtype="fp32", **keys)
        said.append(step.to_json()["memory"]["activations"])
    assert said[0] == 2 * said[1]
    assert played[0] == pytest.approx(2 * played[1], rel=0.05)


V100S = "p3.16xlarge"


def played(train: Mapping[str, Any], machine: str = V100S, steps: int = 2) -> Run:
    keys = {"dtype": "fp32", "framework": "none", "steps": steps, **train}
    return hwsim.simulate(machine, {"hwsim": "workload/1", "train": keys})


def step(train: Mapping[str, Any], machine: str = V100S) -> float:
    """Seconds of a step among others."""
    return played(train, machine).trainings[0].step_s


def mistake(train: Mapping[str, Any]) -> str:
    """The lines of mistakes, each with its place."""
    keys = "\n".join(f"  {key}: {value}" for key, value in {"model": "lenet", "global_batch": 64, **train}.items())
    with pytest.raises(SpecError) as caught:
        hwsim.simulate(V100S, f"hwsim: workload/1\ntrain:\n{keys}\n")
    assert all(fault.place is not None for fault in caught.value.mistakes)
    return "\n".join(fault.message for fault in caught.value.mistakes)


def test_a_process_for_each_gpu_issues_faster_than_one_for_all() -> None:
    said = {"model": "d2l-resnet-18", "gpus": 8, "global_batch": 2048, "framework": "mxnet-eager"}
    assert step({**said, "threads": "each"}) < 0.6 * step({**said, "threads": "one"})


def test_memory_that_does_not_fit_is_said_by_gpu_and_by_what() -> None:
    with pytest.raises(hwsim.OutOfMemory, match=r"gpu0 needs .* over by .* 'activations'"):
        played({"model": "resnet-50", "gpus": 2, "global_batch": 1024})


def test_stages_share_the_memory_of_the_weights() -> None:
    def weights(**more: Any) -> float:
        run = played({"model": "vgg-16", "gpus": 2, "global_batch": 2, **more})
        return sum(memory.peak for memory in run.memory)

    assert weights(parallel={"tp": 2}) < 0.7 * weights()


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ({"global_batch": 63}, "a batch of 63 cannot be split evenly over 8 replicas"),
        ({"parallel": "{tp: 4}"}, "the 6 channels of layer 0.conv cannot be split evenly over 4 GPUs"),
        ({"parallel": "{dp: 3}"}, "tp 1 x pp 1 x dp 3 = 3 GPUs, but there are 8"),
        ({"parallel": "{tp: 2, pp: 2}"}, "cannot use both tp and pp"),
        ({"parallel": "{pp: 8}"}, "pp 8 stages, but the network has only 7 blocks"),
        ({"microbatch": 3}, "8 examples per replica cannot be split evenly into microbatches of 3"),
        ({"gpus": 9}, "`gpus: 9` exceeds the 8 GPUs of the machine"),
        ({"recompute": "full"}, "`recompute` has no effect on a CNN or MLP"),
        ({"framework": "pytorch-ngx"}, "unknown framework 'pytorch-ngx' for a CNN or MLP"),
        ({"synchronise": "{algorithm: rong}"}, "unknown algorithm 'rong'"),
        ({"synchronise": "{by: parameter-server, server: gpu3}"}, "expected the first GPUs or other devices"),
        ({"device": "cpu0"}, "cpu0 is not a GPU; training requires GPUs"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(train: Mapping[str, Any], said: str) -> None:
    assert said in mistake(train)
