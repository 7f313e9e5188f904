"""The test for overload: whether a service keeps up with its arrivals, from the number of requests in the system.

During the second half of the arrivals, the number of requests in the system grows by arrivals minus completions. Three causes can
explain the growth:

    chance      up to three standard deviations of the number of arrivals
    filling     a service that keeps up first fills with requests that stay long; their number follows from the latencies
    overload    the rest; a growing queue is never counted as filling

With autoscaling, only arrivals after the last replica start are tested, because the capacity is not known before. A growing run
with too few of these arrivals is reported as not steady.

The latencies are of requests that arrived in the second quarter. If they are longer than the run, for example after overload from
the start, filling explains everything except a growing queue, and the run is only reported as not steady.
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
LEAST_REQUESTS: Final = 20  # minimum requests for the test
CELLS: Final = 64  # time intervals in which arrivals are counted, to estimate their variance
LEAST_CELLS: Final = 9  # minimum intervals for the test
LEAST_AFTER: Final = 0.25  # minimum share of the arrival time after the last replica start
CHANCE: Final = 3.0  # standard deviations of the arrivals in the second half


class Balance(NamedTuple):
    """The result of the test for overload.

    Args:
        queue_growth_per_s: persistent growth of the requests in the system (requests/s); 0 without overload, or if unknown.
        unsettled: the number grows, but filling can explain it: the run is too short to decide.
    """

    queue_growth_per_s: float = 0.0
    unsettled: bool = False


def balance(log: Log, columns: Mapping[str, Column], risen: int = 0) -> Balance:
    """Return the result of the test for a run.

    Args:
        log: log of the service.
        columns: columns of the requests whose rows are kept.
        risen: time of the last replica start (fs); later than the last arrival if replicas still start then.
    """
    from_first = _test_overload(log, columns, log.first_arrival)
    if risen <= log.first_arrival or from_first == Balance():
        return from_first
    lasted, after = log.last_arrival - log.first_arrival, log.last_arrival - risen
    if after < LEAST_AFTER * lasted or after / lasted * log.requests < LEAST_REQUESTS:
        return Balance(unsettled=True)
    return _test_overload(log, columns, risen)


def _test_overload(log: Log, columns: Mapping[str, Column], first: int) -> Balance:
    """Return the result for arrivals from an instant on."""
    lasted = log.last_arrival - first
    if log.requests < LEAST_REQUESTS or lasted <= 0:
        return Balance()
    came, present, line = _sampled_counts(log, first) if log.sampled else _interval_counts(log, columns, first)
    if len(came) < LEAST_CELLS:
        return Balance()
    half = len(came) // 2
    new = float(came[half:].sum())
    more, waiting = float(present[-1] - present[half - 1]), float(line[-1] - line[half - 1])
    chance = max(1.0, float(came.var()) / max(float(came.mean()), 1e-300))  # variance / mean, 1 for a Poisson process
    by_chance = CHANCE * math.sqrt(chance * new)
    if more <= by_chance:
        return Balance()
    unexplained = max(more - filling(_latencies(columns, first, lasted), lasted / 2) * new, waiting)
    if unexplained <= by_chance:
        return Balance(unsettled=True)
    return Balance(unexplained / (lasted * (len(came) - half) / len(came) / FEMTO))


def filling(times: Numbers, half: float) -> float:
    """Return the share of the arrivals in the second half by which a service that keeps up still fills.

    The number in the system grows by the earlier arrivals that stay longer than the time since then. Latencies above half of the
    arrival time may be due to overload itself, so the result is then at most that of latencies uniform up to twice the mean.

    Args:
        times: latencies of requests.
        half: duration of half of the arrivals, in the same unit.

    >>> [round(filling(np.array([1.0, 3.0]), half), 2) for half in (0.5, 1.0, 2.0, 3.0)]
    [0.81, 0.5, 0.25, 0.0]
    """
    mean = float(times.mean())
    alike = _growth_share(np.linspace(0.0, 2.0 * mean, 201), half) if mean > half else 1.0
    return min(_growth_share(times, half), alike)


def _growth_share(times: Numbers, half: float) -> float:
    """Return the growth during the second half, as a share of its arrivals, for these latencies."""
    return float(np.clip(times - half, 0.0, half).mean()) / half


def _latencies(columns: Mapping[str, Column], first: int, lasted: int) -> Numbers:
    """Return the latencies of requests that arrived in the second quarter (fs), or of the sample of rows."""
    arrival, end = columns["arrival"], columns["end"]
    of_quarter = (arrival >= first + lasted // 4) & (arrival <= first + lasted // 2)
    stayed: Numbers = ((end - arrival)[of_quarter] if of_quarter.any() else end - arrival).astype(np.float64)
    return stayed


def _interval_counts(log: Log, columns: Mapping[str, Column], first: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return (arrivals, requests in the system, queued requests) of each interval, the last two at its end."""
    arrival = columns["arrival"]
    lasted = log.last_arrival - first
    step = max(1, lasted // CELLS)
    ends = np.array([first + (number + 1) * step for number in range(CELLS)], arrival.dtype)
    arrived, begun, gone = (np.searchsorted(np.sort(columns[name]), ends, "right") for name in ("arrival", "begin", "end"))
    before = int((arrival < first).sum())  # count
    came, present, line = (row.astype(np.float64) for row in (np.diff(arrived, prepend=before), arrived - gone, arrived - begun))
    return came, present, line


def _sampled_counts(log: Log, first: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the same as `_interval_counts` from the course, for a run whose rows are a sample."""
    course = log.course
    cells = range(log.first_arrival >> course.bits, (log.last_arrival >> course.bits) + 1)
    came, begun, gone = (
        np.array([column.get(cell, 0) for cell in cells], np.float64) for column in (course.came, course.began, course.ended)
    )
    since = (first >> course.bits) - cells.start
    present, line = (np.cumsum(came - less)[since:] for less in (gone, begun))
    return came[since:], present, line
