"""Measured prediction errors: the table of `errors.yaml`, by regime (kind of time) and case (what was known).

Errors are of ln(predicted / measured): 0.1 is 10 % in either direction. `python -m published --errors` computes the table from
measurements that the constants were not fitted to; no entry is written by hand.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hwsim.formats import pluralized
from hwsim.origins import CASES, PLAIN, Case, UncertaintySource
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.machine.scores import Scores

NORMAL: Final[Mapping[int, float]] = {50: 0.6745, 80: 1.2816, 90: 1.6449}  # quantiles of |x| by level
FEWEST: Final = 3  # runs of a regime from which the user's measurements update its errors
LEAST_SCATTER: Final = 0.25  # least share of the standard deviation that single rows have
MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)  # standard error of a median over that of a mean, for a normal distribution
UNLIKE: Final = "no similar training measured"
WIDER: Final = 2.0  # factor on the widest case if no equally uncertain case was measured


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one regime in one case.

    Args:
        rows: number of measurements.
        units: number of devices or sources that were held out in turn.
        shared: standard deviation of the error that all measurements of a unit have in common.
        scatter: standard deviation of the rest.
        half: half width by level, in per cent of the measurements inside: {50: 0.05, 90: 0.2}.
        typical: median propagated standard deviation of the measurements; 0 if it does not separate small errors from large
            ones.
        case: case that was measured; it may differ from the requested one, which is then less certain.
    """

    rows: int
    units: int
    shared: float
    scatter: float
    half: Mapping[int, float]
    typical: float = 0.0
    case: Case = "known"

    @property
    def sigma(self) -> float:
        """Standard deviation of one prediction."""
        return math.hypot(self.shared, self.scatter)

    def quantile(self, level: int) -> float:
        """Return the half width over the standard deviation: 1.64 for 90 % of a normal distribution, more for heavy tails."""
        return self.half[level] / self.sigma if self.sigma > 0 else 0.0

    def widened(self, factor: float) -> Errors:
        """Return the errors times a factor; the shared error grows as for all kernels of an unmeasured device."""
        half = {level: width * factor for level, width in self.half.items()}
        shared = math.sqrt((self.sigma * factor) ** 2 - self.scatter**2)
        return Errors(self.rows, self.units, shared, self.scatter, half, self.typical, self.case)


