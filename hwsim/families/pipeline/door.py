"""`pipeline:` as a door."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hwsim.doors import Door, Told
from hwsim.machine import Machine
from hwsim.ops import OPS, CannotPlace
from hwsim.results.timeline import Timeline
from hwsim.spec import Mistakes, Tree, Warning, decode
from hwsim.workload.file import Job, Workload
from hwsim.workload.lower import Ground
from hwsim.workload.programs import MAIN


class Pipelines(Door):
    """`pipeline:`."""

    exact = False
    unfolded = "has a pipeline, whose stages share pools, and those are given in the order of their ops"

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Stages, whose ops are as those of programs."""
        from hwsim.families.pipeline.workload import PipelineKeys, StageKeys
        from hwsim.workload.schema import embedded, put_schema

        pipeline = embedded(PipelineKeys, definitions)
        statement = definitions["Statement"]["properties"]
        inside = {kind: statement[kind] for kind in sorted(OPS)}
        needed = [key for key in inside["read"]["required"] if key != "bytes"]  # which the dataset may say
        inside["read"] = {**inside["read"], "required": needed}
        stage = embedded(StageKeys, definitions)
        op = {**definitions["Statement"], "title": "op of a stage", "properties": inside}
        do = {"type": "array", "items": op, "description": stage["properties"]["do"]["description"]}
        definitions["Stage"] = {"title": "stage", **stage, "properties": {**inside, **stage["properties"], "do": do}}
        stages = {"type": "array", "items": {"$ref": "#/$defs/Stage"}}
        pipeline["properties"]["stages"] = stages | {"description": pipeline["properties"]["stages"]["description"]}
        put_schema(out["properties"]["pipeline"], pipeline)

    def check(self, workload: Workload, mistakes: Mistakes) -> None:
        """Note the mistakes of its stages; those of a job are noted once it is lowered."""
        from hwsim.families.pipeline.checking import check_stages

        if workload.pipeline is not None:
            check_stages(workload.pipeline, mistakes)

    def suspicions(self, workload: Workload) -> Iterable[Warning]:
        """Stages with more workers than ever work."""
        from hwsim.families.pipeline.checking import idle_workers

        return () if workload.pipeline is None else idle_workers(workload.pipeline)

    def idle(self, workload: Workload, machine: Machine) -> Iterable[Warning]:
        """Keys of checkpoints."""
        from hwsim.families.pipeline.checking import idle_keys

        return idle_keys(workload, machine)

    def ops(self, tree: Tree) -> tuple[Collection[str], list[Tree]]:
        """The ops of all stages."""
        from hwsim.families.pipeline.workload import PipelineKeys, operations

        keys = decode(tree, PipelineKeys, Mistakes())
        return ((), []) if keys is None else (keys.each, [op for stage in keys.stages for op in operations(stage)])

    def write(self, part: Job, ground: Ground) -> None:
        """Its ops, once for each device of the job."""
        from hwsim.families.pipeline.workload import add_pipeline

        assert part.pipeline is not None
        tree, name = part.on_devices(part.pipeline, "each"), ground.job or MAIN
        try:
            add_pipeline(tree, ground.machine, ground.builder, ground.mistakes, name=name, start=part.start)
        except CannotPlace as error:
            ground.mistakes.add(part.pipeline.place, error.message, error.hint)

    def read(self, timeline: Timeline, workload: Tree | None) -> Told:  # noqa: ARG002
        """Its phases, which are worked out when they are asked for."""
        from hwsim.families.pipeline.told import Ran

        return Ran(timeline)


DOOR: Door = Pipelines()
