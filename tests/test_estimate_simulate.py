"""A step in closed form beside the same step simulated: one law for both, whatever is split, shared and hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pytest

import hwsim
from hwsim.api import load_machine
from hwsim.machine import Machine
from hwsim.models import ParallelPlan, cluster_of, estimate, load_framework, load_transformer
from hwsim.models.plan import Recompute, Sharding

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
SLOW = (
    Plan(1, 0, "llama-3-8b", 1, 8, 1, 1, "fsdp", "full"),
    Plan(1, 0, "llama-3-8b", 1, 16, 8, 1, "zero-0"),
    Plan(1, 8, "llama-2-7b", 1, 8, 1, 1, "zero-3"),
    Plan(2, 8, "llama-2-7b", 1, 8, 8, 1, "zero-1"),
    Plan(2, 8, "llama-2-7b", 1, 8, 1, 1, "zero-3"),
    Plan(2, 8, "llama-2-7b", 1, 8, 8, 1, "zero-3", "full"),
    Plan(2, 1, "llama-2-7b", 1, 8, 8, 1, "zero-1"),
    Plan(16, 16, "llama-2-7b", 1, 4, 1, 1, "zero-1"),
    Plan(16, 8, "llama-2-7b", 1, 4, 1, 1, "zero-1"),
    Plan(16, 16, "llama-2-7b", 1, 4, 8, 1, "zero-1"),
    Plan(16, 16, "llama-2-7b", 1, 4, 1, 1, "zero-3"),
    Plan(16, 8, "llama-2-7b", 1, 4, 1, 1, "fsdp"),
    Plan(16, 16, "llama-2-7b", 1, 4, 1, 1, "zero-0", "full"),
    Plan(16, 16, "llama-2-70b", 1, 16, 8, 4, "zero-1"),
    Plan(16, 8, "llama-2-70b", 1, 16, 8, 4, "zero-1"),
    Plan(16, 8, "llama-2-70b", 1, 16, 8, 4, "zero-0", "full"),
    Plan(2, 8, "llama-2-7b", 1, 8, 4, 2, "zero-1", chunks=4),
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


@pytest.mark.slow
@pytest.mark.parametrize("plan", SLOW, ids=str)
def test_so_are_steps_of_large_plans(plan: Plan) -> None:
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


def test_what_hides_is_bounded_by_what_it_hides_behind() -> None:
    """The faster the GPUs, the less there is to hide behind: a step never gets shorter than its exchanges."""
    plan = Plan(2, 8, "llama-2-7b", 1, 1, 1, 1, "zero-1")
    machine = machine_of(plan)
    model, cluster, framework = load_transformer(plan.model), cluster_of(machine), load_framework(plan.framework)
    slow = replace(cluster, across=cluster.across / 50, pair=cluster.pair / 50)
    laid = ParallelPlan(global_batch=16, sharding="zero-1", sequence=512)
    exchanges = (
        (model.parameters * (framework.gradient + 2.0) * 15 / 16) / (slow.across * slow.network * framework.network / 8) / 8
    )
    assert estimate(model, laid, slow, framework).seconds > exchanges


def test_fewer_buckets_hide_less() -> None:
    plan = Plan(1, 0, "bert-large", 4, 4, 1, 1, "zero-0")
    machine = machine_of(plan)
    steps = [simulated(plan, machine, buckets=count) for count in (1, 2, 4, 16)]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.01 * steps[-1]


def test_the_channels_of_collectives_are_counted_once() -> None:
    """What kernels lose to collectives beside them is in the exposed part, which is fitted to whole steps."""
    plan = Plan(1, 0, "bert-large", 4, 4, 1, 1, "zero-3")
    few = load_machine("hwsim: machine/1\nclass: ideal\nuse: dgx-h100\ncollectives: {channels: 2}\n")
    assert simulated(plan, few) == pytest.approx(simulated(plan, machine_of(plan)), rel=0.02)
