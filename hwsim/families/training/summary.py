"""Steps of a training: lines of the summary, and an entry of the JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from hwsim.families.training.results import MAIN, Training
from hwsim.formats import family, format_quantity, format_share, lasting, prefixed
from hwsim.units import DAY
from hwsim.views.kit.document import picked
from hwsim.views.kit.failing import as_dict as failing_as_dict
from hwsim.views.kit.failing import failing_lines, saved_as_dict, saved_lines
from hwsim.views.kit.lines import above
from hwsim.views.summary.capacities import group

if TYPE_CHECKING:
    from hwsim.results.interval import Interval


def lines(training: Training, sure: Interval | None = None) -> Iterator[tuple[str, str]]:
    """(title, text) of each line of the summary, after the name of the job if there are several.

    sure: how sure the run is, where it is this training alone.
    """
    of = "" if training.name == MAIN else f"{training.name}: "
    yield from ((title, f"{of}{text}") for title, text in _lines(training, sure))


REPLICAS: Final = 3  # of those that were simulated, how many are listed


def _replicas(training: Training) -> str:
    """The data-parallel replicas that were simulated, and how many classes of them represents.

    >>> print(_replicas(Training("main", "", 64, 1, 1.0, 1.0, 1, "tokens", 1.0, 0.4, (), replicas=16, classes=((0, 1), (1, 15)))))
    2 of 16 simulated: number 0 for itself, number 1 for 15 that are alike
    """
    shown = training.classes[:REPLICAS]
    classes = [f"number {first} for " + ("itself" if many == 1 else f"{many:,} that are alike") for first, many in shown]
    more = len(training.classes) - len(shown)
    return f"{len(training.classes):,} of {training.replicas:,} simulated: {', '.join(classes)}" + (
        f", and {more:,} more" if more else ""
    )


def _lines(training: Training, sure: Interval | None) -> Iterator[tuple[str, str]]:
    yield "plan", training.plan
    if training.classes:
        yield "replicas", _replicas(training)
    unit = training.unit
    step = f"{format_quantity(training.step_s, 's')} for {prefixed(training.count)} {unit}"
    yield "step", step + _first(training)
    on_each = f", {prefixed(training.rate / training.gpus)} on each of {training.gpus:,}" if training.gpus > 1 else ""
    yield "throughput", f"{prefixed(training.rate)} {unit}/s{on_each}, MFU {format_share(training.mfu)}{above(training.mfu)}"
    parts = (("computing", training.computing), ("exposed communication", training.exposed), ("bubble", training.bubble))
    yield "devices", ", ".join(f"{name} {format_share(part)}" for name, part in parts if part > 0)
    if training.kinds:
        yield "slowest", _kinds(training)
    if training.whole > 0:
        like = "first" if training.first_alone else "last"
        yield (
            "training",
            f"{prefixed(training.whole)} {unit} take {lasting(training.days * DAY)} if every step is as the {like}",
        )
    if training.saved is not None:
        yield from saved_lines(training.saved)
        if training.failing is None and training.whole > 0 and training.saved.steps:
            yield "", f"with checkpoints {lasting(training.saving_days * DAY)}"
    if training.failing is not None:
        yield from failing_lines(training.failing, sure)


def _first(training: Training) -> str:
    """Time of the first step, if others are not like it."""
    if training.first_alone:
        after = format_quantity(training.after_s, "s")
        return f"; a first step: {after} of work for the next one come after it, and later steps take longer (`steps: 2`)"
    return f"; the first {format_quantity(training.first_s, 's')}" if training.settles else ""


def _kinds(training: Training) -> str:
    """The kind of GPU that sets the pace, and the waits of the others."""
    families = {family(name) for kind in training.kinds for name in kind.devices}
    apart = len(families) >= len(training.kinds)
    names = [group(kind.devices, whole=apart and len(set(map(family, kind.devices))) == 1) for kind in training.kinds]
    slowest = training.kinds[0]
    waits = [
        f"{name} {format_quantity(slowest.computing_s - kind.computing_s, 's')}"
        for name, kind in zip(names[1:], training.kinds[1:], strict=True)
    ]
    return f"{names[0]}: {format_quantity(slowest.computing_s, 's')} of kernels a step; waiting for it: {', '.join(waits)}"


def as_dict(training: Training, sure: Interval | None = None) -> dict[str, Any]:
    """The entry of the document; keys end in their unit.  sure: see `lines`."""
    slowest = max((kind.computing_s for kind in training.kinds), default=0.0)
    kinds = [{**picked(kind, "devices", "computing_s"), "waits_s": slowest - kind.computing_s} for kind in training.kinds]
    return {
        **picked(training, "name", "plan", "steps", "step_s", "mfu", "computing", "exposed", "bubble"),
        **picked(training, devices="gpus", first_step_s="first_s"),
        f"{training.unit}_per_step": training.count,
        f"{training.unit}_per_s": training.rate,
        "stages": [asdict(stage) for stage in training.stages],
        "days": training.days if training.whole > 0 else None,
        **({"kinds": kinds} if kinds else {}),
        **({"checkpoints": saved_as_dict(training.saved)} if training.saved is not None else {}),
        **({"failures": failing_as_dict(training.failing, sure)} if training.failing is not None else {}),
    }
