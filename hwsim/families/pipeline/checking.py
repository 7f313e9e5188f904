"""What can be said of a pipeline before it runs: mistakes, workers that never work, and keys without effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwsim.families.pipeline.workload import PipelineKeys, StageKeys, operations, refuse_sharded, with_defaults
from hwsim.families.pipeline.workload.reading import STAGE
from hwsim.machine import Machine, UnknownName
from hwsim.spec import Mistakes, Tree, Warning, decode
from hwsim.workload.checking import check_op
from hwsim.workload.file import Workload
from hwsim.workload.unheeded import no_effect


def check_stages(pipeline: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes of its stages."""
    keys = decode(pipeline, PipelineKeys, mistakes)
    if keys is None:
        return
    refuse_sharded(keys, mistakes)
    for tree in [op for stage in keys.stages for op in operations(stage)]:
        filled = {kind: with_defaults(kind, inner, keys, pipeline.get("dataset")) for kind, inner in tree.items()}
        check_op(replace(tree, value=filled) if filled else tree, mistakes, of_stage=True)


def idle_workers(pipeline: Tree) -> Iterator[Warning]:
    """Stages with more workers than `ahead` ever lets work."""
    keys = decode(pipeline, PipelineKeys, Mistakes())
    if keys is None:
        return
    trees = [tree.without(*[key for key, _ in tree.items() if key not in STAGE]) for tree in keys.stages if tree.is_mapping]
    stages = [decode(tree, StageKeys, Mistakes()) for tree in trees]
    ahead = [keys.ahead if stage is None or stage.ahead is None else stage.ahead for stage in stages]
    for number, stage in enumerate(stages[:-1]):
        rooms = [
            sum(ahead[number:later]) + then.at_once  # integers
            for later, then in enumerate(stages)
            if later > number and then is not None
        ]
        if stage is None or not rooms or stage.at_once <= min(rooms):
            continue
        at = (trees[number].get("at_once") or trees[number]).place
        yield Warning(
            "idle-workers",
            f"at_once: {stage.at_once} is more than `ahead` allows: at most {min(rooms)} "
            f"of these workers ever work at the same time; ahead: {ahead[number] + stage.at_once - min(rooms)} lets all of them",
            at,
        )


def idle_keys(workload: Workload, machine: Machine) -> Iterator[Warning]:
    """Keys of checkpoints that change nothing on a disk of the kind that is given."""
    for pipeline in workload.trees("pipeline"):
        saved = pipeline.get("checkpoint")
        target = saved.text("to") if saved is not None and saved.is_mapping else None
        if saved is None or target is None:
            continue
        try:
            device = machine.device(machine.select((target,))[0])
        except UnknownName:
            continue
        given = [key for key in ("request", "depth") if saved.get(key) is not None]
        if given and device.model.kind == "disk":
            why = f"{target} is of kind disk, which writes a checkpoint in one sequence"
            yield no_effect(saved, given, why, "an ssd, hdd or filesystem knows them")
