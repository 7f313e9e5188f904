"""The family of workloads `train:`: schema, checks, lowering and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hwsim.families_interface import FamilyInterface, FamilyResult, quantities_by_job
from hwsim.graph.opgraph import capacities_of
from hwsim.machine import Machine
from hwsim.results.invariants import numbers
from hwsim.results.timeline import Timeline
from hwsim.spec import Mistakes, SpecError, Tree, Warning, decode
from hwsim.units import RATIO, TIME, Dimension
from hwsim.workload.file import Job, Workload
from hwsim.workload.lower import FamilyContext, Writing, marks, named_elsewhere
from hwsim.workload.programs import MAIN

if TYPE_CHECKING:
    from hwsim.families.training.results import TrainingResult


@dataclass(frozen=True)
class TrainingOutcome(FamilyResult):
    """The results of the trainings of a run."""

    timeline: Timeline

    @cached_property
    def found(self) -> tuple[TrainingResult, ...]:
        """Trainings, from their ops."""
        from hwsim.families.training.results import trainings

        return trainings(self.timeline)

    def expected(self) -> Mapping[str, float]:
        """Return the quantities of all trainings."""
        return {name: value for training in self.found for name, value in training.named().items()}

    def violations(self) -> Iterator[str]:
        """Yield the results that are NaN, infinite or negative."""
        return numbers(self.found, "trainings")


class TrainingFamily(FamilyInterface):
    """The family of `train:`."""

    quantities: Mapping[str, Dimension] = {
        "step": TIME,
        "mfu": RATIO,
        "days": TIME,
        "goodput": RATIO,
        "days_with_failures": TIME,
        "days_p90": TIME,
    }
    unfolded = "is a training or a service, which folds its own ranks"

    def schema(self, out: dict[str, Any], definitions: dict[str, Any]) -> None:
        """Add the keys to the JSON Schema; model, plan and synchronise may be texts or mappings."""
        from hwsim.families.training.workload.schema import ParallelKeys, SynchroniseKeys, TrainKeys
        from hwsim.workload.schema import embedded, put_schema

        train = embedded(TrainKeys, definitions)
        put_schema(train["properties"]["model"], {"anyOf": [{"type": "string"}, {"type": "object"}]})
        put_schema(train["properties"]["parallel"], {"anyOf": [{"const": "auto"}, embedded(ParallelKeys, definitions)]})
        ways: dict[str, Any] = {"enum": ["all-reduce", "parameter-server"]}
        put_schema(train["properties"]["synchronise"], {"anyOf": [ways, embedded(SynchroniseKeys, definitions)]})
        definitions["LoaderKeys"]["properties"]["stages"]["items"] = {"$ref": "#/$defs/Stage"}
        put_schema(out["properties"]["train"], train)

    def check(self, workload: Workload, mistakes: Mistakes) -> None:
        """Note the mistakes of the keys and the model."""
        from hwsim.families.training.workload import check_training  # models are slow to import

        for tree in workload.trees("train"):
            check_training(tree, mistakes)

    def ops(self, tree: Tree) -> tuple[Collection[str], list[Tree]]:
        """Return (devices of the loaders, ops of their stages)."""
        from hwsim.families.pipeline.workload import LoaderKeys, operations

        loader = tree.get("loader")
        keys = None if loader is None else decode(loader, LoaderKeys, Mistakes())
        return ((), []) if keys is None else (keys.each, [op for stage in keys.stages for op in operations(stage)])

    def idle(self, workload: Workload, machine: Machine) -> Iterable[Warning]:  # noqa: ARG002
        """Return warnings of keys without effect."""
        from hwsim.families.training.idle import idle_keys

        return idle_keys(workload)

    def wanted(self, workload: Workload) -> dict[str, Dimension]:
        """Return the quantities of each training, with their dimensions."""
        return quantities_by_job(workload.written_as("train"), self.quantities)

    def write(self, part: Job, ground: FamilyContext) -> None:
        """Write the steps; one replica represents identical ones, unless there are other jobs or jitter."""
        from hwsim.families.training.workload import TrainingRequest, add_training  # models are slow to import

        assert part.train is not None
        workload, disturbed = ground.workload, ground.disturbed
        drawn = any(event.jitter is not None for event in workload.events)  # random for each part
        fold: Writing = "never" if workload.jobs is not None or drawn else ground.fold
        changed = dict.fromkeys(capacities_of(disturbed)) if drawn else marks(disturbed)
        others = named_elsewhere(ground.job, workload, ground.machine)
        tree, at = part.on_devices(part.train), (ground.machine, ground.builder, ground.mistakes)
        add_training(TrainingRequest(tree, *at, ground.job or MAIN, part.start, fold, workload.jobs is not None, changed, others))

    def read(self, timeline: Timeline, workload: Tree | None) -> FamilyResult:
        """Return the results.

        Raises:
            SpecError: failures prevent the progress of a training.
        """
        told = TrainingOutcome(timeline)
        if any(training.job is not None for training in timeline.flat.graph.trainings):
            from hwsim.failures import NoProgress

            try:
                _ = told.found
            except NoProgress as error:
                train = None if workload is None else workload.get("train")
                raise SpecError.of(None if train is None else train.key_place("failures"), error.message, error.hint) from error
        return told


DOOR: FamilyInterface = TrainingFamily()
