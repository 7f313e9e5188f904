"""A step in closed form beside the same step simulated: one law for both, whatever is split, shared and hidden."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.machine import Machine
from hwsim.models import Cluster, ParallelPlan, WrongPlan, cluster_of, estimate, load_framework, load_transformer
from hwsim.models.cluster import NETWORK
from hwsim.models.exchanges import CollectiveCosts
from hwsim.models.plan import Recompute, Sharding
from hwsim.results.activities import bounds_of
from hwsim.results.interval import Interval
from hwsim.spec import SpecError
from hwsim.views.estimate.find import step_interval

NEAR = 0.03


class Plan(NamedTuple):
    """each: sequences of a step for each copy.  per_leaf: nodes at a leaf of the pod; 0: a DGX H100 alone."""

    nodes: int
    per_leaf: int
    model: str
    microbatch: int
    each: int
    tp: int
    pp: int
    sharding: Sharding
    recompute: Recompute = "none"
    chunks: int = 1
    framework: str = "megatron-core"


QUICK = (
    Plan(1, 0, "llama-3-8b", 1, 8, 1, 1, "zero-1"),
    Plan(1, 0, "llama-3-8b", 1, 8, 1, 1, "zero-3"),
    Plan(1, 0, "llama-3-8b", 1, 16, 2, 4, "zero-1"),
    Plan(1, 0, "llama-3-8b", 2, 8, 1, 1, "zero-2", "selective"),
    Plan(1, 0, "bert-large", 16, 16, 1, 1, "zero-0"),
    Plan(1, 0, "bert-large", 16, 64, 1, 1, "zero-0"),
    Plan(1, 0, "bert-large", 4, 4, 1, 1, "zero-3"),
    Plan(1, 8, "llama-2-7b", 1, 8, 1, 1, "zero-1"),
    Plan(2, 8, "llama-2-7b", 1, 8, 1, 1, "zero-1"),
    Plan(2, 8, "llama-2-7b", 1, 1, 1, 1, "zero-1"),
    Plan(2, 1, "llama-2-7b", 1, 8, 1, 1, "zero-1"),
    Plan(16, 8, "llama-2-7b", 1, 4, 8, 1, "zero-1"),
    Plan(1, 0, "llama-3-8b", 1, 8, 2, 2, "zero-1", chunks=4),
    Plan(1, 0, "gpt2-xl", 1, 4, 1, 1, "zero-0", framework="internevo"),
    Plan(1, 0, "llama-3-8b", 1, 8, 1, 4, "fsdp", chunks=3),  # 32 layers, the embedding and the output on 12 virtual stages
    Plan(1, 0, "llama-3-8b", 1, 6, 1, 4, "fsdp"),
    Plan(2, 8, "llama-2-7b", 1, 8, 1, 1, "zero-1", framework="internevo"),  # weights in buckets
    Plan(1, 0, "llama-3-8b", 1, 3, 1, 8, "zero-1", chunks=4),  # fewer micro-batches than stages
)


def machine_of(plan: Plan) -> Machine:
    if not plan.per_leaf:
        return load_machine("dgx-h100")
    let = f"{{nodes: {plan.nodes}, per_leaf: {plan.per_leaf}}}"
    return load_machine(f"hwsim: machine/1\nclass: ideal\nuse: scale/dgx-a100-pod\nlet: {let}\n")


def estimated(plan: Plan, machine: Machine) -> float:
    model = load_transformer(plan.model)
    framework = load_framework(plan.framework)
    laid = ParallelPlan(
        tp=plan.tp, pp=plan.pp, global_batch=batch(plan), microbatch=plan.microbatch, chunks=plan.chunks,
        uneven=plan.chunks > 1, schedule=schedule(plan), sharding=plan.sharding, recompute=plan.recompute,
        sequence_parallel=plan.tp > 1, sequence=min(4096, model.sequence), dtype="bf16",
    )  # fmt: skip
    return estimate(model, laid, cluster_of(machine), framework).seconds


def schedule(plan: Plan) -> Any:
    return "interleaved" if plan.chunks > 1 else "1f1b"


def batch(plan: Plan) -> int:
    return plan.each * 8 * plan.nodes // (plan.tp * plan.pp)


def simulated(plan: Plan, machine: Machine, **more: Any) -> float:
    train = {
        "model": plan.model, "sequence": min(4096, load_transformer(plan.model).sequence), "microbatch": plan.microbatch,
        "global_batch": batch(plan), "dtype": "bf16", "schedule": schedule(plan), "chunks": plan.chunks,
        "parallel": {"tp": plan.tp, "pp": plan.pp, "dp": "rest", "order": ["tp", "pp", "dp"]},
        "uneven": plan.chunks > 1, "sharding": plan.sharding, "recompute": plan.recompute, "framework": plan.framework, **more,
    }  # fmt: skip
    try:
        run = hwsim.simulate(machine, {"hwsim": "workload/1", "train": train})
    except hwsim.OutOfMemory as full:  # its time is told all the same
        run = full.run
    found: float = run.trainings[0].step_s
    return found


@pytest.mark.parametrize("plan", QUICK, ids=str)
def test_a_step_is_simulated_as_it_is_estimated(plan: Plan) -> None:
    machine = machine_of(plan)
    assert simulated(plan, machine) == pytest.approx(estimated(plan, machine), rel=NEAR)


def racks(trays: int) -> Machine:
    """Two racks of trays of four GPUs, all of a rack on one switch of NVLinks."""
    return load_machine(
        f"""
