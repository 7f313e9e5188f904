"""The error at sizes that the fit did not see: every other size of each function is held out, and predicted by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim.devices.kernels import key_of
from hwsim.formats import percent
from hwsim_calibrate.fit.kernels import Timed, fit_kernels
from hwsim_calibrate.fit.model import Capacities

DRAWS: Final = 2000
TOLD: Final = 5  # sizes of a function from which on every other one can be left out and the rest still tell


@dataclass(frozen=True, slots=True)
class Predicted:
    """A case with its measured and predicted seconds."""

    case: str
    measured: float
    predicted: float
    key: str = ""

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Errors of cases that were not fitted; ci95: interval of the median, by drawing the cases anew."""

    cases: tuple[Predicted, ...]
    median: float
    p90: float
    mean: float
    ci95: tuple[float, float]

    def __str__(self) -> str:
        low, high = (100 * each for each in self.ci95)
        return (
            f"median error {percent(self.median, '.1f')} (95 % interval {low:.1f} to {high:.1f}), "
            f"p90 {percent(self.p90, '.0f')}, {len(self.cases)} cases"
        )

    def worst(self, count: int) -> tuple[Predicted, ...]:
        """The cases with the largest errors."""
        return tuple(sorted(self.cases, key=lambda each: -abs(each.error))[:count])


def score(cases: Sequence[Predicted], seed: int = 0) -> HeldOut:
    """Statistics of the errors.

    >>> print(score([Predicted("a", 1.0, 1.1), Predicted("b", 2.0, 1.8), Predicted("c", 1.0, 1.1)]))
    median error 10.0 % (95 % interval 10.0 to 10.0), p90 10 %, 3 cases
    """
    if not cases:
        return HeldOut((), 0.0, 0.0, 0.0, (0.0, 0.0))
    errors = np.abs([case.error for case in cases])
    medians = np.median(np.random.default_rng(seed).choice(errors, (DRAWS, len(errors))), axis=1)
    low, high = (float(each) for each in np.quantile(medians, [0.025, 0.975]))
    return HeldOut(tuple(cases), float(np.median(errors)), float(np.quantile(errors, 0.9)), float(errors.mean()), (low, high))


def held_out(rows: Sequence[Timed], capacities: Capacities, *, seed: int = 0) -> HeldOut:
    """Fit half of the sizes, predict the other half; the smallest and the largest of each function are always fitted."""
    left = alternate(rows)
    kernels = fit_kernels([row for at, row in enumerate(rows) if at not in left], capacities, seed=seed, bootstraps=0).kernels
    tested = [rows[at] for at in sorted(left) if not kernels.unknown(rows[at].call)]
    return score([Predicted(row.case, row.quiet, kernels.time(row.call).seconds, key_of(row.call)) for row in tested], seed)


def alternate(rows: Sequence[Timed]) -> set[int]:
    """Numbers of every other size of each function, form, number format and place of the result."""
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(key_of(row.call), []).append(number)
    left: set[int] = set()
    for members in groups.values():
        if len(members) >= TOLD:
            left.update(sorted(members, key=lambda number: (rows[number].call.count, rows[number].call.rows))[1:-1:2])
    return left
