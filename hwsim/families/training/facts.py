"""What views, studies, plans and costs say of trainings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any

from hwsim.doors import Fact, Facts, Place
from hwsim.formats import format_quantity, format_share
from hwsim.results.result import Result
from hwsim.units import DAY

if TYPE_CHECKING:
    from hwsim.families.training.results import Training
    from hwsim.results.interval import Interval

MILLION = 1e6
STEPS_ALONE = 0.05  # part of a run beside its steps, up to which their interval is that of the run


def found(result: Result) -> Sequence[Training]:
    """The trainings of a run."""
    every: Sequence[Training] = result.told["train"].found
    return every


def _of_step(result: Result, training: Training) -> Interval | None:
    """The interval of a run that is one training, whose failures it widens."""
    alone = result.sure and len(found(result)) == 1 and not result.jobs
    return result.interval if training.failing is not None and alone else None


class OfTrainings(Facts):
    """`train:`."""

    billed = True

    def headline(self, result: Result) -> Iterator[Fact]:
        """The time of a step, of a run that is one training."""
        from hwsim.families.training import summary

        if len(found(result)) == 1 and not result.jobs:
            (training,) = found(result)
            simulated = f"{format_quantity(result.makespan_s, 's')}{self.during(result)}"
            yield Fact("step time", f"{summary.step(training)} (simulated: {simulated})")
            yield Fact("throughput", summary.throughput(training))

    def headline_s(self, result: Result) -> float | None:
        """Seconds of a step, of a run that is hardly anything but steps of one training."""
        if len(found(result)) != 1 or result.jobs:
            return None
        (training,) = found(result)
        return training.step_s if abs(training.steps * training.step_s / result.makespan_s - 1.0) < STEPS_ALONE else None

    def rows(self, result: Result) -> Iterator[Fact]:
        """The rows of each training."""
        from hwsim.families.training import summary

        alone = len(found(result)) == 1 and not result.jobs
        for training in found(result):
            yield from summary.lines(training, _of_step(result, training), alone=alone)

    def during(self, result: Result) -> str:
        """The steps of a run that is one training."""
        if len(found(result)) != 1 or result.jobs or found(result)[0].steps < 2:
            return ""
        (training,) = found(result)
        if training.saved is not None:
            written, saves = training.saved.written, result.simulated.flat.graph.trainings[0].saves
            further = " and a step during its write" if saves is not None and saves.extra else ""
            return f" for {training.steps:,} steps, {written} checkpoint{'s' if written > 1 else ''}{further}"
        after = result.makespan_s - training.ended_s  # weights that are gathered for a next step
        rest = f" and {format_quantity(after, 's')} of communication after them" if after > 1e-3 * training.step_s else ""
        return f" for {training.steps:,} steps{rest}"

    def entries(self, result: Result, *, rows: bool) -> dict[str, Any]:  # noqa: ARG002
        """Each training."""
        from hwsim.families.training import summary

        return {"trainings": [summary.as_dict(each, _of_step(result, each)) for each in found(result)]}

    def explained(self, result: Result, place: Place) -> Iterator[str]:
        """The time that failures cost."""
        from hwsim.families.training.explain import lost

        for training in found(result) if place == "accounting" else ():
            if training.failing is not None:
                yield from lost(training.name, training.failing)

    def explained_entries(self, result: Result) -> dict[str, Any]:
        """Goodput and days of each training whose parts fail."""
        from hwsim.views.kit.failing import as_dict

        left = {each.name: as_dict(each.failing) for each in found(result) if each.failing is not None}
        return {"failures": left} if left else {}

    def title(self, result: Result) -> str:
        """The time of a step, and what its GPUs do in it."""
        if len(found(result)) != 1:
            return ""
        (training,) = found(result)
        idle = "wait for other stages" if len(training.stages) > 1 else "have nothing to do for"
        waits = (("wait for communication", training.exposed), (idle, training.bubble))
        name, part = max(waits, key=lambda each: each[1])
        more = f" and {name} {format_share(part)}" if part >= 0.005 else ""
        return f"{format_quantity(training.step_s, 's')} a step: GPUs compute {format_share(training.computing)} of it{more}"

    def measures(self, result: Result) -> Iterator[tuple[str, float]]:
        """Time of a step, rate and MFU."""
        for training in found(result)[:1]:
            yield "step_s", training.step_s
            yield ("tokens_per_s" if training.unit == "tokens" else "samples_per_s"), training.rate
            yield "mfu", training.mfu

    def work(self, result: Result) -> Iterator[tuple[str, float, float]]:
        """Samples or tokens of all steps, and what the model does with them."""
        unit = found(result)[0].unit
        alike = [training for training in found(result) if training.unit == unit]
        unit = unit if unit == "tokens" else "samples"  # images, sequences, ...
        yield unit, fsum(run.count * run.steps for run in alike), fsum(run.rate for run in alike)
        yield "FLOP", fsum(run.flop * run.steps for run in alike), fsum(run.flop / run.step_s for run in alike if run.step_s)

    def numbers(self, result: Result) -> dict[str, float]:
        """Of the first training, with the time of all of it."""
        training = found(result)[0]
        numbers = {"step": training.step_s, "mfu": training.mfu, "busy": training.computing}
        return numbers | ({"training": training.days * DAY} if training.whole else {})

    def whole(self, result: Result) -> tuple[float, float] | None:
        """The one training that the run is the beginning of, with failures where they are known."""
        if len(found(result)) != 1 or result.jobs or result.makespan_s <= 0:
            return None
        (training,) = found(result)
        if training.whole <= 0:
            return None
        if training.failing is not None and training.failing.seconds > 0:
            return training.failing.seconds, training.failing.goodput.spares / max(1, training.failing.job.nodes)
        return training.saving_days * DAY, 0.0

    def counts(self, result: Result) -> Iterable[tuple[str, float, float, float]]:
        """What the steps of the first training read."""
        return [(f"1 M {each.unit}", each.count * each.steps / MILLION, 1.0, 1.0) for each in found(result)[:1]]


FACTS: Facts = OfTrainings()