hwsim: machine/1
class: ideal
parts:
  rack:
    kind: machine
    count: 2
    parts:
      tray:
        kind: machine
        count: {trays}
        parts: {{gpu: {{kind: gpu, use: gb200, count: 4}}, nic: {{kind: nic, use: connectx-7-ndr400, count: 4}}}}
        links: [{{between: [gpu*, nic*], per: 1, kind: pcie, use: pcie5-x16}}]
      nvs: {{kind: switch, reduces: true}}
    links: [{{between: [tray*.gpu*, nvs], kind: nvlink, use: nvlink5, links: 18}}]
  fabric: {{kind: switch}}
links: [{{between: [rack*.tray*.nic*, fabric], kind: infiniband, use: ndr400}}]
"""
    )


FULL: tuple[tuple[int, Sharding], ...] = ((1, "zero-1"), (2, "zero-1"), (8, "zero-1"), (1, "zero-3"))
RACKED = (
    Plan(4, 0, "llama-2-7b", 1, 4, 1, 1, "zero-1"),
    Plan(4, 0, "llama-2-7b", 1, 4, 4, 1, "zero-1"),
    *(pytest.param(Plan(36, 0, "llama-2-7b", 1, 4, tp, 1, how), marks=pytest.mark.slow) for tp, how in FULL),
)


@pytest.mark.parametrize("plan", RACKED, ids=str)
def test_nodes_that_share_a_switch_of_nvlinks_are_one(plan: Plan) -> None:
    machine = racks(plan.nodes // 2)
    plan = plan._replace(nodes=plan.nodes // 2)  # of eight GPUs
    assert cluster_of(machine).per_node == 4 * plan.nodes
    assert simulated(plan, machine) == pytest.approx(estimated(plan, machine), rel=NEAR)


def test_fewer_buckets_hide_less() -> None:
    plan = Plan(1, 0, "bert-large", 4, 4, 1, 1, "zero-0")
    machine = machine_of(plan)
    steps = [simulated(plan, machine, buckets=count) for count in (1, 2, 4, 16)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.01 * steps[-1]


# ---- random plans: one judgement ----

PLACES = {
    "p3": "p3.16xlarge", "h100": "dgx-h100", "mi300x": "mi300x-8", "l40s": "l40s-8",
    "pod": "hwsim: machine/1\nuse: scale/dgx-a100-pod\nlet: {nodes: 4, per_leaf: 8}\n",
    "meshes": "hwsim: machine/1\nparts: {node: {kind: machine, use: p3dn.24xlarge, count: 2}, switch: {kind: switch}}\n"
    "links: [{between: [node*.nic*, switch], kind: ethernet, rate: 100 Gb/s}]\n",
    "slots": "hwsim: machine/1\nparts: {node: {kind: machine, use: l40s-8, count: 2}, switch: {kind: switch}}\n"
    "links: [{between: [node*.nic*, switch], kind: infiniband, use: ndr400}]\n",
    "halves": """
hwsim: machine/1
parts:
  node:
    kind: machine
    count: 4
    parts:
      gpu: {kind: gpu, use: h100-sxm, count: 4}
      nvs: {kind: switch}
      psw: {kind: switch, use: pex89144, count: 2}
      nic: {kind: nic, use: connectx-7-ndr400, count: 2}
    links:
      - {between: [gpu*, nvs], kind: nvlink, use: nvlink4, links: 18}
      - {between: [psw*, gpu*], per: 2, kind: pcie, use: pcie5-x16}
      - {between: [psw*, nic*], per: 1, kind: pcie, use: pcie5-x16}
  leaf: {kind: switch}
