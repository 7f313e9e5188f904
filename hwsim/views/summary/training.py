"""Steps of a training: lines of the summary, and an entry of the JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwsim.formats import format_quantity, format_share, percent
from hwsim.results.cause import family
from hwsim.results.training import MAIN, Training
from hwsim.units import DAY
from hwsim.views.kit.document import picked
from hwsim.views.summary.capacities import group

if TYPE_CHECKING:
    from hwsim.results.failing import Checkpoints, Failing


def lines(training: Training) -> Iterator[tuple[str, str]]:
    """(title, text) of each line of the summary, after the name of the job if there are several."""
    of = "" if training.name == MAIN else f"{training.name}: "
    yield from ((title, f"{of}{text}") for title, text in _lines(training))


def _lines(training: Training) -> Iterator[tuple[str, str]]:
    represents = f"; one of {training.replicas:,} equal data-parallel replicas is simulated, and capacities show its use alone"
    yield "plan", training.plan + (represents if training.replicas > 1 else "")
    unit = training.unit
    step = f"{format_quantity(training.step_s, 's')} for {count(training.count)} {unit}"
    yield "step", step + (f"; the first {format_quantity(training.first_s, 's')}" if training.settles else "")
    on_each = f", {count(training.rate / training.gpus)} on each of {training.gpus:,}" if training.gpus > 1 else ""
    yield "throughput", f"{count(training.rate)} {unit}/s{on_each}, MFU {format_share(training.mfu)}"
    parts = (("computing", training.computing), ("exposed communication", training.exposed), ("bubble", training.bubble))
    yield "devices", ", ".join(f"{name} {format_share(part)}" for name, part in parts if part > 0)
    if training.kinds:
        yield "slowest", _kinds(training)
    if training.whole > 0:
        yield "training", f"{count(training.whole)} {unit} take {training.days:,.4g} days if every step is as the last"
    if training.saved is not None:
        yield from _saved(training, training.saved)
    if training.failing is not None:
        yield from _failing(training.failing)


def _saved(training: Training, saved: Checkpoints) -> Iterator[tuple[str, str]]:
    """A checkpoint: what it is, what it costs the training."""
    every = f"every {format_quantity(saved.every_s, 's')}, {saved.steps:,} steps: " if saved.steps else ""
    written = f"{format_quantity(saved.bytes, 'B')} in {format_quantity(saved.write_s, 's')} to {saved.target}"
    stops = f"training stops for {format_quantity(saved.stop_s, 's')}"
    slower = (
        f" and loses {format_quantity(saved.slower_s, 's')} beside the write" if saved.slower_s > 1e-3 * saved.write_s else ""
    )
    yield "checkpoint", f"{every}{written}; {stops}{slower}"
    if training.failing is None and training.whole > 0 and saved.steps:
        yield "", f"with checkpoints {training.saving_days:,.4g} days"


def _failing(failing: Failing) -> Iterator[tuple[str, str]]:
    """What failures leave: how often, the goodput and what the rest is lost to, and the days."""
    job, found = failing.job, failing.goodput
    causes = ", ".join(f"{name} {format_share(part)}" for name, part in _largest(job.by_cause))
    yield (
        "failures",
        f"one every {format_quantity(job.mtbf_s, 's')} ({causes}); a restart takes {format_quantity(found.down_s, 's')}",
    )
    yield "", f"rates of {job.name}"
    if found.spares:
        nodes = f"{found.spares:,} node{'s' if found.spares > 1 else ''}"
        yield "spares", f"{nodes} beside the {job.nodes:,}, while others are repaired"
    lost = ", ".join(f"{name} {percent(part)}" for name, part in _largest(found.lost) if part > 0)
    around = f" ({percent(found.low)} to {percent(found.high)})" if found.low < found.share else ""
    yield "goodput", f"{percent(found.share)}{around}; lost: {lost}"
    if failing.seconds > 0:
        days, low, high, p90 = (each / DAY for each in (failing.seconds, failing.low_s, failing.high_s, failing.p90_s))
        sites = f"{low:,.3g} to {high:,.3g} by what the rates are known to be; " if failing.low_s < failing.seconds else ""
        yield "days", f"{days:,.4g} with failures ({sites}by chance 9 of 10 below {p90:,.4g})"


def _largest(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(parts.items(), key=lambda each: (-each[1], each[0]))


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


def as_dict(training: Training) -> dict[str, Any]:
    """The entry of the document; keys end in their unit."""
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
        **({"checkpoints": {**asdict(training.saved), "costs_s": training.saved.costs_s}} if training.saved is not None else {}),
        **({"failures": _as_dict(training.failing)} if training.failing is not None else {}),
    }


def _as_dict(failing: Failing) -> dict[str, Any]:
    """What failures leave, for the document."""
    job, found = failing.job, failing.goodput
    numbers: dict[str, Any] = {
        "rates": job.name,
        "mtbf_s": job.mtbf_s,
        "restart_s": found.down_s,
        "spares": found.spares,
        "by_cause": job.by_cause,
        "goodput": found.share,
        "goodput_low": found.low,
        "goodput_high": found.high,
        "lost": dict(found.lost),
        "lost_by_cause": dict(found.by_cause),
        "near_every_s": found.near_every_s or None,
    }
    if failing.seconds > 0:
        names = ("mean", "p50", "p90", "low", "high")
        seconds = (failing.seconds, failing.p50_s, failing.p90_s, failing.low_s, failing.high_s)
        numbers |= {
            f"days_{name}": each / DAY if math.isfinite(each) else None for name, each in zip(names, seconds, strict=True)
        }
        numbers["failures"] = failing.failures
    return numbers


def count(value: float) -> str:
    """A number of things, with a prefix.

    >>> count(116_000), count(906), count(15e12)
    ('116 k', '906', '15 T')
    """
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"
