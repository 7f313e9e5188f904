"""Training plan of a transformer from the keys of `train:`."""

from __future__ import annotations

import dataclasses
from typing import Final

from hwsim.communication import CannotCollect
from hwsim.families.training.workload.kinds import kinds_of
from hwsim.families.training.workload.layout import layout_of
from hwsim.families.training.workload.plan import PieceExchange, StageMemory, TrainingPlan
from hwsim.families.training.workload.schema import TrainKeys
from hwsim.families.training.workload.specification import SIZE, USUAL, is_auto, plan_of, sizes_of
from hwsim.machine import Machine, NoRoute
from hwsim.models import (
    DerivedPlan,
    Framework,
    ParallelPlan,
    Transformer,
    UnequalCluster,
    WrongPlan,
    cluster_of,
    derive_plan,
    overlap,
    stage_of,
    training_memory,
)
from hwsim.models.kernel_errors import step_errors
from hwsim.models.memory import FRAGMENTS, kept_of, recomputed, state_bytes
from hwsim.models.plan import Dtype
from hwsim.models.plan_text import assumed_sequence_text, plan_text
from hwsim.results.errors import table
from hwsim.spec import Mistakes, Place, Tree

__all__ = ["USUAL", "check", "planned"]

OF_NETWORKS: Final = ("synchronise", "threads")  # keys of CNNs and MLPs only
IN_PARALLEL: Final = ("tp", "pp", "dp", "cp", "ep", "order")


def planned(
    keys: TrainKeys,
    model: Transformer,
    framework: Framework,
    tree: Tree,
    machine: Machine,
    devices: tuple[str, ...],
    mistakes: Mistakes,
) -> TrainingPlan | None:
    """Return the given or the fastest plan, or None if mistakes were noted."""
    _foreign(keys, tree, mistakes)
    if not devices:
        return None
    try:
        kinds = kinds_of(machine, devices, framework)
        usual: Dtype = "bf16" if all("bf16" in costs.gpu.flop for costs in kinds.costs) else "fp16"
        stated = plan_of(keys, usual, mistakes)
        if stated is None:
            return None
        search = is_auto(keys)
        laid = _fastest(stated, model, tree, machine, devices, framework) if search else derive_plan(model, stated, len(devices))
    except WrongPlan as error:
        for key, message in error.mistakes:
            mistakes.add(_place(tree, key), message)
        return None
    except (UnequalCluster, NoRoute, CannotCollect) as error:
        mistakes.add(_place(tree, "parallel"), f"cannot search a parallel plan: {error}", f"parallel: {SIZE}")
        return None
    plan, stages = laid.plan, range(laid.plan.pp)
    errors, kind = step_errors(laid, framework, kinds.costs[0].times)
    sizes = {axis: getattr(plan, axis) for axis in ("order", "tp", "cp", "pp", "ep", "chunks")}
    return TrainingPlan(
        layout=layout_of(machine, devices, dp=laid.dp, **sizes),
        kinds=kinds,
        stages=[stage_of(laid, framework, stage) for stage in stages],
        held=[_held(laid, framework, stage) for stage in stages],
        batch=plan.global_batch // laid.dp,
        microbatches=laid.microbatches,
        schedule=plan.schedule,
        steps=keys.steps,
        exchange=PieceExchange(
            counts=[overlap.pieces(laid, stage, keys.buckets) for stage in stages],
            shards=laid.shards,
            waiting=framework.step,
            detail=keys.detail,
            layers=laid.layers,
            bucket=framework.bucket,
            errors=errors,
            unlike=table().kinds.unlike(kind),
            issue=framework.issue,
        ),
        network=framework.network,
        dtype=plan.dtype,
        text=plan_text(laid) + assumed_sequence_text(laid),
        count=laid.tokens,
        unit="tokens",
        flop=laid.tokens * laid.transformer.training_flop(laid.sequence),
        state=laid.transformer.parameters * state_bytes(plan),
        total=keys.tokens or (keys.epochs * keys.samples * laid.sequence if keys.epochs and keys.samples else 0.0),
    )


def _held(laid: DerivedPlan, framework: Framework, stage: int) -> StageMemory:
    memory = training_memory(laid, framework, stage)
    return StageMemory(
        always={
            "weights": memory.weights,
            "gradients": memory.gradients,
            "optimizer states": memory.optimizer,
            "buffers": memory.buffers,
        },
        kept=kept_of(laid, stage, framework, FRAGMENTS),
        recomputed=FRAGMENTS * recomputed(laid, framework, stage),
    )


def check(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes that do not depend on the machine."""
    _foreign(keys, tree, mistakes)
    sizes_of(keys, mistakes)


def _foreign(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note keys without effect."""
    for key in OF_NETWORKS:
        if tree.get(key) is not None:
            mistakes.add(tree.key_place(key), f"`{key}` has no effect on a transformer: it is for CNNs and MLPs")
    if keys.schedule == "interleaved" and keys.chunks == 1:
        message = "`schedule: interleaved` needs several virtual stages per stage, got `chunks: 1`"
        mistakes.add(tree.key_place("schedule"), message, "chunks: 2")
    split = keys.parallel is not None and (is_auto(keys) or (keys.parallel.is_mapping and keys.parallel.get("ep") is not None))
    if keys.imbalance > 1.0 and not split:
        message = "`imbalance` has no effect without expert parallelism"
        mistakes.add(tree.key_place("imbalance"), message, "parallel: {ep: 8}")


def _fastest(
    plan: ParallelPlan, model: Transformer, tree: Tree, machine: Machine, devices: tuple[str, ...], framework: Framework
) -> DerivedPlan:
    """Return the fastest plan that fits, by estimate; if none fits, the plan with the least memory."""
    from hwsim.models.search import Search

    fixed = {key for key, _ in tree.items()} & {field.name for field in dataclasses.fields(ParallelPlan)}
    best = Search(model, plan, framework, frozenset(fixed)).on(cluster_of(machine, devices), few=1)
    step = best.steps[0] if best.steps else best.nearest
    if step is None:
        raise WrongPlan((("parallel", f"no parallel plan uses {len(devices)} devices"),))
    return step.laid


def _place(tree: Tree, key: str) -> Place:
    """Return the place of a key of the plan, or of the mapping that would contain it."""
    inside = tree.get("parallel")
    if key in IN_PARALLEL and inside is not None:
        return inside.key_place(key)
    return tree.key_place(key)
