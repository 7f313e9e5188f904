"""The errors of an answer that only whole answers follow: each number of the machine's file at both ends of its own range.

ends      ln(answer / moved answer), by which each end of the interval lies further off; numbers add in squares
a guess   that errors of the answer count already adds what they leave out: squares of seconds, less those that the moved
          answers, in which nothing doubts the number, have
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from hwsim.machine.moved import END, Moved
from hwsim.results.errors import table
from hwsim.results.interval import NORMAL, OTHERS, Interval, Part, spread_of

T = TypeVar("T")
LEAST: Final = 1e-9  # change of an answer that does not feel a number


def felt(found: T, moved: Sequence[tuple[Moved, Sequence[T]]], of: Callable[[T], Interval]) -> Interval:
    """The interval of what was found, with those errors; moved: the same with each number at the ends of its range."""
    sure = of(found)
    normal, below, above, stated, parts = NORMAL[sure.level], sure.below, sure.above, sure.stated, [*sure.parts]
    for (doubt, origin, *_), ends in moved:
        others = [*map(of, ends)]
        sides = [math.log(other.value / sure.value) for other in others if sure.value > 0 and other.value > 0]
        sides += [-side for side in sides] if len(sides) == 1 else []
        if max(map(abs, sides), default=0.0) < LEAST:
            continue
        step = (spread_of(doubt.regime, table()) or 0.0) / origin.step * normal / END
        counted = 0.0 if origin.spread else max(0.0, _square(sure) - max(map(_square, others))) * (normal / sure.value) ** 2
        fast, slow = (math.sqrt(max(0.0, (step * max(0.0, side)) ** 2 - counted)) for side in (-min(sides), max(sides)))
        if fast or slow:
            of_time = (max(sides) - min(sides)) / (2 * END * origin.step)
            parts.append(Part(doubt.key, doubt.regime, doubt.case, of_time, (fast + slow) / (2 * normal), 0.0, normal))
            below, above, stated = math.hypot(below, fast), math.hypot(above, slow), max(0.0, stated - of_time)
    parts.sort(key=lambda part: (-part.variance, part.key))
    basis = "composed" if sure.basis == "stated" and parts else sure.basis
    return replace(sure, below=below, above=above, basis=basis, stated=stated, parts=tuple(parts)) if moved else sure


def _square(sure: Interval) -> float:
    """The square of the seconds by which an answer is unsure."""
    return sure.value**2 * math.fsum([sure.own**2, *(part.variance for part in sure.parts if part.regime != OTHERS)])
