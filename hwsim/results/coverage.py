"""Share of a run's time that rests on functions measured on this machine (`kernels`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.demand import Cost, LazyTerms
from hwsim.formats import format_share
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

NAMES: Final = 4  # largest number of functions named in the text
DOUBTFUL: Final = 0.05  # share of the time
# labels of derivation lines (`hwsim.devices.cpu_kernels`)
MEASURED: Final = "kernel"
EXTRAPOLATED: Final = "extrapolated"
RELATED: Final = "related"
UNCALIBRATED: Final = "uncalibrated"
FUNCTION: Final = "function"  # name of the input with the function


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares (0 to 1) of the time of ops on a machine with measured functions.

    Args:
        measured: functions that were measured at a similar size.
        extrapolated: functions that were measured, but far from this size.
        uncalibrated: functions that were not measured.
        missing: names of these functions, longest first.
        related: functions timed by a measured function of similar speed.
        relatives: names of these functions, longest first.
    """

    measured: float
    extrapolated: float
    uncalibrated: float
    missing: tuple[str, ...] = ()
    related: float = 0.0
    relatives: tuple[str, ...] = ()

    @property
    def doubtful(self) -> bool:
        """Whether more than 5 % of the time was not measured, so that the result may be far off."""
        return self.uncalibrated + self.extrapolated + self.related > DOUBTFUL

    def __str__(self) -> str:
        """Return the shares in words.

        >>> print(Coverage(0.9, 0.0, 0.1, ("erf", "fft")))
        90 % of the time of ops measured on this machine, 10 % uncalibrated (erf, fft)
        """
        text = f"{format_share(self.measured)} of the time of ops measured on this machine"
        if self.extrapolated > 0:
            text += f", {format_share(self.extrapolated)} extrapolated to other sizes"
        if self.related > 0:
            text += f", {format_share(self.related)} from similar functions (for {_listed(self.relatives)})"
        if self.uncalibrated > 0:
            text += f", {format_share(self.uncalibrated)} uncalibrated ({_listed(self.missing)})"
        return text


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:NAMES]) + (", ..." if len(names) > NAMES else "")


def coverage(timeline: Timeline) -> Coverage | None:
    """Return the shares of a run; None if no op ran on a machine with measured functions."""
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
    """Return the names of the functions with this mark, longest first."""
    names: dict[str, float] = {}
    for number, (mark, function) in enumerate(marks):
        if mark == wanted:
            names[function] = names.get(function, 0.0) + float(spent[number])
    return tuple(sorted(names, key=lambda name: (-names[name], name)))


def mark_of(cost: Cost) -> tuple[str, str]:
    """Return (mark, unmeasured function) of a cost; ("", "") if its device has no measured functions."""
    if isinstance(cost.why, LazyTerms):  # a transfer is not a function of a device
        return "", ""
    labels = {term.label: term for term in cost.why}
    for mark in (UNCALIBRATED, RELATED, EXTRAPOLATED):
        if mark in labels:
            return mark, next((value for name, value, _ in labels[mark].inputs if name == FUNCTION), "")
    return (MEASURED, "") if MEASURED in labels else ("", "")
