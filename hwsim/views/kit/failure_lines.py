"""Checkpoints and failures of a training as lines, rows and JSON entries, for several views."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hwsim.formats import format_duration, format_quantity, format_share, percent, pluralized
from hwsim.results.training_failures import combined_range
from hwsim.units import DAY

if TYPE_CHECKING:
    from hwsim.results.interval import Interval
    from hwsim.results.training_failures import Checkpoints, FailureOutcome


def saved_lines(saved: Checkpoints) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of the checkpoints: size, write time, and the pause of the training."""
    steps = saved.interval_steps
    every = f"every {format_quantity(saved.interval_s, 's')} ({pluralized(steps, 'step')}): " if steps else ""
    written = f"{format_quantity(saved.bytes, 'B')} in {format_quantity(saved.write_s, 's')} to {saved.storage}"
    stops = f"training pauses for {format_quantity(saved.pause_s, 's')}"
    slower = (
        f" and is slowed by {format_quantity(saved.slowdown_s, 's')} during the write"
        if saved.slowdown_s > 1e-3 * saved.write_s
        else ""
    )
    yield "checkpoint", f"{every}{written}; {stops}{slower}"


def failing_lines(failing: FailureOutcome, sure: Interval | None = None) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of the failures: MTBF, goodput, causes of lost time, and the duration of the training.

    Args:
        failing: goodput and time with failures.
        sure: interval of a step, or of several steps.
    """
    job, goodput = failing.job, failing.goodput
    causes = ", ".join(f"{name} {format_share(part)}" for name, part in largest(job.by_cause))
    restart = format_quantity(goodput.down_s, "s")
    yield "failures", f"MTBF {format_quantity(job.mtbf_s, 's')} ({causes}); a restart takes {restart}"
    if job.name:
        yield "failure rates", job.name
    if goodput.spares:
        nodes = f"{goodput.spares:,} node{'s' if goodput.spares > 1 else ''}"
        yield "spares", f"{nodes} beside the {job.nodes:,}, to replace nodes under repair"
    lost = ", ".join(f"{name} {percent(part)}" for name, part in largest(goodput.lost))
    around = f" (90 % interval {percent(goodput.low)} to {percent(goodput.high)})" if goodput.low < goodput.share else ""
    yield "goodput", f"{percent(goodput.share)}{around}; lost to {lost or 'nothing'}"
    if failing.seconds > 0:
        yield from _days(failing, sure)


def _days(failing: FailureOutcome, sure: Interval | None) -> Iterator[tuple[str, str]]:
    """Yield the duration of the entire training with failures."""
    long = failing.seconds >= 2 * DAY

    def shown(seconds: float | None) -> str:
        return "never" if seconds is None else f"{seconds / DAY:,.4g} days" if long else format_duration(seconds)

    parts = [f"p90 {shown(failing.p90_s)}"]
    if failing.low_s < failing.seconds:
        parts.append(f"{shown(failing.low_s)} to {shown(failing.high_s)} by the uncertainty of the rates")
    yield "with failures", f"{shown(failing.seconds)} ({'; '.join(parts)})"
    if (ends := combined_range(failing, sure)) is not None:
        yield "90 % interval", f"{shown(ends[0])} to {shown(ends[1])}, with the uncertainty of a step"


def accounted(failing: FailureOutcome) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """Return (share of the time by use, work first; share of the lost time by cause)."""
    goodput = failing.goodput
    return [("work", goodput.share), *largest(goodput.lost)], largest(goodput.by_cause)


def largest(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the parts above 0, largest first."""
    return sorted(((name, part) for name, part in parts.items() if part > 0), key=lambda pair: (-pair[1], pair[0]))


def saved_as_dict(saved: Checkpoints) -> dict[str, Any]:
    """Return the checkpoints as a JSON entry; keys end in their unit."""
    entries = {**asdict(saved), "overhead_s": saved.overhead_s}
    return entries if saved.interval_steps else {**entries, "interval_s": None, "interval_steps": None}


def as_dict(failing: FailureOutcome, sure: Interval | None = None) -> dict[str, Any]:
    """Return goodput and duration as a JSON entry.

    Args:
        failing: goodput and time with failures.
        sure: interval of a step, or of several steps.
    """
    job, goodput = failing.job, failing.goodput
    numbers: dict[str, Any] = {
        "rates": job.name,
        "mtbf_s": job.mtbf_s if math.isfinite(job.mtbf_s) else None,
        "restart_s": goodput.down_s,
        "spares": goodput.spares,
        "by_cause": job.by_cause,
        "goodput": goodput.share,
        "goodput_low": goodput.low,
        "goodput_high": goodput.high,
        "lost": dict(goodput.lost),
        "lost_by_cause": dict(goodput.by_cause),
        "memory_copy_interval_s": goodput.near_every_s or None,
    }
    if failing.seconds > 0:
        names = ("mean", "p50", "p90", "low", "high")
        times = (failing.seconds, failing.p50_s, failing.p90_s, failing.low_s, failing.high_s)
        numbers |= {f"days_{name}": None if time is None else time / DAY for name, time in zip(names, times, strict=True)}
        numbers["failures"] = failing.failures
        ends = combined_range(failing, sure) or (None, None)
        numbers |= {f"days_total_{name}": end and end / DAY for name, end in zip(("low", "high"), ends, strict=True)}
    return numbers
