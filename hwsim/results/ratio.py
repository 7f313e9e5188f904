"""The ratio of two answers: errors that both have cancel, so that a ratio is surer than either of them.

    same key         the difference of what each has of it; of its kernels what both have alike cancels too
    same regime      two parts of one kind: correlated as measured on equal work (`errors.yaml`)
    own              of two runs: correlated by half
    half of a ratio  sqrt(a^2 + b^2 - 2 r a b), of the half widths of both and the correlation r of all that

"B is faster" is said when the ratio's interval does not hold 1: right in 95 of 100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim.origins import CASES, Case
from hwsim.records import dataclass
from hwsim.results.errors import Table, table
from hwsim.results.interval import Interval, Part

OWN: Final = 0.5  # correlation of what two runs miss by besides their kernels
LEAST: Final = -3.0  # the least that is measured: below -1 the outliers of a regime need more room than both widths together


@dataclass(frozen=True, slots=True)
class Ratio:
    """One answer over another.

    Args:
        value: first / second; half: half width of its interval, as a logarithm, at the level of both.
        outside: one of them has an error that nothing measured covers, and that the other does not share.
    """

    value: float
    half: float
    outside: bool = False

    @property
    def is_told(self) -> bool:
        """Whether it can be said which of the two is larger."""
        return not self.outside and abs(math.log(self.value)) > self.half

    @property
    def low(self) -> float:
        """Lower end."""
        return self.value * math.exp(-self.half)

    @property
    def high(self) -> float:
        """Upper end."""
        return self.value * math.exp(self.half)


def ratio(first: Interval, second: Interval) -> Ratio:
    """The first answer over the second, both above 0.

    >>> sure = Interval(2.0, 0.0, 0.0, 90, "stated", "known", 0, 0, 1.0, 0.0, ())
    >>> ratio(sure, sure.of(1.0)).is_told, ratio(sure, sure).is_told
    (True, False)
    """
    if first == second:  # the same run twice: whatever it misses by, both miss by it
        return Ratio(1.0, 0.0)
    errors_of = table()
    ours, theirs = {part.doubt: part for part in first.parts}, {part.doubt: part for part in second.parts}
    both = ours.keys() & theirs.keys()
    common = OWN * first.own * second.own
    common += math.fsum(_alike(ours[key], theirs[key], first, second) for key in sorted(both))
    apart = [[part for part in one.parts if part.doubt not in both] for one in (first, second)]
    for regime in sorted({part.regime for part in apart[0]} & {part.regime for part in apart[1]}):
        pair = [[part for part in parts if part.regime == regime] for parts in apart]
        sides = [math.sqrt(math.fsum(part.variance for part in parts)) for parts in pair]
        common += _correlation(errors_of, regime, [part.case for parts in pair for part in parts]) * math.prod(sides)
    total = math.sqrt(first.variance * second.variance)
    correlation = max(LEAST, min(1.0, common / total)) if total > 0 else 0.0
    ways = (first.below, second.above), (first.above, second.below)  # the wider one holds both
    square = max(ours_by**2 + theirs_by**2 - 2 * correlation * ours_by * theirs_by for ours_by, theirs_by in ways)
    outside = any(part.case == "outside" for parts in apart for part in parts if part.of_time > 0.02)
    return Ratio(first.value / second.value, math.sqrt(max(0.0, square)), outside)


def shares_of(first: Interval, second: Interval) -> tuple[tuple[Part | None, float], ...]:
    """Errors of a ratio with their shares of its variance, the largest first; None for what the runs miss by as wholes.

    An error that both answers have counts with what it moves them apart.
    """
    ours, theirs = {part.doubt: part for part in first.parts}, {part.doubt: part for part in second.parts}
    apart: list[tuple[Part | None, float]] = []
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


def _alike(first: Part, second: Part, one: Interval, other: Interval) -> float:
    """Covariance of two parts of a key: all that is shared; of the scatter, kernels that both have for about as long."""
    seconds = first.of_time * one.value, second.of_time * other.value
    kernels = min(seconds) / max(seconds) if max(seconds) > 0 else 0.0
    return first.shared * second.shared + kernels * first.scatter * second.scatter


def _correlation(errors_of: Table, regime: str, cases: Sequence[Case]) -> float:
    measured = errors_of.correlation.get(regime, {})
    case = max(cases, key=CASES.index)
    return measured.get(case, min(measured.values(), default=0.0))
