"""Facts on trainings for views, studies, plans and costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.families_interface import FamilyReport, Place, SummaryLine
from hwsim.formats import format_quantity, format_share
from hwsim.results.result import Result
from hwsim.units import DAY

if TYPE_CHECKING:
    from hwsim.families.training.results import TrainingResult
    from hwsim.results.interval import Interval

MILLION = 1e6
STEPS_ALONE = 0.05  # share of a run outside its steps up to which the run counts as steps only


def found(result: Result) -> Sequence[TrainingResult]:
    """Return the trainings of a run."""
    every: Sequence[TrainingResult] = result.told["train"].found
    return every


def _of_step(result: Result, training: TrainingResult) -> Interval | None:
    """Return the interval of a run with one training and failures, else None."""
    alone = result.sure and len(found(result)) == 1 and not result.jobs
    return result.interval if training.failing is not None and alone else None


class TrainingFacts(FamilyReport):
    """The facts of `train:`."""

    billed = True

    def headline(self, result: Result) -> Iterator[SummaryLine]:
        """Yield step time and throughput of a run with one training."""
        from hwsim.families.training import summary

        if len(found(result)) == 1 and not result.jobs:
            (training,) = found(result)
            simulated = f"{format_quantity(result.makespan_s, 's')}{self.during(result)}"
            yield SummaryLine("step time", f"{summary.step(training)} (simulated: {simulated})")
            yield SummaryLine("throughput", summary.throughput(training))

    def headline_s(self, result: Result) -> float | None:
        """Return the step time of a run that consists almost entirely of steps of one training (s), else None."""
        if len(found(result)) != 1 or result.jobs:
            return None
        (training,) = found(result)
        return training.step_s if abs(training.steps * training.step_s / result.makespan_s - 1.0) < STEPS_ALONE else None

    def rows(self, result: Result) -> Iterator[SummaryLine]:
        """Yield the rows of each training."""
        from hwsim.families.training import summary

        alone = len(found(result)) == 1 and not result.jobs
        for training in found(result):
            yield from summary.lines(training, _of_step(result, training), alone=alone)

    def during(self, result: Result) -> str:
        """Return a description of the simulated steps of a run with one training."""
        if len(found(result)) != 1 or result.jobs or found(result)[0].steps < 2:
            return ""
        (training,) = found(result)
        if training.saved is not None:
            written, saves = training.saved.written, result.simulated.flat.graph.trainings[0].saves
            further = " and a step during its write" if saves is not None and saves.extra else ""
            return f" for {training.steps:,} steps, {written} checkpoint{'s' if written > 1 else ''}{further}"
        after = result.makespan_s - training.ended_s  # weights gathered for the next step
        rest = f" and {format_quantity(after, 's')} of communication after them" if after > 1e-3 * training.step_s else ""
        return f" for {training.steps:,} steps{rest}"

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """Return the entries of all trainings."""
        from hwsim.families.training import summary

        return {"trainings": [summary.as_dict(training, _of_step(result, training)) for training in found(result)]}

    def explained(self, result: Result, place: Place) -> Iterator[str]:
        """Yield the time lost to failures."""
        from hwsim.families.training.explain import lost

        for training in found(result) if place == "accounting" else ():
            if training.failing is not None:
                yield from lost(training.name, training.failing)

    def explained_entries(self, result: Result) -> dict[str, Any]:
        """Return goodput and days of each training with failure rates."""
        from hwsim.views.kit.failure_lines import as_dict

        left = {training.name: as_dict(training.failing) for training in found(result) if training.failing is not None}
        return {"failures": left} if left else {}

    def title(self, result: Result) -> str:
        """Return a sentence on the step time and the shares of its GPUs."""
        if len(found(result)) != 1:
            return ""
        (training,) = found(result)
        idle = "wait for other stages" if len(training.stages) > 1 else "are idle for"
        waits = (("wait for communication", training.exposed), (idle, training.bubble))
        name, part = max(waits, key=lambda row: row[1])
        more = f" and {name} {format_share(part)}" if part >= 0.005 else ""
        return f"{format_quantity(training.step_s, 's')} per step: GPUs compute {format_share(training.computing)} of it{more}"

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Yield step time, throughput and MFU of the first training."""
        for training in found(result)[:1]:
            yield "step_s", training.step_s
            yield ("tokens_per_s" if training.unit == "tokens" else "samples_per_s"), training.rate
            yield "mfu", training.mfu

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Yield (unit, amount, rate) of the samples or tokens of all steps, and of the FLOP of the model."""
        unit = found(result)[0].unit
        alike = [training for training in found(result) if training.unit == unit]
        unit = unit if unit == "tokens" else "samples"  # images or sequences
        yield unit, fsum(run.count * run.steps for run in alike), fsum(run.rate for run in alike)
        yield "FLOP", fsum(run.flop * run.steps for run in alike), fsum(run.flop / run.step_s for run in alike if run.step_s)

    def numbers(self, result: Result) -> dict[str, float]:
        """Return step time, MFU and computing share of the first training, and its total time."""
        training = found(result)[0]
        numbers = {"step": training.step_s, "mfu": training.mfu, "busy": training.computing}
        return numbers | ({"training": training.days * DAY} if training.whole else {})

    def whole(self, result: Result) -> tuple[float, float] | None:
        """Return (time of the entire training (s), share of spare nodes) of a run with one training, or None."""
        if len(found(result)) != 1 or result.jobs or result.makespan_s <= 0:
            return None
        (training,) = found(result)
        if training.whole <= 0:
            return None
        if training.failing is not None and training.failing.seconds > 0:
            return training.failing.seconds, training.failing.goodput.spares / max(1, training.failing.job.nodes)
        return training.saving_days * DAY, 0.0

    def counts(self, result: Result) -> Iterable[tuple[str, float, float, float]]:
        """Return the tokens or samples of the first training, in millions."""
        return [(f"1 M {run.unit}", run.count * run.steps / MILLION, 1.0, 1.0) for run in found(result)[:1]]


FACTS: FamilyReport = TrainingFacts()