@dataclass(frozen=True, slots=True)
class MeasuredKinds:
    """Kinds of measured training steps of transformers.

    Args:
        spread: standard deviation of ln(answer) for each property in which a step differs from all of them.
        version: the same for a framework, or a version of it, that trains experts.
        measured: (framework, family, format, GPU generation, size) of each kind; "any" property: covered by held-out errors.
    """

    spread: float
    version: float
    measured: tuple[tuple[str, ...], ...]

    def unlike(self, kind: Sequence[str]) -> tuple[UncertaintySource, ...]:
        """Return an error for each property in which a step differs from the most similar measured one of its family.

        >>> [error[::2] for error in MeasuredKinds(0.2, 0.3, (("torchtitan", "dense"),)).unlike(("torchtitan", "experts"))]
        [('number/=0.2', 'no similar training measured: experts')]
        """
        new = min(
            ([mine for mine, other in zip(kind, found, strict=True) if other not in (mine, "any")] for found in self.measured),
            key=lambda new: (kind[1] in new, len(new)),
            default=[],
        )
        spreads = (self.version if name == kind[0] and "experts" in kind else self.spread for name in new)
        return tuple(
            UncertaintySource(f"{PLAIN}/={spread!r}", "stated", f"{UNLIKE}: {name}", 0.0)
            for name, spread in zip(new, spreads, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ErrorTable:
    """Errors of models by regime and case, and of single numbers by the kind of their source.

    Args:
        regimes: errors by regime and case.
        own: standard deviation of the run-level error, by case.
        numbers: standard deviation of ln(number) by kind of source, then by kind of number ("any" for all others).
        correlation: correlation of the errors of equal work on two devices, by regime and case.
        kinds: kinds of measured training steps.
        scores: ln(measured / predicted) of runs that the user measured, by regime.
        file: name of the file of these runs.
    """

    regimes: Mapping[str, Mapping[Case, Errors]]
    own: Mapping[Case, float]
    numbers: Mapping[str, Mapping[str, float]]
    correlation: Mapping[str, Mapping[Case, float]]
    kinds: MeasuredKinds
    scores: Mapping[str, Sequence[float]] = field(default_factory=dict)
    file: str = ""

    def errors(self, regime: str, case: Case) -> Errors | None:
        """Return the errors of a regime in a case; None if its topic was never measured.

        A missing case has the errors of the next less certain one; if none was measured, the widest errors times 2. A missing
        regime has the errors of its topic, such as "nccl/*".
        """
        cases = self.regimes.get(regime) or self.regimes.get(regime.partition("/")[0] + "/*")
        if not cases:
            return None
        widest = max(cases.values(), key=lambda errors: errors.half[90])
        if case == "outside":
            return widest
        for less_sure in CASES[CASES.index(case) :]:
            if less_sure in cases:
                return cases[less_sure]
        return widest.widened(WIDER)

    def update(self, regime: str, errors: Errors, half: float, level: int) -> Update:
        """Return the errors of a regime after the user's measurements; half: half width without them."""
        prior = half / NORMAL[level]
        within = max(LEAST_SCATTER, errors.scatter / errors.sigma) if errors.sigma > 0 else 1.0
        return updated(prior, within * prior, self.scores.get(regime, ()))

    def cited(self, runs: int) -> str:
        """Return the user's measurements in words; "" for none."""
        return f"{pluralized(runs, 'measurement')} of {self.file}" if runs else ""

    def spread(self, source: str, kind: str) -> float:
        """Return the standard deviation of ln(number), by kind of source and of number."""
        spreads = self.numbers[source]
        return spreads.get(kind, spreads["any"])


class Update(NamedTuple):
    """Errors of a regime after the user measured some runs of it.

    Args:
        correction: ln(expected / predicted).
        shared, scatter: standard deviations of the correction and of one run around it.
        half: half width by level.
        runs: number of measured runs; 0 if they are too few.
    """

    correction: float = 0.0
    shared: float = 0.0
    scatter: float = 0.0
    half: Mapping[int, float] = {}
    runs: int = 0


def updated(prior: float, within: float, logs: Sequence[float]) -> Update:
    """Return the errors of a regime after the user measured some runs; fewer than `FEWEST` change nothing.

    The errors so far are the prior: their standard deviation s0 is that of the offset of the user's runs. The scatter of runs of
    one device or source, w0, counts as one run.

        correction   m s0^2 / (s0^2 + e^2) for the median m with standard error e; 0 if |m| <= e
        scatter^2    (w0^2 + (n - 1) d^2) / n, but at least d^2, the variance of the n runs around the correction
        half         t(level, n) scatter sqrt(1 + pi / 2n), at least the conformal quantile of the runs; at most as before if
                     the runs scatter by less than w0

    Args:
        prior: standard deviation of ln(predicted / measured) so far.
        within: part of it that rows of one device or source do not share.
        logs: ln(measured / predicted) of each run.

    >>> found = updated(0.1, 0.1, [0.05, 0.06, 0.07] * 4)
    >>> round(found.correction, 3), round(found.half[90], 3), updated(0.1, 0.1, [0.3, 0.3]).runs
    (0.06, 0.057, 0)

    Source: normal model with unknown variance (Gelman et al., Bayesian Data Analysis, 3.3); split conformal prediction.
    """
    count = len(logs)
    if count < FEWEST:
        return Update()
    from statistics import median, stdev  # slow import, rarely needed

    middle, error = median(logs), MEDIAN_ERROR * stdev(logs) / math.sqrt(count)
    correction = middle * prior**2 / (prior**2 + error**2) if abs(middle) > error and prior > 0 else 0.0
    off = sorted(abs(log - correction) for log in logs)
    square = math.fsum(value**2 for value in off) / (count - 1)
    scatter = math.sqrt(max(square, (within**2 + (count - 1) * square) / count))
    shared = scatter * MEDIAN_ERROR / math.sqrt(count)
    ranks = {level: math.ceil(level / 100 * (count + 1)) for level in NORMAL}
    shown = {level: off[rank - 1] if rank <= count else 0.0 for level, rank in ranks.items()}
    most = prior if square <= within**2 else math.inf  # runs that scatter as expected do not widen the interval
    half = {
        level: max(min(student(z, count) * math.hypot(scatter, shared), z * most), shown[level]) for level, z in NORMAL.items()
    }
    return Update(correction, shared, scatter, half, count)


def student(z: float, count: int) -> float:
    """Return the quantile of Student's t distribution with `count` degrees of freedom from that of a normal distribution.

    >>> round(student(1.6449, 3), 2), round(student(1.6449, 1000), 3)
    (2.35, 1.646)

    Source: Abramowitz and Stegun 26.7.5. **Error**: below 0.5 % from 3 degrees of freedom.
    """
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / count**power for power, term in enumerate(terms, 1))


@functools.cache
def table() -> ErrorTable:
    """Return the table that ships with hwsim."""
    return read((Path(__file__).parents[1] / "errors.yaml").read_text(encoding="utf-8"))


def table_of(scores: Scores | None) -> ErrorTable:
    """Return the table that ships with hwsim, updated with the user's measurements."""
    return table() if scores is None else replace(table(), scores=scores.logs, file=scores.file)


def read(text: str) -> ErrorTable:
    """Return the table of a file: comments, then JSON, which parses thirty times as fast as YAML."""
    document = json.loads(re.sub(r"(?m)^#.*$", "", text))
    regimes = document["regimes"]
    return ErrorTable(
        {regime: {case: _errors(regimes, regime, case) for case in cases} for regime, cases in regimes.items()},
        document["steps"]["own"],
        {kind: {name: number for name, number in row.items() if name != "how"} for kind, row in document["numbers"].items()},
        {regime: {case: row["correlation"] for case, row in cases.items()} for regime, cases in document["ratio"].items()},
        MeasuredKinds(**{**document["kinds"], "measured": tuple(tuple(kind.split()) for kind in document["kinds"]["measured"])}),
    )


def _errors(regimes: Mapping[str, Any], regime: str, case: Case) -> Errors:
    """Return the errors of an entry; an entry copied from another one has the counts of that one."""
    row = counted = regimes[regime][case]
    half, wanted = {int(level): width for level, width in row["half"].items()}, case
    for _ in CASES:  # at most one copy per case
        if (less_sure := counted.get("as")) is None:
            break
        regime, case = (less_sure, case) if less_sure in regimes else (regime, less_sure)
        counted = regimes[regime][case]
    return Errors(counted["rows"], counted["units"], row["shared"], row["scatter"], half, row.get("typical", 0.0), wanted)
