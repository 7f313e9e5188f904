"""Errors of an answer from machine numbers that no single op depends on: the whole answer with each number at both ends of its
range.

    ends      ln(answer / answer with the changed number), added in squares to each end of the interval
    guess     the errors of the answer already count a guessed number; that part is subtracted: the variance of the answer minus
              the variance of the answers with the changed number, in which the number has no error
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hwsim.machine.moved_numbers import STD_DEVIATIONS_AT_90, MovedNumber
from hwsim.results.errors import NORMAL, table
from hwsim.results.interval import OTHERS, Interval, IntervalPart, spread_of

T = TypeVar("T")
LEAST: Final = 1e-9  # largest ln change of an answer that does not depend on a number


def widen_by_machine_errors(found: T, moved: Sequence[tuple[MovedNumber, Sequence[T]]], of: Callable[[T], Interval]) -> Interval:
    """Return the interval of an answer with these errors.

    Args:
        found: answer.
        moved: each machine number with the answers at the ends of its range.
        of: function from an answer to its interval without these errors.
    """
    sure = of(found)
    normal, below, above, stated, parts = NORMAL[sure.level], sure.below, sure.above, sure.stated, [*sure.parts]
    for (doubt, origin, *_), ends in moved:
        others = [*map(of, ends)]
        sides = [math.log(other.value / sure.value) for other in others if sure.value > 0 and other.value > 0]
        sides += [-side for side in sides] if len(sides) == 1 else []
        if max(map(abs, sides), default=0.0) < LEAST:
            continue
        step = (spread_of(doubt.regime, table()) or 0.0) / origin.step * normal / STD_DEVIATIONS_AT_90
        counted = 0.0 if origin.spread else max(0.0, _square(sure) - max(map(_square, others))) * (normal / sure.value) ** 2
        fast, slow = (math.sqrt(max(0.0, (step * max(0.0, side)) ** 2 - counted)) for side in (-min(sides), max(sides)))
        if fast or slow:
            time_share = (max(sides) - min(sides)) / (2 * STD_DEVIATIONS_AT_90 * origin.step)
            parts.append(IntervalPart(doubt.key, doubt.regime, doubt.case, time_share, (fast + slow) / (2 * normal), 0.0, normal))
            below, above, stated = math.hypot(below, fast), math.hypot(above, slow), max(0.0, stated - time_share)
    parts.sort(key=lambda part: (-part.variance, part.key))
    basis = "composed" if sure.basis == "stated" and parts else sure.basis
    return replace(sure, below=below, above=above, basis=basis, stated=stated, parts=tuple(parts)) if moved else sure


def _square(sure: Interval) -> float:
    """Return the variance of an answer (s^2), without the errors off the critical path."""
    return sure.value**2 * math.fsum([sure.own**2, *(part.variance for part in sure.parts if part.regime != OTHERS)])
