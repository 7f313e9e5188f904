"""An interval on an answer: from the errors that earlier predictions had, along the critical path.

    shared    of one key: its seconds / total x what the rows of a unit miss by together; keys add in squares
    scatter   of each kernel: its seconds / total x the rest; in squares
    own       what a whole run misses by besides its kernels, the more kinds of work it mixes the more; a training step has
              measured errors of its own
    sigma     the root of the sum of all squares, of ln(answer)
    half      sigma x a quantile: of the errors themselves where one is all, of a normal distribution where many add up

A time that errors were measured of as a whole (a training's step) takes their quantiles as they are. Of what comes from other
generations it is no surer than its parts are together.

**Source**: `errors.yaml`; the quantiles are of rows that were left out (conformal; Barber et al., "Predictive inference with the
jackknife+", Annals of Statistics 49(1), 2021). **Range**: numbers that the files state are taken as exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from hwsim.origins import CASES, PLAIN, Case
from hwsim.records import dataclass
from hwsim.results.doubts import Weight, Weights
from hwsim.results.errors import Table, table

LEVEL: Final = 90
NORMAL: Final[Mapping[int, float]] = {50: 0.6745, 80: 1.2816, 90: 1.6449}
PROGRAM: Final = "program/"  # begins the regimes of recorded calls
CALLED: Final = 3  # functions of a recorded program, at least
MOST: Final = 0.5  # part of the time that they take, at least
COUNTS: Final = 0.1  # part of the variance from which on an error says how sure the answer is
OTHERS: Final = f"{PLAIN}/others"  # regime of what is off the critical path
UNMEASURED: Final[frozenset[Case]] = frozenset({"generation", "outside"})
# A framework of the library, as others run it.
ELSEWHERE: Final = frozenset({"step/sharded", "step/tp", "step/fp8", "experts/step"})
Basis = Literal["measured", "composed", "stated"]


@dataclass(frozen=True, slots=True)
class Part:
    """The error of one key in an answer.

    Args:
        key: who shares it; regime, case: which errors it has.
        of_time: part of the time.
        shared, scatter: standard deviations of ln(answer) that it makes, by what rows miss by together, and by the rest.
        quantile: half width of its own interval over its standard deviation.
        rows, units: measured rows behind it, and devices or sources that were left out in turn; 0 of a number.
    """

    key: str
    regime: str
    case: Case
    of_time: float
    shared: float
    scatter: float
    quantile: float
    rows: int = 0
    units: int = 0

    @property
    def doubt(self) -> tuple[str, Case, str]:
        """Its identity among errors."""
        return self.regime, self.case, self.key

    @property
    def variance(self) -> float:
        """Variance of ln(answer), if nothing else were unsure."""
        return self.shared**2 + self.scatter**2

    @property
    def is_number(self) -> bool:
        """Whether it is of a single number of the files, not of a model."""
        return self.regime.startswith(PLAIN)


@dataclass(frozen=True, slots=True)
class Interval:
    """The range in which `level` of 100 such answers lie.

    Args:
        value: the answer, in seconds or whatever it is of.
        below, above: ln(value / low) and ln(high / value); alike unless two more runs found the ends.
        basis: "measured": errors of whole answers of this kind; "composed": of its parts; "stated": the files state it all.
        case: the least sure that counts.
        rows, units: measured rows and units behind the errors that count most.
        stated: part of the answer that the files state.
        own: standard deviation of ln(answer) of what such runs miss by besides their kernels.
        parts: its errors, the largest first.
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
    parts: tuple[Part, ...]

    @property
    def half(self) -> float:
        """Half width, as a logarithm."""
        return (self.below + self.above) / 2

    @property
    def low(self) -> float:
        """Lower end."""
        return self.value * math.exp(-self.below)

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value * math.exp(self.above)

    @property
    def variance(self) -> float:
        """Variance of ln(answer), from its parts and its own."""
        return math.fsum([self.own**2, *(part.variance for part in self.parts)])

    def share(self, part: Part) -> float:
        """Share of a part in the variance."""
        return part.variance / self.variance if part.variance > 0 else 0.0

    def without(self, part: Part) -> float:
        """Half width that were left if the part were known."""
        return self.half * math.sqrt(max(0.0, 1.0 - self.share(part)))

    def of(self, value: float) -> Interval:
        """The same errors around another number, a rate for instance."""
        return replace(self, value=value)