links: [{between: [node*.nic*, leaf], kind: infiniband, use: ndr400}]
""",
    "single": """
hwsim: machine/1
parts:
  node: {kind: machine, count: 8, parts: {gpu: {kind: gpu, use: h100-sxm}, nic: {kind: nic, use: connectx-7-ndr400}},
    links: [{between: [gpu, nic], kind: pcie, use: pcie5-x16}]}
  leaf: {kind: switch}
links: [{between: [node*.nic, leaf], kind: infiniband, use: ndr400}]
""",
}  # fmt: skip
LENGTHS = {
    "gpt2": (128, 1024),
    "bert-large": (128, 512),
    "gpt2-xl": (512, 1024),
    "llama-3-8b": (512, 8192),
    "mixtral-8x7b": (512, 4096),
}


@cache
def place(name: str) -> tuple[Machine, Cluster]:
    machine = load_machine(PLACES[name])
    return machine, cluster_of(machine)


def drawn(chance: random.Random) -> tuple[str, str, str, dict[str, Any]]:
    where, model = chance.choice(sorted(PLACES)), chance.choice(sorted(LENGTHS))
    plan: dict[str, Any] = {
        "tp": chance.choice((1, 1, 2, 4, 8)), "pp": chance.choice((1, 1, 2, 4, 8)), "cp": chance.choice((1, 1, 1, 2)),
        "ep": chance.choice((1, 2, 4)) if model == "mixtral-8x7b" else 1, "microbatch": chance.choice((1, 2, 4)),
        "sharding": chance.choice(("zero-0", "zero-1", "zero-2", "zero-3", "fsdp")),
        "recompute": chance.choice(("none", "selective", "full")), "sequence": chance.choice(LENGTHS[model]),
    }  # fmt: skip
    plan["sequence_parallel"] = plan["tp"] > 1 and chance.random() < 0.6
    if plan["pp"] > 1:
        plan["schedule"] = chance.choice(("1f1b", "gpipe", "interleaved"))
        plan["chunks"] = chance.choice((2, 3, 4)) if plan["schedule"] == "interleaved" else 1
        plan["uneven"] = chance.random() < 0.4
    copies = place(where)[1].gpus // (plan["tp"] * plan["pp"] * plan["cp"])
    plan["global_batch"] = max(1, copies) * plan["microbatch"] * chance.choice((1, 2, 3, 4, 8))
    plan["dtype"] = "fp16" if where in ("p3", "meshes") else "bf16"
    return where, model, chance.choice(("megatron-core", "internevo", "deepspeed-zero3")), plan


def judged(where: str, name: str, called: str, keys: dict[str, Any]) -> tuple[Interval, Interval]:
    """The intervals of a step, as estimated and as simulated."""
    machine, cluster = place(where)
    step = estimate(load_transformer(name), ParallelPlan(**keys), cluster, load_framework(called))
    axes = {"dp": "rest", **{axis: keys[axis] for axis in ("tp", "pp", "cp", "ep")}}
    train = {
        "model": name,
        "framework": called,
        "parallel": axes,
        **{key: value for key, value in keys.items() if key not in axes},
    }
    try:
        run = hwsim.simulate(machine, {"hwsim": "workload/1", "train": train})
    except hwsim.OutOfMemory as full:
        run = full.run
    return step_interval(step, cluster, load_framework(called)), run.interval.of(run.trainings[0].step_s)


@pytest.mark.parametrize(("seed", "count"), [(1, 30), *(pytest.param(seed, 150, marks=pytest.mark.slow) for seed in (2, 4, 9))])
def test_random_plans_are_judged_alike(seed: int, count: int) -> None:
    chance, ratios, apart = random.Random(seed), list[float](), list[tuple[Any, ...]]()
    while len(ratios) < count:
        plan = drawn(chance)
        try:
            closed, played = judged(*plan)
        except (WrongPlan, hwsim.SpecError):
            continue
        ratios.append(closed.value / played.value)
        if closed.low > played.high or played.low > closed.high:
            apart.append((ratios[-1], *plan))
    assert not apart
    assert statistics.median(ratios) == pytest.approx(1.0, abs=0.01)
    assert statistics.median(abs(ratio - 1.0) for ratio in ratios) < 0.01
    assert 0.7 < min(ratios) < max(ratios) < 1.3


@pytest.mark.parametrize("where", ["meshes", "pod"])
@pytest.mark.parametrize("operation", ["all-gather", "reduce-scatter", "all-reduce"])
@pytest.mark.parametrize("stride", [1, 2, 8])
def test_groups_that_leave_a_node_at_once_share_its_cards_alike(where: str, operation: Any, stride: int) -> None:
    """A ring of all GPUs, two of every second, eight of one GPU of each node: over one card of a node, or over eight.

    The closed form that is left for more nodes than the machine has.
    """
    machine, whole = place(where)
    cluster = replace(whole, named=whole.named[:1])
    gpus = machine.devices_of("gpu")
    groups = np.arange(len(gpus)).reshape(-1, stride).T
    for at_once in (groups, groups[: stride // 2]):  # all of them, those of one of two stages
        cost = CollectiveCosts(machine).cost([tuple(gpus[rank] for rank in group) for group in at_once], operation, 1e9)
        if len(at_once):
            assert cluster.among(operation, 1e9, at_once) == pytest.approx(cost.demand.alone(machine.rates()), rel=NEAR)


# ---- bytes by hand ----

ALONE = """
hwsim: machine/1
class: ideal
parts:
  node: {kind: machine, count: 4, parts: {gpu: {kind: gpu, use: GPU}, nic: {kind: nic, use: connectx-7-ndr400}},
    links: [{between: [gpu, nic], kind: pcie, use: pcie5-x16}]}
  other: {kind: machine, count: 4, parts: {gpu: {kind: gpu, use: h100-sxm}, nic: {kind: nic, use: connectx-7-ndr400}},
    links: [{between: [gpu, nic], kind: pcie, use: pcie5-x16}]}
  leaf: {kind: switch}
