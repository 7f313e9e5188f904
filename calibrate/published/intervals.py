"""Half widths of intervals from cross-validated residuals: quantiles of |ln(predicted / measured)| by regime.

The weight of a row is 1 / sqrt(rows of its group), so that large sources do not dominate. A regime with few groups is shrunk
towards all regimes of its topic. A factor adjusts the widths so that they hold for held-out groups and units (Barber, Candes,
Ramdas and Tibshirani, "Predictive inference with the jackknife+", 2021); a regime with several groups has its own factor.
Errors have heavy tails, so every level has its own quantile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from published.residual import Residual

LEVELS: Final = (0.5, 0.8, 0.9)
FEWEST: Final = 12  # minimum rows of a regime with its own width,
GROUPS: Final = 4  # or groups
PULL: Final = 3.0  # weight of the topic in shrinkage, in groups
APART: Final = 5  # minimum groups or units of a regime with a smaller factor than its topic,
WIDER: Final = 15  # or a larger one
LEAST: Final = 1e-3  # minimum half width
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Residuals of one topic and case in columns: |ln|, signed ln, and numbers of regime, group and unit.

    Args:
        names: names of the regimes, by number.
    """

    off: Floats
    signed: Floats
    regime: Codes
    group: Codes
    unit: Codes
    names: tuple[str, ...]

    def __getitem__(self, at: NDArray[np.bool_]) -> Columns:
        return Columns(self.off[at], self.signed[at], self.regime[at], self.group[at], self.unit[at], self.names)

    def __len__(self) -> int:
        return len(self.off)

    def regimes(self) -> list[tuple[str, NDArray[np.bool_]]]:
        """Return the names of regimes with rows, and their rows."""
        return [(self.names[code], self.regime == code) for code in np.unique(self.regime)]


def columns(found: Sequence[Residual]) -> Columns:
    """Return residuals in columns."""
    signed = np.array([row.log for row in found], dtype=float)
    names, regime = np.unique([row.regime for row in found], return_inverse=True)
    group, unit = (np.unique([getattr(row, name) for row in found], return_inverse=True)[1] for name in ("group", "unit"))
    return Columns(np.abs(signed), signed, regime, group, unit, tuple(map(str, names)))


def weights(group: Codes) -> Floats:
    """Return 1 / sqrt(rows of its group) for every row."""
    return np.asarray(1.0 / np.sqrt(np.bincount(group)[group]))


def weighted_quantile(values: Floats, weight: Floats, part: float) -> float:
    """Return the value below which this fraction of the weight lies.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    ordered, weight = values[order], weight[order]
    below = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    return float(np.interp(part, below, ordered))


def scales(rows: Columns, level: float) -> tuple[Floats, float]:
    """Return (half width by regime, of all regimes) before the factor; NaN for a regime without rows."""
    whole = max(LEAST, weighted_quantile(rows.off, weights(rows.group), level))
    found = np.full(len(rows.names), np.nan)
    for code in np.unique(rows.regime):
        mine = rows[rows.regime == code]
        groups = len(np.unique(mine.group))
        enough = len(mine) >= FEWEST or groups >= GROUPS
        own = max(LEAST, weighted_quantile(mine.off, weights(mine.group), level)) if enough else whole
        found[code] = drawn(own, whole, groups)
    return found, whole


def factors(rows: Columns, level: float) -> tuple[Floats, float]:
    """Return the factors that make the widths hold for held-out groups and held-out units: the larger of both.

    One factor per regime, and one for all regimes together. Regimes with few groups or units take the common factor, and others
    are shrunk towards it. A regime with a single group is skipped, because nothing remains when the group is held out.
    """
    weight = weights(rows.group)
    (groups, of_groups), (units, of_units) = (_factors(rows, codes, weight, level) for codes in (rows.group, rows.unit))
    return np.maximum(groups, units), max(of_groups, of_units)


def _factors(rows: Columns, codes: Codes, weight: Floats, level: float) -> tuple[Floats, float]:
    ratios = np.full(len(rows), np.nan)
    for code in np.unique(codes):
        own = codes == code
        if not own.all():
            found, _ = scales(rows[~own], level)
            ratios[own] = rows.off[own] / found[rows.regime[own]]
    known = ~np.isnan(ratios)
    whole = weighted_quantile(ratios[known], weight[known], level) if known.any() else 1.0
    by = np.full(len(rows.names), whole)
    for code in np.unique(rows.regime):
        mine = known & (rows.regime == code)
        several = len(np.unique(codes[mine]))
        if several >= APART and mine.sum() >= FEWEST:
            own = drawn(weighted_quantile(ratios[mine], weight[mine], level), whole, several)
            by[code] = own if several >= WIDER else min(own, whole)
    return by, whole


def drawn(own: float, whole: float, groups: int) -> float:
    """Return a regime's value shrunk towards that of its topic, by its number of groups."""
    return float(np.exp((groups * np.log(own) + PULL * np.log(whole)) / (groups + PULL)))


def _wide(rows: Columns, level: float) -> tuple[Floats, float]:
    """Return (half width by regime, of a regime without rows) as logarithms."""
    by, whole = scales(rows, level)
    times, of_all = factors(rows, level)
    return times * by, of_all * whole


def half_widths(rows: Columns, level: float) -> tuple[dict[str, float], float]:
    """Return (half width of each regime, of a regime without rows) as logarithms."""
    by, whole = _wide(rows, level)
    return {name: float(value) for name, value in zip(rows.names, by, strict=True) if not np.isnan(value)}, whole


@dataclass(frozen=True, slots=True)
class Held:
    """For every row: whether its interval contained it when its unit was held out, and the half width (a logarithm)."""

    inside: NDArray[np.bool_]
    half: Floats


def held(rows: Columns, level: float) -> Held:
    """Return the coverage and width of every unit with widths calibrated on the other units."""
    inside, half = np.zeros(len(rows), dtype=bool), np.zeros(len(rows))
    for code in np.unique(rows.unit):
        own = rows.unit == code
        if own.all():
            half[own] = np.inf
            inside[own] = True
            continue
        by, whole = _wide(rows[~own], level)
        wide = by[rows.regime[own]]
        wide[np.isnan(wide)] = whole
        half[own], inside[own] = wide, rows.off[own] <= wide
    return Held(inside, half)


def parts(rows: Columns) -> tuple[float, float]:
    """Return the standard deviations shared by the rows of a unit and of single rows; outliers are clipped at 4 robust ones."""
    middle = float(np.median(rows.signed))
    robust = max(LEAST, float(np.median(np.abs(rows.signed - middle))) / 0.6745)
    values = np.clip(rows.signed, middle - 4 * robust, middle + 4 * robust)
    _, place, count = np.unique(rows.unit, return_inverse=True, return_counts=True)
    means = np.bincount(place, values) / count
    squares = np.bincount(place, (values - means[place]) ** 2)
    within = float(squares.sum() / max(1, (count - 1).sum()))
    between = max(0.0, float(means.var(ddof=1) - (within / count).mean())) if len(count) > 1 else within
    return float(np.sqrt(between)), float(np.sqrt(within))


def mapped(found: Sequence[Residual]) -> Mapping[tuple[str, str], list[Residual]]:
    """Return residuals by topic and case."""
    out: dict[tuple[str, str], list[Residual]] = {}
    for row in found:
        out.setdefault((row.topic, row.case), []).append(row)
    return dict(sorted(out.items()))
