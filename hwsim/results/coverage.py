"""Part of a run's time that was measured on this machine, if the machine has measured functions (`kernels`)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hwsim.demand import Cost
from hwsim.formats import format_share
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

NAMES: Final = 4  # functions named in the text
DOUBTFUL: Final = 0.05  # part of the time
# labels of the terms that devices write (`hwsim.devices.cpu_kernels`)
MEASURED: Final = "kernel"
EXTRAPOLATED: Final = "extrapolated"
UNCALIBRATED: Final = "uncalibrated"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Parts (0 to 1) of the time of the ops whose machine has measured functions.

    missing: names of functions that were not measured, the longest first.
    """

    measured: float
    extrapolated: float
    uncalibrated: float
    missing: tuple[str, ...] = ()

    @property
    def doubtful(self) -> bool:
        """Whether more than 5 % was not measured, so that the time may be far off."""
        return self.uncalibrated + self.extrapolated > DOUBTFUL

    def __str__(self) -> str:
        """In words.

        >>> print(Coverage(0.9, 0.0, 0.1, ("erf", "fft")))
        90 % of the ops' time by calls measured on this machine, 10 % uncalibrated (erf, fft)
        """
        text = f"{format_share(self.measured)} of the ops' time by calls measured on this machine"
        if self.extrapolated > 0:
            text += f", {format_share(self.extrapolated)} far from any size that was"
        if self.uncalibrated > 0:
            names = ", ".join(self.missing[:NAMES]) + (", ..." if len(self.missing) > NAMES else "")
            text += f", {format_share(self.uncalibrated)} uncalibrated ({names})"
        return text


def coverage(timeline: Timeline) -> Coverage | None:
    """The parts of a run; None if no op ran on a machine whose functions were measured."""
    flat = timeline.flat
    marks = [mark_of(cost) for cost in flat.graph.costs]
    if not any(mark for mark, _ in marks):
        return None
    time = (timeline.end - timeline.start).astype(np.float64)
    costed = flat.cost >= 0
    spent = np.bincount(flat.cost[costed], time[costed], len(marks))
    by_mark = {
        mark: math.fsum(spent[number] for number, (label, _) in enumerate(marks) if label == mark)
        for mark in (MEASURED, EXTRAPOLATED, UNCALIBRATED)
    }
    total = math.fsum(by_mark.values()) or 1.0
    missing: dict[str, float] = {}
    for number, (mark, function) in enumerate(marks):
        if mark == UNCALIBRATED:
            missing[function] = missing.get(function, 0.0) + spent[number]
    names = tuple(sorted(missing, key=lambda name: (-missing[name], name)))
    measured, extrapolated, uncalibrated = (seconds / total for seconds in by_mark.values())
    return Coverage(measured, extrapolated, uncalibrated, names)


def mark_of(cost: Cost) -> tuple[str, str]:
    """(label, function that was not measured) of a cost; ("", "") if its device has no measured functions."""
    labels = {term.label: term.formula for term in cost.why}
    for mark in (UNCALIBRATED, EXTRAPOLATED):
        if mark in labels:
            return mark, labels[mark].partition(": ")[2]
    return (MEASURED, "") if MEASURED in labels else ("", "")