links:
  - {name: slow, between: [node*.nic, leaf], kind: direct, bandwidth: 125 MB/s}
  - {name: slow, between: [other*.nic, leaf], kind: direct, bandwidth: 125 MB/s}
"""


@pytest.mark.parametrize("gpu", ["h100-sxm", "a100-sxm-80gb"])
@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize(
    ("sharding", "crossing"),
    [
        ("zero-0", lambda w, g, m: 2 * g),
        ("zero-1", lambda w, g, m: g + w),
        ("zero-2", lambda w, g, m: g + w),
        ("zero-3", lambda w, g, m: m * (2 * w + g)),
        ("fsdp", lambda w, g, m: m * (2 * w + g)),
    ],
)  # fmt: skip
def test_each_exchange_crosses_a_link_with_the_bytes_that_it_has_by_hand(
    sharding: Sharding, crossing: Callable[[float, float, int], float], recompute: Recompute, gpu: str
) -> None:
    """An all-gather and a reduce-scatter of n ranks send (n - 1)/n of the array over each link, an all-reduce twice that."""
    machine, m = load_machine(ALONE.replace("GPU", gpu)), 2
    model, framework = load_transformer("llama-3-8b"), load_framework("megatron-core")
    crossed = 7 / 8 * crossing(2.0 * model.parameters, framework.gradient * model.parameters, m)
    train = {
        "model": "llama-3-8b",
        "global_batch": 8 * m,
        "sequence": 512,
        "sharding": sharding,
        "recompute": recompute,
        "steps": 2,
    }
    try:
        run = hwsim.simulate(machine, {"hwsim": "workload/1", "train": {**train, "device": ["node*.gpu", "other*.gpu"]}})
    except hwsim.OutOfMemory as full:
        run = full.run
    for row in run.usage:
        if row.capacity.startswith("slow:"):
            assert row.moved / 2 == pytest.approx(crossed, rel=1e-3), row.capacity
    rate = 125e6 * NETWORK * framework.network
    assert run.trainings[0].step_s * rate == pytest.approx(crossed, rel=0.1)
    if gpu == "h100-sxm":
        plan = ParallelPlan(global_batch=8 * m, sequence=512, sharding=sharding, recompute=recompute)
        step = estimate(model, plan, cluster_of(machine), framework)
        assert step.seconds == pytest.approx(run.trainings[0].step_s, rel=NEAR)


@pytest.mark.parametrize("nodes", [64, 66])
def test_a_step_of_few_and_of_many_gpus_is_judged_alike(nodes: int) -> None:
    """Up to 512 GPUs, estimates time exchanges between nodes as simulations do; beyond, by a closed form."""
    machine = {
        "hwsim": "machine/1",
        "parts": {"node": {"kind": "machine", "use": "dgx-h100", "count": nodes}, "leaf": {"kind": "switch"}},
        "links": [{"between": ["node*.nic*", "leaf"], "kind": "infiniband", "use": "ndr400"}],
    }
    keys: dict[str, Any] = {"sequence": 2048, "global_batch": 2 * nodes, "sharding": "none"}
    found = hwsim.estimate(machine, "llama-3-8b", tp=8, **keys)
    run = hwsim.simulate(machine, {"hwsim": "workload/1", "train": {"model": "llama-3-8b", "parallel": {"tp": 8}, **keys}})
    assert found.seconds == pytest.approx(run.trainings[0].step_s, rel=NEAR)


@pytest.mark.parametrize("plan", [{"tp": 2, "dp": 4}, {"pp": 2, "dp": 4}, {"dp": 8}], ids=str)
def test_a_small_model_takes_as_long_as_its_kernels_to_launch(plan: dict[str, Any]) -> None:
    keys: dict[str, Any] = {"framework": "megatron", "dtype": "fp16", "sequence": 256, "global_batch": 16, "sharding": "none"}
    found = hwsim.estimate("dgx-a100", "gpt2", **plan, **keys)
    train = {"model": "gpt2", "parallel": plan, **keys}
    run = hwsim.simulate("dgx-a100", {"hwsim": "workload/1", "train": train})
    assert found.seconds == pytest.approx(run.trainings[0].step_s, rel=5e-3)
    assert bounds_of(run.timeline, run.devices)[0].bound.term == "kernel launch latency"
    assert found.seconds > 1.5 * hwsim.estimate("dgx-a100", "gpt2", **plan, **{**keys, "framework": "megatron-core"}).seconds


def test_a_gpu_that_waits_for_launches_may_stop_but_not_slow_down() -> None:
    """Slower kernels would still end before their launches: only an op of separate parts could say so."""
    keys = {"model": "gpt2", "sequence": 256, "global_batch": 16, "dtype": "fp16", "framework": "megatron", "parallel": {"dp": 8}}

    def took(**event: str) -> float:
        changes = [{"at": "1 ms", "part": "gpu3", **event}]
        return hwsim.simulate("dgx-a100", {"hwsim": "workload/1", "train": keys, "events": changes}).makespan_s

    alone = took(speed="100 %")
    assert took(down="1 s") == pytest.approx(alone + 1, rel=1e-3)
    for change in ({"speed": "50 %"}, {"jitter": "5 %", "for": "1 s", "every": "10 ms"}):
        with pytest.raises(SpecError, match="slows gpu3, whose kernels take less time than their launches"):
            took(**change)


NODES = """hwsim: machine/1
parts: {node: {kind: machine, use: dgx-b200, count: 2}}
links: [{name: fabric, topology: fat-tree, of: "node*.nic*", kind: infiniband, use: ndr400, rails: 8, leaf_ports: 40}]
"""


@pytest.mark.parametrize("framework", ["megatron-bridge", "megatron-bridge-alltoall"])
@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_experts_are_simulated_as_they_are_estimated(framework: str, dtype: str) -> None:
    keys: dict[str, Any] = {"framework": framework, "dtype": dtype, "sequence": 4096, "global_batch": 32, "microbatch": 2}
    found = hwsim.estimate(NODES, "qwen3-30b-a3b", ep=16, **keys)
    train = {"model": "qwen3-30b-a3b", "parallel": {"ep": 16}, "sharding": "zero-1", **keys}
    run = hwsim.simulate(NODES, {"hwsim": "workload/1", "train": train})
    assert found.seconds == pytest.approx(run.trainings[0].step_s, rel=5e-3)


def test_formats_of_matmuls_are_faster_the_narrower_they_are() -> None:
    keys: dict[str, Any] = {"framework": "megatron-bridge", "global_batch": 16, "sequence": 8192, "tp": 2, "pp": 4}
    found = [hwsim.estimate("dgx-b200", "llama-3-70b", dtype=dtype, **keys) for dtype in ("bf16", "mxfp8", "nvfp4")]
    assert found[0].seconds > 1.2 * found[1].seconds > 1.2 * 1.1 * found[2].seconds
    kept = [answer.found.memory.activations for answer in found]
    assert kept[0] > kept[1] == kept[2]
