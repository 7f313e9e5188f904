"""Statistics of the requests of a device that was simulated request by request."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class TimeStatistics:
    """Average, percentiles (interpolated linearly) and maximum of request times.

    Args:
        mean: average (s).
        p50, p95, p99: percentiles (s).
        max: maximum (s).
    """

    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, seconds: NDArray[np.float64]) -> TimeStatistics:
        """Return the statistics of these times (s); all 0 without any."""
        if not len(seconds):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p95, p99 = np.percentile(seconds, (50, 95, 99)).tolist()
        return cls(math.fsum(seconds.tolist()) / len(seconds), p50, p95, p99, float(seconds.max()))


TIMED: Final = 10_000  # largest number of requests with recorded times


@dataclass(frozen=True, slots=True, eq=False)
class RequestTimes:
    """Times of the first requests of a device.

    Args:
        issued, start, finish: times of issue, start of service and end (s).
        unit: number of the bank, chip or arm that serves the request.
        called: kind of these units.
    """

    issued: NDArray[np.float64]
    start: NDArray[np.float64]
    finish: NDArray[np.float64]
    unit: NDArray[np.int64]
    called: str


@dataclass(frozen=True, slots=True)
class RequestStatistics:
    """Statistics of the requests of one device; latencies are from issue to end.

    Args:
        device: name of the device.
        count: number of requests.
        bytes: total size (B).
        span_s: time from the first issue to the last end (s).
        latency_mean_s, latency_p50_s, latency_p95_s, latency_p99_s, latency_max_s: latency (s).
        in_flight_mean: average number in flight by Little's law: sum of the latencies / span.
        counters: counters of the device, such as row hits or seeks.
        simulated_s: total time of the ops with these requests, as simulated (s).
        closed_form_s: total time of these ops in closed form, each alone (s).
        times: times of the first requests; None if not recorded.
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
    simulated_s: float | None = None
    closed_form_s: float | None = None
    times: RequestTimes | None = field(default=None, repr=False, compare=False)

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.count / self.span_s if self.span_s > 0 else 0.0

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.bytes / self.span_s if self.span_s > 0 else 0.0

    @property
    def closed_form_error(self) -> float | None:
        """Closed-form time over simulated time, minus 1; None without a closed form."""
        if self.closed_form_s is None or not self.simulated_s:
            return None
        return self.closed_form_s / self.simulated_s - 1


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Latencies from issue to end at one load.

    Args:
        load: arrival rate as a fraction of the largest throughput.
        rate: arrival rate (requests/s).
        mean_s, p50_s, p95_s, p99_s: latency (s).
        closed_form_s: latency in closed form (s); None without one.
    """

    load: float
    rate: float
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    closed_form_s: float | None = None


@dataclass(frozen=True, slots=True)
class LatencyCurve:
    """Latency of a device against its load.

    Args:
        device: name of the device.
        points: points by load.
    """

    device: str
    points: tuple[LoadPoint, ...]

    def columns(self) -> dict[str, list[float]]:
        """Return the latencies by statistic (s): mean, p50, p95, p99, and the closed form if the device has one."""
        percentiles = {
            "mean": [point.mean_s for point in self.points],
            "p50": [point.p50_s for point in self.points],
            "p95": [point.p95_s for point in self.points],
            "p99": [point.p99_s for point in self.points],
        }
        closed_form = [point.closed_form_s for point in self.points if point.closed_form_s is not None]
        return percentiles | ({"closed form": closed_form} if len(closed_form) == len(self.points) else {})
