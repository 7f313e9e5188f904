"""The ratio of two answers: common errors cancel, so the ratio is more certain than either answer.

    same key         the difference between both; errors of kernels that both have cancel too
    same regime      two parts of one kind of work, correlated as measured on equal work (`errors.yaml`)
    own              run-level errors of two runs, correlated by 0.5
    half of a ratio  sqrt(a^2 + b^2 - 2 r a b), with the half widths a and b and the total correlation r

"B is faster" is printed if the 90 % interval of the ratio excludes 1, which is right in 95 of 100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim.origins import CASES, Case
from hwsim.records import dataclass
from hwsim.results.errors import ErrorTable, table
from hwsim.results.interval import Interval, IntervalPart

OWN: Final = 0.5  # correlation of the run-level errors of two runs
LEAST: Final = -3.0  # least measured value; below -1 if outliers of a regime exceed both widths together


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two answers.

    Args:
        value: first / second.
        half: half width of the interval of ln(ratio), at the level of both answers.
        outside: whether one answer has an error that no measurement covers and the other does not share.
    """

    value: float
    half: float
    outside: bool = False

    @property
    def is_conclusive(self) -> bool:
        """Whether the interval decides which answer is larger."""
        return not self.outside and abs(math.log(self.value)) > self.half

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value * math.exp(-self.half)

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value * math.exp(self.half)


def ratio(first: Interval, second: Interval) -> Ratio:
    """Return the ratio of two answers above 0.

    >>> sure = Interval(2.0, 0.0, 0.0, 90, "stated", "known", 0, 0, 1.0, 0.0, ())
    >>> ratio(sure, sure.of(1.0)).is_conclusive, ratio(sure, sure).is_conclusive
    (True, False)
    """
    if first == second:  # the same run: all errors cancel
        return Ratio(1.0, 0.0)
    errors_of = table()
    ours, theirs = {part.doubt: part for part in first.parts}, {part.doubt: part for part in second.parts}
    both = ours.keys() & theirs.keys()
    common = OWN * first.own * second.own
    common += math.fsum(_alike(ours[key], theirs[key], first, second) for key in sorted(both))
    apart = [[part for part in answer.parts if part.doubt not in both] for answer in (first, second)]
    for regime in sorted({part.regime for part in apart[0]} & {part.regime for part in apart[1]}):
        pair = [[part for part in parts if part.regime == regime] for parts in apart]
        sides = [math.sqrt(math.fsum(part.variance for part in parts)) for parts in pair]
        common += _correlation(errors_of, regime, [part.case for parts in pair for part in parts]) * math.prod(sides)
    total = math.sqrt(first.variance * second.variance)
    correlation = max(LEAST, min(1.0, common / total)) if total > 0 else 0.0
    ways = (first.below, second.above), (first.above, second.below)  # the wider one covers both
    square = max(ours_by**2 + theirs_by**2 - 2 * correlation * ours_by * theirs_by for ours_by, theirs_by in ways)
    outside = any(part.case == "outside" for parts in apart for part in parts if part.time_share > 0.02)
    apart_by = abs(first.correction - second.correction)  # of the user's measurements; the ratio is that of the simulated times
    return Ratio(first.value / second.value, math.sqrt(max(0.0, square)) + apart_by, outside)


def shares_of(first: Interval, second: Interval) -> tuple[tuple[IntervalPart | None, float], ...]:
    """Return the errors of a ratio with their shares of its variance, largest first; None: the run-level error.

    An error that both answers have counts with the difference between them.
    """
    ours, theirs = {part.doubt: part for part in first.parts}, {part.doubt: part for part in second.parts}
    apart: list[tuple[IntervalPart | None, float]] = []
    for key in dict.fromkeys([*ours, *theirs]):
        mine, counterpart = ours.get(key), theirs.get(key)
        variance = math.fsum(part.variance for part in (mine, counterpart) if part is not None)
        if mine is not None and counterpart is not None:
            variance -= 2 * _alike(mine, counterpart, first, second)
        apart.append((mine or counterpart, max(0.0, variance)))
    besides = first.own**2 + second.own**2 - 2 * OWN * first.own * second.own
    apart.append((None, max(0.0, besides)))
    total = math.fsum(variance for _, variance in apart)
    if total <= 0:
        return ()
    shares = [(part, variance / total) for part, variance in apart if variance > 0]
    return tuple(sorted(shares, key=lambda pair: (-pair[1], pair[0].key if pair[0] is not None else "")))


def _alike(first: IntervalPart, second: IntervalPart, first_answer: Interval, second_answer: Interval) -> float:
    """Return the covariance of two parts with one key: the shared error, and the scatter of kernels that both answers have."""
    seconds = first.time_share * first_answer.value, second.time_share * second_answer.value
    kernels = min(seconds) / max(seconds) if max(seconds) > 0 else 0.0
    return first.shared * second.shared + kernels * first.scatter * second.scatter


def _correlation(errors_of: ErrorTable, regime: str, cases: Sequence[Case]) -> float:
    measured = errors_of.correlation.get(regime, {})
    return measured.get(max(cases, key=CASES.index), min(measured.values())) if measured else 0.0
