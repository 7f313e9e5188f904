"""Errors at held-out sizes: every other size of each function is predicted by a fit to the remaining sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim.devices.kernels import key_of
from hwsim.formats import percent
from hwsim_calibrate.fit.kernels import TimedCall, fit_kernels
from hwsim_calibrate.fit.model import Capacities

DRAWS: Final = 2000
MIN_SIZES: Final = 5  # sizes of a function from which every other size can be held out


@dataclass(frozen=True, slots=True)
class Predicted:
    """A case with its measured and predicted time (s)."""

    case: str
    measured: float
    predicted: float
    key: str = ""

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Absolute relative errors of cases that were not fitted; ci95: bootstrap interval of the median."""

    cases: tuple[Predicted, ...]
    median: float
    p90: float
    mean: float
    ci95: tuple[float, float]

    def __str__(self) -> str:
        low, high = (100 * bound for bound in self.ci95)
        return (
            f"median error {percent(self.median, '.1f')} (95 % interval {low:.1f}–{high:.1f} %), "
            f"p90 {percent(self.p90, '.0f')}, {len(self.cases)} cases"
        )

    def worst(self, count: int) -> tuple[Predicted, ...]:
        """Return the cases with the largest errors."""
        return tuple(sorted(self.cases, key=lambda case: -abs(case.error))[:count])


def score(cases: Sequence[Predicted], seed: int = 0) -> HeldOut:
    """Return the statistics of the errors.

    >>> print(score([Predicted("a", 1.0, 1.1), Predicted("b", 2.0, 1.8), Predicted("c", 1.0, 1.1)]))
    median error 10.0 % (95 % interval 10.0–10.0 %), p90 10 %, 3 cases
    """
    if not cases:
        return HeldOut((), 0.0, 0.0, 0.0, (0.0, 0.0))
    errors = np.abs([case.error for case in cases])
    medians = np.median(np.random.default_rng(seed).choice(errors, (DRAWS, len(errors))), axis=1)
    low, high = (float(bound) for bound in np.quantile(medians, [0.025, 0.975]))
    return HeldOut(tuple(cases), float(np.median(errors)), float(np.quantile(errors, 0.9)), float(errors.mean()), (low, high))


def held_out(rows: Sequence[TimedCall], capacities: Capacities, *, seed: int = 0) -> HeldOut:
    """Fit half of the sizes and predict the rest; the smallest and largest size of each function are always fitted."""
    left = alternate(rows)
    fitted = [row for index, row in enumerate(rows) if index not in left]
    kernels = fit_kernels(fitted, capacities, seed=seed, bootstraps=0).kernels
    tested = [rows[index] for index in sorted(left) if not kernels.unknown(rows[index].call)]
    return score([Predicted(row.case, row.quiet, kernels.time(row.call).seconds, key_of(row.call)) for row in tested], seed)


def alternate(rows: Sequence[TimedCall]) -> set[int]:
    """Return the indices of every other size of each function, form, number format and result location."""
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(key_of(row.call), []).append(index)
    left: set[int] = set()
    for members in groups.values():
        if len(members) >= MIN_SIZES:
            left.update(sorted(members, key=lambda index: (rows[index].call.count, rows[index].call.rows))[1:-1:2])
    return left
