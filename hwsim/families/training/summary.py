"""Trainings in the summary, and their entries of the JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from hwsim.families.training.results import MAIN, TrainingResult
from hwsim.families_interface import SummaryLine
from hwsim.formats import counted, family, format_duration, format_quantity, format_share
from hwsim.units import DAY
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.failure_lines import as_dict as failing_as_dict
from hwsim.views.kit.failure_lines import failing_lines, saved_as_dict, saved_lines
from hwsim.views.kit.lines import above
from hwsim.views.summary.capacities import group

if TYPE_CHECKING:
    from hwsim.results.interval import Interval


def lines(training: TrainingResult, sure: Interval | None = None, *, alone: bool = True) -> Iterator[SummaryLine]:
    """Yield the facts of the summary.

    Args:
        training: training.
        sure: interval of the run, if the run is this training only.
        alone: whether the headline has its step time and throughput; else they are among these facts.
    """
    of = "" if training.name == MAIN else f"{training.name}: "
    if not alone:
        yield SummaryLine("step time", of + step(training))
        yield SummaryLine("throughput", of + throughput(training))
    yield from (SummaryLine(label, of + text, verbose) for label, text, verbose in _lines(training, sure))


def step(training: TrainingResult) -> str:
    """Return the step time and the amount per step, in words."""
    return f"{format_quantity(training.step_s, 's')} for {counted(training.count)} {training.unit}{_first(training)}"


def throughput(training: TrainingResult) -> str:
    """Return throughput, throughput per GPU and MFU, in words."""
    on_each = f", {counted(training.rate / training.gpus)} per GPU" if training.gpus > 1 else ""
    return f"{counted(training.rate)} {training.unit}/s{on_each}; MFU {format_share(training.mfu)}{above(training.mfu)}"


REPLICAS: Final = 3  # maximum number of listed replicas


def _replicas(training: TrainingResult) -> str:
    """Return the simulated data-parallel replicas and the number of identical ones, in words.

    >>> print(_replicas(TrainingResult("main", "", 64, 1, 1.0, 1.0, 1, "tokens", 1.0, 0.4, (), replicas=16, classes=((0, 1),
    ...     (1, 15)))))
    2 of 16 simulated: replica 0, replica 1 (15 identical)
    """
    shown = training.classes[:REPLICAS]
    classes = [f"replica {first}" + ("" if count == 1 else f" ({count:,} identical)") for first, count in shown]
    more = len(training.classes) - len(shown)
    return f"{len(training.classes):,} of {training.replicas:,} simulated: {', '.join(classes)}" + (
        f", {more:,} more" if more else ""
    )


def _lines(training: TrainingResult, sure: Interval | None) -> Iterator[SummaryLine]:
    parts = (("computing", training.computing), ("exposed communication", training.exposed), ("idle", training.bubble))
    yield SummaryLine("GPU time", ", ".join(f"{name} {format_share(part)}" for name, part in parts if part > 0))
    yield SummaryLine("parallel plan", training.plan)
    if training.classes:
        yield SummaryLine("replicas", _replicas(training), verbose=True)
    if training.kinds:
        yield SummaryLine("slowest GPUs", _kinds(training))
    if training.whole > 0:
        yield SummaryLine(
            "training", f"{format_duration(training.days * DAY)} at this rate ({counted(training.whole)} {training.unit})"
        )
    if training.saved is not None:
        yield from (SummaryLine(*line) for line in saved_lines(training.saved))
        if training.failing is None and training.whole > 0 and training.saved.interval_steps:
            yield SummaryLine("", f"{format_duration(training.saving_days * DAY)} with checkpoints")
    if training.failing is not None:
        yield from (SummaryLine(*line) for line in failing_lines(training.failing, sure))


def _first(training: TrainingResult) -> str:
    """Return a remark on the first step if it differs from later ones, else ""."""
    if training.first_alone:
        after = format_quantity(training.after_s, "s")
        return f"; first step only: later steps also wait for the {after} of communication after it (use `steps: 2`)"
    return f"; first step {format_quantity(training.first_s, 's')}" if training.settles else ""


def _kinds(training: TrainingResult) -> str:
    """Return the slowest kind of GPU and the idle times of the others, in words."""
    families = {family(name) for kind in training.kinds for name in kind.devices}
    apart = len(families) >= len(training.kinds)
    names = [group(kind.devices, whole=apart and len(set(map(family, kind.devices))) == 1) for kind in training.kinds]
    slowest = training.kinds[0]
    waits = [
        f"{name} {format_quantity(slowest.computing_s - kind.computing_s, 's')}"
        for name, kind in zip(names[1:], training.kinds[1:], strict=True)
    ]
    return f"{names[0]}: {format_quantity(slowest.computing_s, 's')} of kernels per step; idle meanwhile: {', '.join(waits)}"


def as_dict(training: TrainingResult, sure: Interval | None = None) -> dict[str, Any]:
    """Return the entry of the JSON document; keys end in their unit; `sure`: see `lines`."""
    slowest = max((kind.computing_s for kind in training.kinds), default=0.0)
    kinds = [
        {**select_attributes(kind, "devices", "computing_s"), "idle_s": slowest - kind.computing_s} for kind in training.kinds
    ]
    return {
        **select_attributes(training, "name", "plan", "steps", "step_s", "mfu", "computing", "exposed", "bubble"),
        **select_attributes(training, devices="gpus", first_step_s="first_s"),
        f"{training.unit}_per_step": training.count,
        f"{training.unit}_per_s": training.rate,
        "stages": [asdict(stage) for stage in training.stages],
        "days": training.days if training.whole > 0 else None,
        **({"gpu_kinds": kinds} if kinds else {}),
        **({"checkpoints": saved_as_dict(training.saved)} if training.saved is not None else {}),
        **({"failures": failing_as_dict(training.failing, sure)} if training.failing is not None else {}),
    }
