"""Half widths of intervals from residuals of rows that were left out alike: quantiles of |ln(predicted / measured)| by regime.

Rows count by 1 / sqrt(rows of their group), so that a source of many rows does not speak alone. A regime of few groups is
drawn to all regimes of its topic. A factor makes the widths hold for groups, and for units, that are left out in turn (Barber,
Candes, Ramdas and Tibshirani, "Predictive inference with the jackknife+", 2021); a regime with several has one of its own. Heavy
tails: every level has a quantile of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from published.residual import Residual

LEVELS: Final = (0.5, 0.8, 0.9)
FEWEST: Final = 12  # rows of a regime that speaks for itself,
GROUPS: Final = 4  # or groups
PULL: Final = 3.0  # groups of the whole topic that a regime is drawn to
APART: Final = 5  # groups, or units, of a regime that may have a smaller factor than its topic,
WIDER: Final = 15  # or a larger one
LEAST: Final = 1e-3  # half width that nothing goes below
Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Residuals of one topic and one case in columns: |ln|, signed ln, and numbers of regime, group and unit.

    Args:
        names: of the regimes, by number.
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
        """Names of the regimes that have rows, and which rows those are."""
        return [(self.names[code], self.regime == code) for code in np.unique(self.regime)]


def columns(found: Sequence[Residual]) -> Columns:
    """Residuals in columns."""
    signed = np.array([each.log for each in found], dtype=float)
    names, regime = np.unique([each.regime for each in found], return_inverse=True)
    group, unit = (np.unique([getattr(each, name) for each in found], return_inverse=True)[1] for name in ("group", "unit"))
    return Columns(np.abs(signed), signed, regime, group, unit, tuple(map(str, names)))


def weights(group: Codes) -> Floats:
    """1 / sqrt(rows of its group) of every row."""
    return np.asarray(1.0 / np.sqrt(np.bincount(group)[group]))


def weighted_quantile(values: Floats, weight: Floats, part: float) -> float:
    """The value that this part of the weight lies below.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.ones(3), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    ordered, weight = values[order], weight[order]
    below = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    return float(np.interp(part, below, ordered))


def scales(rows: Columns, level: float) -> tuple[Floats, float]:
    """(half width by number of the regime, of all of them), before the factor; none (NaN) of a regime without rows."""
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
    """What the widths must be multiplied by to hold for groups, and for units, that are left out in turn: the larger of both.

    By number of the regime, and of all regimes together. A regime of few groups or units has that of all of them, and the others
    are drawn to it. A regime that only one group has says nothing here: without the group nothing is known of it.
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
    """The number of a regime with so many groups, drawn to that of its topic."""
    return float(np.exp((groups * np.log(own) + PULL * np.log(whole)) / (groups + PULL)))


def _wide(rows: Columns, level: float) -> tuple[Floats, float]:
    """(half width by number of the regime, of a regime that has no rows), as a logarithm."""
    by, whole = scales(rows, level)
    times, of_all = factors(rows, level)
    return times * by, of_all * whole


def half_widths(rows: Columns, level: float) -> tuple[dict[str, float], float]:
    """(half width of each regime, of a regime that has no rows), as a logarithm."""
    by, whole = _wide(rows, level)
    return {name: float(value) for name, value in zip(rows.names, by, strict=True) if not np.isnan(value)}, whole


@dataclass(frozen=True, slots=True)
class Held:
    """Of every row: whether its interval held it when its unit calibrated nothing, and how wide that was (as a logarithm)."""

    inside: NDArray[np.bool_]
    half: Floats


def held(rows: Columns, level: float) -> Held:
    """Every unit judged by widths that come from the other units."""
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
    """(what rows of a unit share, what each has of its own), standard deviations; outliers drawn in to 4 robust ones."""
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
    """Residuals by topic and case."""
    out: dict[tuple[str, str], list[Residual]] = {}
    for each in found:
        out.setdefault((each.topic, each.case), []).append(each)
    return dict(sorted(out.items()))
