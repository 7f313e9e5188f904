"""The family of workloads `pipeline:`: schema, checks, lowering and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hwsim.families.pipeline.workload import PipelineKeys, StageKeys, add_pipeline, operations
from hwsim.families.pipeline.workload.parser import STAGE, check_stages
from hwsim.families_interface import FamilyInterface, FamilyResult
from hwsim.machine import Machine, UnknownName
from hwsim.ops import OPS, CannotPlace
from hwsim.results.timeline import Timeline
from hwsim.spec import Mistakes, Tree, Warning, decode
from hwsim.workload.file import Job, Workload
from hwsim.workload.lower import FamilyContext
from hwsim.workload.programs import MAIN
from hwsim.workload.schema import embedded, put_schema
from hwsim.workload.unused_keys import no_effect

if TYPE_CHECKING:
    from hwsim.families.pipeline.starvation import PipelineUse


@dataclass(frozen=True)
class PipelineOutcome(FamilyResult):
    """The results of the pipelines of a run."""

    timeline: Timeline

    @cached_property
    def found(self) -> tuple[PipelineUse, ...]:
        """Use of each pipeline, with the phases of its epochs."""
        from hwsim.families.pipeline.starvation import pipelines

        return pipelines(self.timeline)


class PipelineFamily(FamilyInterface):
    """The family of `pipeline:`."""

    exact = False
    unfolded = "has a pipeline, whose stages acquire shared pools in the order of their ops"

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Add the stages to the JSON Schema; a stage takes the same ops as a program."""
        pipeline = embedded(PipelineKeys, definitions)
        statement = definitions["Statement"]["properties"]
        inside = {kind: statement[kind] for kind in sorted(OPS)}
        needed = [key for key in inside["read"]["required"] if key != "bytes"]  # the dataset may set `bytes`
        inside["read"] = {**inside["read"], "required": needed}
        stage = embedded(StageKeys, definitions)
        op = {**definitions["Statement"], "title": "op of a stage", "properties": inside}
        do = {"type": "array", "items": op, "description": stage["properties"]["do"]["description"]}
        definitions["Stage"] = {"title": "stage", **stage, "properties": {**inside, **stage["properties"], "do": do}}
        stages = {"type": "array", "items": {"$ref": "#/$defs/Stage"}}
        pipeline["properties"]["stages"] = stages | {"description": pipeline["properties"]["stages"]["description"]}
        put_schema(out["properties"]["pipeline"], pipeline)

    def check(self, workload: Workload, mistakes: Mistakes) -> None:
        """Note the mistakes of the stages; those of a job are noted when it is lowered."""
        if workload.pipeline is not None:
            keys = decode(workload.pipeline, PipelineKeys, mistakes)
            if keys is not None:
                check_stages(keys, workload.pipeline, mistakes)

    def suspicions(self, workload: Workload) -> Iterable[Warning]:
        """Return warnings of stages with workers that are always idle."""
        return () if workload.pipeline is None else _idle_workers(workload.pipeline)

    def idle(self, workload: Workload, machine: Machine) -> Iterable[Warning]:
        """Return warnings of keys of checkpoints without effect."""
        return _idle_keys(workload, machine)

    def ops(self, tree: Tree) -> tuple[Collection[str], list[Tree]]:
        """Return (devices of `each`, ops of all stages)."""
        keys = decode(tree, PipelineKeys, Mistakes())
        return ((), []) if keys is None else (keys.each, [op for stage in keys.stages for op in operations(stage)])

    def write(self, part: Job, ground: FamilyContext) -> None:
        """Write the ops, once for each device of the job."""
        assert part.pipeline is not None
        tree, name = part.on_devices(part.pipeline, "each"), ground.job or MAIN
        try:
            add_pipeline(tree, ground.machine, ground.builder, ground.mistakes, name=name, start=part.start)
        except CannotPlace as error:
            ground.mistakes.add(part.pipeline.place, error.message, error.hint)

    def read(self, timeline: Timeline, workload: Tree | None) -> FamilyResult:  # noqa: ARG002
        """Return the results, which are computed on demand."""
        return PipelineOutcome(timeline)


def _idle_workers(pipeline: Tree) -> Iterator[Warning]:
    """Yield warnings of stages with more workers than `ahead` keeps busy."""
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
        place = (trees[number].get("at_once") or trees[number]).place
        yield Warning(
            "idle-workers",
            f"at_once: {stage.at_once} exceeds the limit of `ahead`: at most {min(rooms)} of these workers "
            f"are busy at the same time; ahead: {ahead[number] + stage.at_once - min(rooms)} keeps all of them busy",
            place,
        )


def _idle_keys(workload: Workload, machine: Machine) -> Iterator[Warning]:
    """Yield warnings of keys of checkpoints without effect on this kind of disk."""
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
            yield no_effect(saved, given, why, "an ssd, hdd or filesystem uses them")


DOOR: FamilyInterface = PipelineFamily()
