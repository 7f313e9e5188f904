"""90 % interval of an answer, from the measured errors of earlier predictions, along the critical path.

    shared    error per key: share of the time x error common to all measurements of a unit; keys add in squares
    scatter   error per kernel: share of the time x remaining error; kernels add in squares
    own       run-level error beyond the kernels, larger for more kinds of work; a training step has measured errors of its own
    sigma     root of the sum of all squares: standard deviation of ln(answer)
    half      sigma x quantile: that of the measured errors for a single error, that of a normal distribution for many

An answer whose errors were measured as a whole (a training step) has their quantiles directly. If it relies on other device
generations, its interval is at least as wide as that of its parts.

**Source**: `errors.yaml`; quantiles of held-out measurements (conformal prediction; Barber et al., "Predictive inference with
the jackknife+", Annals of Statistics 49(1), 2021). **Range**: numbers stated in the input files count as exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal

from hwsim.origins import CASES, PLAIN, Case
from hwsim.records import dataclass
from hwsim.results.error_weights import Weight, Weights
from hwsim.results.errors import NORMAL, ErrorTable, table

LEVEL: Final = 90
PROGRAM: Final = "program/"  # prefix of the regimes of recorded calls
NEARLY_ALL: Final = 0.9  # share of the time of a part whose regime is that of the answer
CALLED: Final = 3  # least number of functions of a recorded program
MOST: Final = 0.5  # least share of the time of these functions
COUNTS: Final = 0.1  # least share of the variance of a significant error
OTHERS: Final = f"{PLAIN}/others"  # regime of ops off the critical path
UNMEASURED: Final[frozenset[Case]] = frozenset({"generation", "outside"})
# Frameworks whose measurements come from other sites.
ELSEWHERE: Final = frozenset({"step/sharded", "step/tp", "step/fp8", "step/small", "experts/step"})
Basis = Literal["measured", "composed", "stated"]


@dataclass(frozen=True, slots=True)
class IntervalPart:
    """The error of one key in an answer.

    Args:
        key: name shared by all times with this error.
        regime: regime of the error.
        case: case of the error.
        time_share: share of the time.
        shared: standard deviation of ln(answer) from the error common to a unit.
        scatter: standard deviation of ln(answer) from the rest.
        quantile: half width of the part's own interval over its standard deviation.
        rows: number of measurements; 0 for a number of a file.
        units: number of devices or sources held out in turn; 0 for a number of a file.
        correction: ln(expected / predicted time) of the part, from measurements of the user.
        runs: number of these measurements.
    """

    key: str
    regime: str
    case: Case
    time_share: float
    shared: float
    scatter: float
    quantile: float
    rows: int = 0
    units: int = 0
    correction: float = 0.0
    runs: int = 0

    @property
    def doubt(self) -> tuple[str, Case, str]:
        """Identity of the error: (regime, case, key)."""
        return self.regime, self.case, self.key

    @property
    def variance(self) -> float:
        """Variance of ln(answer) from this error alone."""
        return self.shared**2 + self.scatter**2

    @property
    def is_number(self) -> bool:
        """Whether the error is of a single number of the files instead of a model."""
        return self.regime.startswith(PLAIN)


@dataclass(frozen=True, slots=True)
class Interval:
    """The range that contains an answer with a probability of `level` per cent.

    Args:
        value: answer, in seconds or its own unit.
        below, above: ln(expected / low) and ln(high / expected); equal unless two further runs found the ends.
        level: probability (%).
        basis: "measured": errors of whole answers of this kind; "composed": errors of its parts; "stated": only input values.
        case: least certain case with a significant share of the variance.
        rows, units: measurements and held-out units behind the largest error.
        stated: share of the answer that the input files state.
        own: standard deviation of ln(answer) from the run-level error.
        parts: errors, largest first.
        correction: ln(expected / value), from measurements of the user; the interval is around the expected value.
        scored: the measurements that changed the interval, in words; "" without them.
        whole: regime of the errors of whole answers of this kind; "" for an interval composed of its parts.
    """

    value: float
    below: float
    above: float
    level: int
    basis: Basis
    case: Case
    rows: int
    units: int
    stated: float
    own: float
    parts: tuple[IntervalPart, ...]
    correction: float = 0.0
    scored: str = ""
    whole: str = ""

    @property
    def regime(self) -> str:
        """Regime of the error: that of whole answers, or of the part with nearly all of the time; "" for several or none."""
        mains = [part.regime for part in self.parts if part.time_share >= NEARLY_ALL and not part.is_number]
        return "" if self.stated > 1 - NEARLY_ALL else self.whole or (mains[0] if mains else "")

    @property
    def factor(self) -> float:
        """Expected over simulated or estimated time: 1 unless measurements of the user correct it."""
        return math.exp(self.correction)

    @property
    def expected(self) -> float:
        """Value with the correction, in the unit of the answer."""
        return self.value * self.factor

    @property
    def half(self) -> float:
        """Half width of the interval of ln(answer)."""
        return (self.below + self.above) / 2

    @property
    def reach(self) -> float:
        """Half width of a range around the uncorrected value that contains the interval, as a logarithm."""
        return self.half + abs(self.correction)

    @property
    def low(self) -> float:
        """Lower end, in the unit of the answer."""
        return self.expected * math.exp(-self.below)

    @property
    def high(self) -> float:
        """Upper end, in the unit of the answer."""
        return self.expected * math.exp(self.above)

    @property
    def variance(self) -> float:
        """Variance of ln(answer), from the parts and the run-level error."""
        return math.fsum([self.own**2, *(part.variance for part in self.parts)])

    def share(self, part: IntervalPart) -> float:
        """Return the share of the variance of a part."""
        return part.variance / self.variance if part.variance > 0 else 0.0

    def without(self, part: IntervalPart) -> float:
        """Return the half width without the error of a part."""
        return self.half * math.sqrt(max(0.0, 1.0 - self.share(part)))

    def of(self, value: float) -> Interval:
        """Return the interval with the same errors around another value, for instance a rate."""
        return replace(self, value=value)


def interval(
    weights: Weights, *, value: float = 0.0, whole: str = "", level: int = LEVEL, errors: ErrorTable | None = None
) -> Interval:
    """Return the interval of an answer.

    Args:
        weights: time by error.
        value: answer; default: the total of the weights.
        whole: regime of errors measured of whole answers of this kind, such as "step/tp"; "" without one.
        level: probability in per cent: 50, 80 or 90.
        errors: table of measured errors; default: the table that ships with hwsim.
    """
    errors_of = table() if errors is None else errors
    parts = tuple(sorted(_parts(weights, errors_of, level), key=lambda part: (-part.variance, part.key)))
    composed = math.fsum(part.variance for part in parts)
    case = _case_of(parts, composed)
    stated = weights.stated / weights.total if weights.total > 0 else 1.0
    besides = errors_of.own[case] * work_mix(parts)
    variance = composed + besides**2
    regime = whole or recorded_regime(parts)
    correction, runs = 0.0, 0
    measured = errors_of.errors(regime, "source" if case == "known" and regime in ELSEWHERE else case) if regime else None
    if measured is not None:
        half = measured.half[level] * (1.0 - stated)
        if measured.typical > 0:
            half *= math.sqrt((1.0 + composed / measured.typical**2) / 2.0)
        if case in UNMEASURED:  # whole answers were measured on devices, links and formats with known constants
            half = max(half, _quantile(parts, composed, level) * math.sqrt(composed))
        stated_by = math.fsum(part.variance for part in parts if part.case == "stated")  # errors of the files
        rows, units, unstated = measured.rows, measured.units, 1.0 - stated
        if (own := errors_of.update(regime, measured, half / unstated if unstated > 0 else 0.0, level)).runs:
            half, runs = own.half[level] * unstated, own.runs
            correction = math.log1p(unstated * math.expm1(own.correction))
        half = math.hypot(half, NORMAL[level] * math.sqrt(stated_by))
    else:
        half = _quantile(parts, variance, level) * math.sqrt(variance)
        correction = math.log1p(math.fsum(part.time_share * math.expm1(part.correction) for part in parts))
        runs = sum({part.regime: part.runs for part in parts}.values())  # integers
        rows, units = (parts[0].rows, parts[0].units) if parts else (0, 0)
    basis: Basis = "measured" if measured is not None else "composed" if half > 0 else "stated"
    return Interval(
        value or weights.total, half, half, level, basis, case, rows, units, stated, besides, parts, correction,
        errors_of.cited(runs), regime if measured is not None else "",
    )  # fmt: skip


def recorded_regime(parts: Sequence[IntervalPart]) -> str:
    """Return the regime of recorded programs if their calls take most of the time; "" for a few calls.

    >>> calls = [IntervalPart(key, "program/measured", "known", 0.3, 0.0, 0.0, 1.0) for key in "abc"]
    >>> recorded_regime(calls), recorded_regime(calls[:2])
    ('program/whole', '')
    """
    calls = [part for part in parts if part.regime.startswith(PROGRAM)]
    return f"{PROGRAM}whole" if len(calls) >= CALLED and math.fsum(part.time_share for part in calls) >= MOST else ""


def work_mix(parts: Sequence[IntervalPart]) -> float:
    """Return the factor of the run-level error: 0 for a single kind of work (measured as a whole), nearly 1 for many.

    >>> a, b = (IntervalPart(key, "", "known", 0.5, 0.0, 0.0, 1.0) for key in "ab")
    >>> work_mix([a]), round(work_mix([a, b]), 3)
    (0.0, 0.707)
    """
    times = [part.time_share for part in parts if not part.is_number]
    return math.sqrt(max(0.0, math.fsum(times) ** 2 - math.fsum(time**2 for time in times)))


def _parts(weights: Weights, errors_of: ErrorTable, level: int) -> Iterable[IntervalPart]:
    """Yield the error of each key."""
    by_key: dict[tuple[str, Case, str], list[Weight]] = {}
    for weight in weights.weights:
        by_key.setdefault(weight.doubt[:3], []).append(weight)
    for (regime, case, key), alike in by_key.items():
        share = math.fsum(weight.doubt.seconds for weight in alike) / weights.total
        if (spread := spread_of(regime, errors_of)) is not None:
            yield IntervalPart(key, regime, case, share, share * spread, 0.0, NORMAL[level])
            continue
        errors = errors_of.errors(regime, case)
        if errors is None:  # no time of this regime was measured
            yield IntervalPart(key, regime, "outside", share, share * errors_of.spread("guess", "any"), 0.0, NORMAL[level])
            continue
        if (own := errors_of.update(regime, errors, errors.half[level], level)).runs:
            errors = replace(errors, shared=own.shared, scatter=own.scatter, half=own.half)
        squares = math.fsum((weight.doubt.seconds / weights.total) ** 2 / weight.kernels for weight in alike)
        scatter = math.sqrt(squares) * errors.scatter
        yield IntervalPart(
            key, regime, case, share, share * errors.shared, scatter, errors.quantile(level), errors.rows, errors.units,
            own.correction, own.runs,
        )  # fmt: skip


def spread_of(regime: str, errors_of: ErrorTable) -> float | None:
    """Return the standard deviation of ln(number), or None for the regime of a model.

    "number/=0.05" states it; "number/guess.latency" has that of the source and the kind of number.
    """
    kind, _, name = regime.partition("/")
    if kind != PLAIN:
        return None
    if name.startswith("="):
        return float(name[1:])
    source, _, number = name.partition(".")
    return errors_of.spread(source, number)


def _case_of(parts: Sequence[IntervalPart], variance: float) -> Case:
    """Return the least certain case among the significant errors."""
    cases = [part.case for part in parts if part.variance > COUNTS * variance and part.case in CASES]
    return max(cases, key=CASES.index, default="known")


def _quantile(parts: Sequence[IntervalPart], variance: float, level: int) -> float:
    """Return the half width over the standard deviation: of a single error, or of a normal distribution for many errors."""
    normal = NORMAL[level]
    if variance <= 0:
        return normal
    return normal + math.fsum((part.variance / variance) ** 2 * (part.quantile - normal) for part in parts)