def interval(
    weights: Weights, *, value: float = 0.0, whole: str = "", level: int = LEVEL, errors: Table | None = None
) -> Interval:
    """The interval of an answer whose time hangs on these errors.

    Args:
        value: the answer; the weights' total if left out.
        whole: regime of errors that were measured of whole answers of this kind, "step/tp"; "" if none were.
        level: per cent of such answers that lie inside: 50, 80 or 90.
    """
    errors_of = table() if errors is None else errors
    parts = tuple(sorted(_parts(weights, errors_of, level), key=lambda part: (-part.variance, part.key)))
    composed = math.fsum(part.variance for part in parts)
    case = _case_of(parts, composed)
    stated = weights.stated / weights.total if weights.total > 0 else 1.0
    besides = errors_of.own[case] * mixed(parts)
    variance = composed + besides**2
    regime = whole or recorded(parts)
    measured = errors_of.errors(regime, "source" if case == "known" and regime in ELSEWHERE else case) if regime else None
    if measured is not None:
        half = measured.half[level] * (1.0 - stated)
        if measured.typical > 0:
            half *= math.sqrt((1.0 + composed / measured.typical**2) / 2.0)
        if case in UNMEASURED:  # wholes were measured of devices, links and formats that were known better
            half = max(half, _quantile(parts, composed, level) * math.sqrt(composed))
        stated_by = math.fsum(part.variance for part in parts if part.case == "stated")  # files' own, besides what was measured
        half = math.hypot(half, NORMAL[level] * math.sqrt(stated_by))
        rows, units = measured.rows, measured.units
    else:
        half = _quantile(parts, variance, level) * math.sqrt(variance)
        rows, units = (parts[0].rows, parts[0].units) if parts else (0, 0)
    basis: Basis = "measured" if measured is not None else "composed" if half > 0 else "stated"
    return Interval(value or weights.total, half, half, level, basis, case, rows, units, stated, besides, parts)


def recorded(parts: Sequence[Part]) -> str:
    """The regime of recorded programs, where their calls take most of the time; "" of a few calls alone.

    >>> calls = [Part(key, "program/measured", "known", 0.3, 0.0, 0.0, 1.0) for key in "abc"]
    >>> recorded(calls), recorded(calls[:2])
    ('program/whole', '')
    """
    calls = [part for part in parts if part.regime.startswith(PROGRAM)]
    return f"{PROGRAM}whole" if len(calls) >= CALLED and math.fsum(part.of_time for part in calls) >= MOST else ""


def mixed(parts: Sequence[Part]) -> float:
    """Part of the time that models say, by its kinds of work: 0 of one, which was measured as a whole; nearly all of many.

    >>> a, b = (Part(key, "", "known", 0.5, 0.0, 0.0, 1.0) for key in "ab")
    >>> mixed([a]), round(mixed([a, b]), 3)
    (0.0, 0.707)
    """
    times = [part.of_time for part in parts if not part.is_number]
    return math.sqrt(max(0.0, math.fsum(times) ** 2 - math.fsum(time**2 for time in times)))


def _parts(weights: Weights, errors_of: Table, level: int) -> Iterable[Part]:
    """Errors by key."""
    by_key: dict[tuple[str, Case, str], list[Weight]] = {}
    for weight in weights.weights:
        by_key.setdefault(weight.doubt[:3], []).append(weight)
    for (regime, case, key), alike in by_key.items():
        of_time = math.fsum(weight.doubt.seconds for weight in alike) / weights.total
        if (spread := spread_of(regime, errors_of)) is not None:
            yield Part(key, regime, case, of_time, of_time * spread, 0.0, NORMAL[level])
            continue
        errors = errors_of.errors(regime, case)
        if errors is None:  # such a time was never measured
            yield Part(key, regime, "outside", of_time, of_time * errors_of.spread("guess", "any"), 0.0, NORMAL[level])
            continue
        squares = math.fsum((weight.doubt.seconds / weights.total) ** 2 / weight.kernels for weight in alike)
        scatter = math.sqrt(squares) * errors.scatter
        yield Part(
            key, regime, case, of_time, of_time * errors.shared, scatter, errors.quantile(level), errors.rows, errors.units
        )


def spread_of(regime: str, errors_of: Table) -> float | None:
    """Standard deviation of a number: "number/=0.05" itself, "number/guess.latency" by its source and what it is of.

    None for a regime of a model.
    """
    kind, _, name = regime.partition("/")
    if kind != PLAIN:
        return None
    if name.startswith("="):
        return float(name[1:])
    source, _, of = name.partition(".")
    return errors_of.spread(source, of)


def _case_of(parts: Sequence[Part], variance: float) -> Case:
    """The least sure case among errors that count."""
    cases = [part.case for part in parts if part.variance > COUNTS * variance and part.case in CASES]
    return max(cases, key=CASES.index, default="known")


def _quantile(parts: Sequence[Part], variance: float, level: int) -> float:
    """Half width over the standard deviation: the errors' own where one is all, a normal distribution's where many add up."""
    normal = NORMAL[level]
    if variance <= 0:
        return normal
    return normal + math.fsum((part.variance / variance) ** 2 * (part.quantile - normal) for part in parts)
