"""Statistics of the requests of a device that was simulated request by request."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds of many requests: mean, percentiles straight between the nearest two, the largest."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: NDArray[np.float64]) -> Spread:
        """The spread of some times; all 0 if there are none."""
        if not len(seconds):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p95, p99 = np.percentile(seconds, (50, 95, 99)).tolist()
        return cls(math.fsum(seconds.tolist()) / len(seconds), p50, p95, p99, float(seconds.max()))


TIMED: Final = 10_000  # requests of a device, up to which the times of each are kept


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Seconds at which each of the first requests was issued, began to be served and finished, and where.

    Args:
        unit: number of the bank, chip or arm that serves it; called: what these are.
    """

    issued: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    unit: NDArray[np.int64]
    called: str


@dataclass(frozen=True, slots=True)
class RequestStatistics:
    """Latencies are from issue to finish. span_s: from the first issue to the last finish.

    in_flight_mean: by Little's law, the latencies' sum over the span.  counters: the device's own (row hits, seeks, ...).
    times: when each of the first requests was served.
    took_s, closed_form_s: seconds of the ops that asked, summed, as simulated and as the closed form has it alone.
    """

    device: str
    count: int
    bytes: float
    span_s: float
    latency_mean_s: float
    latency_p50_s: float
    latency_p95_s: float
    latency_p99_s: float
    latency_max_s: float
    in_flight_mean: float
    counters: tuple[tuple[str, float], ...] = ()
    took_s: float | None = None
    closed_form_s: float | None = None
    times: Times | None = field(default=None, repr=False, compare=False)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.count / self.span_s if self.span_s > 0 else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bytes / self.span_s if self.span_s > 0 else 0.0

    @property
    def gap(self) -> float | None:
        """The closed form's time over the simulated one, less one."""
        if self.closed_form_s is None or not self.took_s:
            return None
        return self.closed_form_s / self.took_s - 1


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Latencies (from issue to finish) at a load: `rate` requests per second, `load` of the most that are served."""

    load: float
    rate: float
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    closed_form_s: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """Latency of a device's requests against its load."""

    device: str
    points: tuple[LoadPoint, ...]

    def columns(self) -> dict[str, list[float]]:
        """Seconds by what they are: mean, p50, p95, p99, and the closed form where the device has one."""
        percentiles = {
            "mean": [point.mean_s for point in self.points],
            "p50": [point.p50_s for point in self.points],
            "p95": [point.p95_s for point in self.points],
            "p99": [point.p99_s for point in self.points],
        }
        closed_form = [point.closed_form_s for point in self.points if point.closed_form_s is not None]
        return percentiles | ({"closed form": closed_form} if len(closed_form) == len(self.points) else {})
