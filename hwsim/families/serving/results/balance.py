"""Whether a service keeps up with what comes, from the number of its requests while they come.

Over the second half of the arrivals those there grow by what came less what was answered. Three things explain that. By chance
as many more come as the arrivals themselves vary: three standard deviations. A service that keeps up fills: of those that came
before, the ones that stay for long are still there, and the times of the requests say how many. A line in front of a service is
no filling. What neither explains is more than it answers.

If the load starts copies, only arrivals after the last start are judged: until then it is not known what they can do. A run that
grows and has too few of those is said to be not steady.

The times are of requests that came in the second quarter. Where they are longer than the run, as where it is overloaded from the
start, filling explains all but a line, and the run is said to be not steady, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim.families.serving.results.log import Log
from hwsim.ticks import FEMTO, Column

Numbers: TypeAlias = NDArray[np.float64]
LEAST_REQUESTS: Final = 20  # below which nothing is said
CELLS: Final = 64  # stretches of the arrivals, whose numbers say how they vary
LEAST_CELLS: Final = 9
LEAST_AFTER: Final = 0.25  # of the time of the arrivals that has to come after the last copy is ready
CHANCE: Final = 3.0  # standard deviations of what comes in the second half


class Balance(NamedTuple):
    """grows_per_s: requests by which those there grow in a second, on and on; 0 where they do not, or nothing says so.

    unsettled: they grow while requests come, and a service that fills explains it: the run is too short to tell.
    """

    grows_per_s: float = 0.0
    unsettled: bool = False


def balance(log: Log, columns: Mapping[str, Column], risen: int = 0) -> Balance:
    """Whether a run grows, and whether filling explains it.

    risen: fs from which on no more copies start, or later than the last arrival where some still do.
    """
    from_first = _balance(log, columns, log.first_arrival)
    if risen <= log.first_arrival or from_first == Balance():
        return from_first
    lasted, after = log.last_arrival - log.first_arrival, log.last_arrival - risen
    if after < LEAST_AFTER * lasted or after / lasted * log.requests < LEAST_REQUESTS:
        return Balance(unsettled=True)
    return _balance(log, columns, risen)


def _balance(log: Log, columns: Mapping[str, Column], first: int) -> Balance:
    """The same of arrivals from an instant on."""
    lasted = log.last_arrival - first
    if log.requests < LEAST_REQUESTS or lasted <= 0:
        return Balance()
    came, held, line = _sampled(log, first) if log.sampled else _all(log, columns, first)
    if len(came) < LEAST_CELLS:
        return Balance()
    half = len(came) // 2
    new = float(came[half:].sum())
    more, waiting = float(held[-1] - held[half - 1]), float(line[-1] - line[half - 1])
    chance = max(1.0, float(came.var()) / max(float(came.mean()), 1e-300))  # 1 of a Poisson process
    by_chance = CHANCE * math.sqrt(chance * new)
    if more <= by_chance:
        return Balance()
    unexplained = max(more - filling(_times(columns, first, lasted), lasted / 2) * new, waiting)
    if unexplained <= by_chance:
        return Balance(unsettled=True)
    return Balance(unexplained / (lasted * (len(came) - half) / len(came) / FEMTO))


def filling(times: Numbers, half: float) -> float:
    """Part of what comes in the second half by which a service that keeps up still fills.

    Those there grow at an instant by the arrivals of one time ago that stay for longer. Requests that stay for longer than half
    of the arrivals may do so because there are ever more of them: no more is explained then than by times up to twice the mean.
    times: how long requests stay; half: how long half of the arrivals take, in the same unit.

    >>> [round(filling(np.array([1.0, 3.0]), half), 2) for half in (0.5, 1.0, 2.0, 3.0)]
    [0.81, 0.5, 0.25, 0.0]
    """
    mean = float(times.mean())
    alike = _stay(np.linspace(0.0, 2.0 * mean, 201), half) if mean > half else 1.0
    return min(_stay(times, half), alike)


def _stay(times: Numbers, half: float) -> float:
    """Part of what came in the first half, or of as many, that is there at the end of the second in addition."""
    return float(np.clip(times - half, 0.0, half).mean()) / half


def _times(columns: Mapping[str, Column], first: int, lasted: int) -> Numbers:
    """Times that requests of the second quarter stay, fs; where not all rows are kept, of the rows in the sample."""
    arrival, end = columns["arrival"], columns["end"]
    of_quarter = (arrival >= first + lasted // 4) & (arrival <= first + lasted // 2)
    stayed: Numbers = ((end - arrival)[of_quarter] if of_quarter.any() else end - arrival).astype(np.float64)
    return stayed


def _all(log: Log, columns: Mapping[str, Column], first: int) -> tuple[Numbers, Numbers, Numbers]:
    """Requests that came in each stretch, those there and those in line at its end."""
    arrival = columns["arrival"]
    lasted = log.last_arrival - first
    step = max(1, lasted // CELLS)
    at = np.array([first + (number + 1) * step for number in range(CELLS)], arrival.dtype)
    arrived, begun, gone = (np.searchsorted(np.sort(columns[name]), at, "right") for name in ("arrival", "begin", "end"))
    before = int((arrival < first).sum())  # count
    came, held, line = (each.astype(np.float64) for each in (np.diff(arrived, prepend=before), arrived - gone, arrived - begun))
    return came, held, line


def _sampled(log: Log, first: int) -> tuple[Numbers, Numbers, Numbers]:
    """The same of a run whose rows are not all kept."""
    course = log.course
    cells = range(log.first_arrival >> course.bits, (log.last_arrival >> course.bits) + 1)
    came, begun, gone = (
        np.array([column.get(cell, 0) for cell in cells], np.float64) for column in (course.came, course.began, course.ended)
    )
    since = (first >> course.bits) - cells.start
    held, line = (np.cumsum(came - less)[since:] for less in (gone, begun))
    return came[since:], held, line
