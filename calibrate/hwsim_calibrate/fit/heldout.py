"""The error at sizes that the fit did not see: of each function and form every other size is left out, and told by the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hwsim.devices.kernels import key_of
from hwsim_calibrate.fit.kernels import Timed, fit_kernels
from hwsim_calibrate.fit.model import Capacities

DRAWS: Final = 2000


@dataclass(frozen=True, slots=True)
class Told:
    """One case that was predicted: seconds said and measured."""

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
    """Errors of cases that nobody fitted.

    ci95: of the median, by drawing the cases anew.
    """

    told: tuple[Told, ...]
    median: float
    p90: float
    mean: float
    ci95: tuple[float, float]

    def __str__(self) -> str:
        """In words."""
        low, high = (100 * each for each in self.ci95)
        return (
            f"median error {100 * self.median:.1f} % (95 % interval {low:.1f} to {high:.1f}), "
            f"p90 {100 * self.p90:.0f} %, {len(self.told)} cases"
        )

    def worst(self, count: int) -> tuple[Told, ...]:
        """The cases furthest off."""
        return tuple(sorted(self.told, key=lambda each: -abs(each.error))[:count])


def score(told: Sequence[Told], seed: int = 0) -> HeldOut:
    """What errors come to.

    >>> print(score([Told("a", 1.0, 1.1), Told("b", 2.0, 1.8), Told("c", 1.0, 1.1)]))
    median error 10.0 % (95 % interval 10.0 to 10.0), p90 10 %, 3 cases
    """
    if not told:
        return HeldOut((), 0.0, 0.0, 0.0, (0.0, 0.0))
    errors = np.abs([each.error for each in told])
    draw = np.random.default_rng(seed)
    medians = np.median(draw.choice(errors, (DRAWS, len(errors))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return HeldOut(
        tuple(told), float(np.median(errors)), float(np.quantile(errors, 0.9)), float(errors.mean()), (float(low), float(high))
    )


def held_out(rows: Sequence[Timed], capacities: Capacities, *, seed: int = 0) -> HeldOut:
    """Fit half of the sizes, tell the other half; the smallest and the largest of each function are always fitted."""
    left = alternate(rows)
    kept = [row for number, row in enumerate(rows) if number not in left]
    kernels = fit_kernels(kept, capacities, seed=seed, bootstraps=0).kernels
    told = [
        Told(rows[number].case, rows[number].quiet, kernels.time(rows[number].call).seconds, key_of(rows[number].call))
        for number in sorted(left)
        if not kernels.unknown(rows[number].call)
    ]
    return score(told, seed)


def alternate(rows: Sequence[Timed]) -> set[int]:
    """Every other size of each function, form, number format and place of the result."""
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(rows):
        groups.setdefault(key_of(row.call), []).append(number)
    left: set[int] = set()
    for members in groups.values():
        left.update(sorted(members, key=lambda number: (rows[number].call.count, rows[number].call.rows))[1:-1:2])
    return left
