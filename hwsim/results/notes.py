"""What a run should not be read without, though nothing in its files is wrong: warnings that only the run itself gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hwsim.results.coverage import coverage
from hwsim.results.timeline import Timeline
from hwsim.spec import Warning
from hwsim.units import format_quantity

if TYPE_CHECKING:
    from hwsim.results.steady import Steady


def notes(timeline: Timeline, steady: Steady | None = None, *, asked: bool = False) -> tuple[Warning, ...]:
    """Warnings of a run.

    Args:
        steady: how much of a loop was simulated; None: all, no loop is long.
        asked: whether only what repeats was to be simulated.
    """
    return tuple(_notes(timeline, steady, asked))


def _notes(timeline: Timeline, steady: Steady | None, asked: bool) -> Iterator[Warning]:
    if asked and steady is None:
        yield Warning("not-steady", "no loop is so long that leaving out iterations would pay: all of them were simulated")
    elif steady is not None and not steady.period:
        yield Warning("not-steady", f"all {steady.times:,} iterations were simulated: {steady.why}")
    known = coverage(timeline)
    if known is not None and known.doubtful:
        share = format_quantity(known.uncalibrated + known.extrapolated, "%", 3)
        yield Warning("not-calibrated", f"{share} of the ops' time is not by calls measured on this machine: it may be far off")
