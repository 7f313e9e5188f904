"""An interval on an answer: from the errors that earlier predictions had, along the critical path.

    shared    of one key: its seconds / total x what the rows of a unit miss by together; keys add in squares
    scatter   of each kernel: its seconds / total x the rest; in squares
    own       what a whole run misses by besides its kernels; a training step has measured errors of its own
    sigma     the root of the sum of all squares, of ln(answer)
    half      sigma x a quantile: that of the errors where one of them is all, that of a normal distribution where many add up

A time that errors were measured of as a whole (a training's step) takes their quantiles as they are.

**Source**: `errors.yaml`; the quantiles are of rows that were left out (conformal; Barber et al., "Predictive inference with the
jackknife+", Annals of Statistics 49(1), 2021). **Range**: errors of numbers that the files state are not known: none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from hwsim.demand import Case
from hwsim.records import dataclass
from hwsim.results.doubts import PLAIN, Weight, Weights
from hwsim.results.errors import CASES, Table, table

LEVEL: Final = 90
NORMAL: Final[Mapping[int, float]] = {50: 0.6745, 80: 1.2816, 90: 1.6449}
Basis = Literal["measured", "composed", "stated"]


@dataclass(frozen=True, slots=True)
class Part:
    """One error among those of an answer.

    Args:
        key: who shares it; regime, case: which errors it has.
        share: part of the variance; of_time: part of the time.
        sigma: standard deviation of ln(answer) that it makes alone.
        half: half width of the interval that were left if it were known.
    """

    key: str
    regime: str
    case: Case
    share: float
    of_time: float
    sigma: float
    half: float


@dataclass(frozen=True, slots=True)
class Interval:
    """The range in which `level` of 100 such answers lie.

    Args:
        value, low, high: seconds, or whatever the answer is of; it is ln(high / value) = ln(value / low).
        basis: "measured": errors of whole answers of this kind; "composed": of its parts; "stated": the files state it all.
        case: the least sure that counts.
        rows, units: measured rows and devices or sources behind it, of the errors that count most.
        stated: part of the answer that the files state.
        sigma: standard deviation of ln(answer).
        parts: its errors, the largest first.
        shared: standard deviation of ln(answer) by key: what two answers have in common.
    """

    value: float
    low: float
    high: float
    level: int
    basis: Basis
    case: Case
    rows: int
    units: int
    stated: float
    sigma: float
    parts: tuple[Part, ...]
    shared: Mapping[str, float]

    @property
    def half(self) -> float:
        """Half width as a logarithm."""
        return math.log(self.high / self.value) if self.value > 0 else 0.0

    def of(self, value: float) -> Interval:
        """The same errors around another number, a rate for instance."""
        half = self.half
        return Interval(
            value, value * math.exp(-half), value * math.exp(half), self.level, self.basis, self.case, self.rows, self.units,
            self.stated, self.sigma, self.parts, self.shared,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Error:
    """The error of a key, put together: standard deviations of ln(answer), and the quantile over them."""

    regime: str
    case: Case
    key: str
    of_time: float
    shared: float
    scatter: float
    quantile: float
    rows: int
    units: int

    @property
    def variance(self) -> float:
        return self.shared**2 + self.scatter**2


def interval(
    weights: Weights, *, value: float = 0.0, whole: str = "", level: int = LEVEL, errors: Table | None = None
) -> Interval:
    """The interval of an answer whose time hangs on these errors.

    Args:
        value: the answer; the weights' total if left out.
        whole: regime of errors that were measured of whole answers of this kind, "step/tp"; "" if none were.
        level: per cent of such answers that lie inside: 50, 80 or 90.
    """
    known = table() if errors is None else errors
    value = value or weights.total
    found = sorted(_errors(weights, known, level), key=lambda error: (-error.variance, error.key))
    case = _case_of(found)
    stated = weights.stated / weights.total if weights.total > 0 else 1.0
    modelled = math.fsum(error.of_time for error in found if not error.regime.startswith(PLAIN))
    composed = math.fsum(error.variance for error in found)
    own = known.own[case] * modelled if sum(error.of_time > 0.02 for error in found) > 1 else 0.0
    variance = composed + own**2
    sigma = math.sqrt(variance)
    measured = known.errors(whole, "source" if case == "known" else case) if whole else None
    if measured is not None:
        half = measured.half[level] * (1.0 - stated)
        if measured.typical > 0:
            half *= math.sqrt((1.0 + (math.sqrt(composed) / measured.typical) ** 2) / 2.0)
    else:
        half = _quantile(found, variance, level) * sigma
    rows, units = (measured.rows, measured.units) if measured else (found[0].rows, found[0].units) if found else (0, 0)
    parts = tuple(
        Part(error.key, error.regime, error.case, error.variance / variance, error.of_time, math.sqrt(error.variance),
             half * math.sqrt(max(0.0, 1.0 - error.variance / variance)))
        for error in found if error.variance > 0
    )  # fmt: skip
    basis: Basis = "measured" if measured else "composed" if sigma > 0 else "stated"
    low, high = value * math.exp(-half), value * math.exp(half)
    return Interval(value, low, high, level, basis, case, rows, units, stated, sigma, parts, {e.key: e.shared for e in found})


def _errors(weights: Weights, known: Table, level: int) -> Iterable[_Error]:
    """Errors by key."""
    by_key: dict[tuple[str, Case, str], list[Weight]] = {}
    for weight in weights.weights:
        by_key.setdefault(weight.doubt[:3], []).append(weight)
    for (regime, case, key), alike in by_key.items():
        part = math.fsum(weight.doubt.seconds for weight in alike) / weights.total
        kind, _, name = regime.partition("/")
        if kind == PLAIN:
            source, _, of = name.partition(".")
            yield _Error(regime, case, key, part, part * known.spread(source, of), 0.0, NORMAL[level], 0, 0)
            continue
        errors = known.errors(regime, case)
        if errors is None:
            yield _Error(regime, "outside", key, part, part * known.spread("guess", "any"), 0.0, NORMAL[level], 0, 0)
            continue
        squares = math.fsum((weight.doubt.seconds / weights.total) ** 2 / weight.kernels for weight in alike)
        yield _Error(
            regime, case, key, part, part * errors.shared, math.sqrt(squares) * errors.scatter, errors.quantile(level),
            errors.rows, errors.units,
        )  # fmt: skip


def _case_of(found: Sequence[_Error]) -> Case:
    """The least sure case among errors that count."""
    total = math.fsum(error.variance for error in found)
    cases = [error.case for error in found if error.variance > 0.1 * total and error.case in CASES]
    return max(cases, key=CASES.index, default="known")


def _quantile(found: Sequence[_Error], variance: float, level: int) -> float:
    """Half width over sigma: the errors' own where one of them is all, a normal distribution's where many add up."""
    normal = NORMAL[level]
    if variance <= 0:
        return normal
    return normal + math.fsum((error.variance / variance) ** 2 * (error.quantile - normal) for error in found)
