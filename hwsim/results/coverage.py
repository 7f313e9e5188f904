"""Part of a run's time that was measured on this machine, if the machine has measured functions (`kernels`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost, Later
from hwsim.formats import format_share
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

NAMES: Final = 4  # functions named in the text
DOUBTFUL: Final = 0.05  # part of the time
# labels of the terms that devices write (`hwsim.devices.cpu_kernels`)
MEASURED: Final = "kernel"
EXTRAPOLATED: Final = "extrapolated"
RELATED: Final = "related"
UNCALIBRATED: Final = "uncalibrated"
FUNCTION: Final = "function"  # the input of such a term that names it


@dataclass(frozen=True, slots=True)
class Coverage:
    """Parts (0 to 1) of the time of the ops whose machine has measured functions.

    missing: names of functions that were not measured, the longest first.
    related: by functions that were measured and take alike; relatives: for which.
    """

    measured: float
    extrapolated: float
    uncalibrated: float
    missing: tuple[str, ...] = ()
    related: float = 0.0
    relatives: tuple[str, ...] = ()

    @property
    def doubtful(self) -> bool:
        """Whether more than 5 % was not measured, so that the time may be far off."""
        return self.uncalibrated + self.extrapolated + self.related > DOUBTFUL

    def __str__(self) -> str:
        """In words.

        >>> print(Coverage(0.9, 0.0, 0.1, ("erf", "fft")))
        90 % of the ops' time by calls measured on this machine, 10 % uncalibrated (erf, fft)
        """
        text = f"{format_share(self.measured)} of the ops' time by calls measured on this machine"
        if self.extrapolated > 0:
            text += f", {format_share(self.extrapolated)} far from any size that was"
        if self.related > 0:
            text += f", {format_share(self.related)} by others that take alike ({_listed(self.relatives)})"
        if self.uncalibrated > 0:
            text += f", {format_share(self.uncalibrated)} uncalibrated ({_listed(self.missing)})"
        return text


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES]) + (", ..." if len(names) > NAMES else "")


def coverage(timeline: Timeline) -> Coverage | None:
    """The parts of a run; None if no op ran on a machine whose functions were measured."""
    flat = timeline.flat
    marks = [mark_of(cost) for cost in flat.graph.costs]
    if not any(mark for mark, _ in marks):
        return None
    time = (timeline.end - timeline.start).astype(np.float64)
    costed = flat.cost >= 0
    spent: NDArray[np.float64] = np.bincount(flat.cost[costed], time[costed], len(marks)).astype(np.float64)
    by_mark = {
        mark: math.fsum(spent[number] for number, (label, _) in enumerate(marks) if label == mark)
        for mark in (MEASURED, EXTRAPOLATED, RELATED, UNCALIBRATED)
    }
    total = math.fsum(by_mark.values()) or 1.0
    measured, extrapolated, related, uncalibrated = (seconds / total for seconds in by_mark.values())
    missing, relatives = (_longest(marks, mark, spent) for mark in (UNCALIBRATED, RELATED))
    return Coverage(measured, extrapolated, uncalibrated, missing, related, relatives)


def _longest(marks: Sequence[tuple[str, str]], wanted: str, spent: NDArray[np.float64]) -> tuple[str, ...]:
    """Names of the functions with this mark, the one that takes longest first."""
    names: dict[str, float] = {}
    for number, (mark, function) in enumerate(marks):
        if mark == wanted:
            names[function] = names.get(function, 0.0) + float(spent[number])
    return tuple(sorted(names, key=lambda name: (-names[name], name)))


def mark_of(cost: Cost) -> tuple[str, str]:
    """(label, function that was not measured) of a cost; ("", "") if its device has no measured functions."""
    if isinstance(cost.why, Later):  # of a transfer: no function of a device
        return "", ""
    labels = {term.label: term for term in cost.why}
    for mark in (UNCALIBRATED, RELATED, EXTRAPOLATED):
        if mark in labels:
            return mark, next((value for name, value, _ in labels[mark].inputs if name == FUNCTION), "")
    return (MEASURED, "") if MEASURED in labels else ("", "")
