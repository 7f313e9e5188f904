"""Fit of transfer times by message size: latency, bandwidth, a knee in between, and a square root for protocol changes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from hwsim.demand import knee_bytes
from hwsim.formats import percent
from hwsim.records import dataclass
from hwsim_calibrate.fit.least_squares import PULL, SCALE, Floats, Problem, solve
from hwsim_calibrate.logs.result import REPEATS, Number, Row

MIN_SIZES = 3
UNKNOWN_KNEE = 3.0  # standard deviation of the logarithm of a knee beyond all sizes
NAMES = ("start", "rate", "knee", "root")


@dataclass(frozen=True, slots=True)
class KneeCurve:
    """start + root x sqrt(bytes) + (bytes + knee (1 - exp(-bytes / knee))) / rate.

    Args:
        start: latency (s).
        rate: bandwidth (B/s).
        knee: size of the knee (bytes).
        root: coefficient of the square root (s per square root of a byte).
        median: median relative error.
        worst: maximum relative error.
        points: number of fitted sizes.
        sigma: parameter -> standard deviation of its logarithm.
        off: root mean square error of the logarithm of the times, a lower bound for the uncertainty of each parameter.
    """

    start: float
    rate: float
    knee: float
    root: float
    median: float
    worst: float
    points: int
    sigma: Mapping[str, float]
    off: float

    def seconds(self, size: float) -> float:
        """Return the time (s) of a message of `size` bytes."""
        return self.start + self.root * math.sqrt(size) + knee_bytes(size, self.knee) / self.rate

    def number(self, name: str, unit: str) -> Number:
        """Return a parameter of the curve as a number of a part."""
        return Number(getattr(self, name), unit, self.points, self.sigma[name], math.hypot(REPEATS, self.off))

    def rows(self, points: Sequence[tuple[float, float]], what: str) -> list[Row]:
        """Return measured and fitted times of some (bytes, seconds)."""
        return [Row(f"{what} {size:,.0f} B".strip(), "s", seconds, self.seconds(size)) for size, seconds in points]

    def __str__(self) -> str:
        return f"{self.points} sizes, median error {percent(self.median, '.1f')}, maximum {percent(self.worst, '.0f')}"


def fit_knee(points: Sequence[tuple[float, float]], *, rooted: bool = False) -> KneeCurve:
    """Fit a curve to (bytes, seconds) by robust relative errors; rooted: with the square root.

    >>> curve = fit_knee([(8.0 * 4**n, 10e-6 + 8.0 * 4**n / 50e9) for n in range(14)])
    >>> round(curve.start * 1e6, 1), round(curve.rate / 1e9, 1)
    (10.0, 50.0)
    """
    size, time = (np.array(column, np.float64) for column in zip(*sorted(points), strict=True))
    guess = np.log([time[0], size[-1] / time[-1], 1e5, time[0] / 1e4])

    def times(x: Floats) -> tuple[Floats, Floats]:
        start, rate, knee, root = np.exp(x)
        decay = np.exp(-size / knee)
        extra, slow = knee * (1.0 - decay), root * np.sqrt(size) * rooted
        slopes = (np.full(len(size), start), -(size + extra) / rate, (extra - size * decay) / rate, slow)
        return start + (size + extra) / rate + slow, np.stack(slopes, axis=1)

    spread = np.full(4, 2.0)
    with np.errstate(all="ignore"):  # impossible times end in NaN, which is refused later
        try:
            x = solve(Problem(times, time, guess, spread, np.ones(len(size))), scale=0.1)
        except np.linalg.LinAlgError:
            x = np.full(4, np.nan)
        seconds, slopes = times(x)
        residual = np.log(seconds / time)
        jacobian = slopes / seconds[:, None]
        noise = float((residual**2).sum()) / max(len(size) - (4 if rooted else 3), 1)
        weak = np.diag(np.where([True, True, True, rooted], (PULL * SCALE / spread) ** 2, 1.0))
        inverse = np.linalg.inv(jacobian.T @ jacobian + weak) if np.isfinite(x).all() else np.full((4, 4), np.nan)
        sigma = np.sqrt(noise * np.diag(inverse))
        beyond = np.exp(-size[-1] / np.exp(x[2]))  # if all sizes are below the knee, it may not exist, with half the rate
        lost = math.sqrt(noise) * (np.exp(x[0] + x[1] - x[2]) + 2.0)  # the error over the contribution of the knee at its size
        sigma = np.hypot(sigma, [0.0, math.log(2.0) * beyond, UNKNOWN_KNEE * beyond + lost, 0.0])
    errors = np.abs(seconds / time - 1.0)
    start, rate, knee, root = (float(value) for value in np.exp(x))
    median, worst = float(np.median(errors)), float(errors.max())
    named = dict(zip(NAMES, sigma.tolist(), strict=True))
    return KneeCurve(start, rate, knee, root if rooted else 0.0, median, worst, len(size), named, math.sqrt(noise))
