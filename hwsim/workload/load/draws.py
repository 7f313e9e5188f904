"""Distributions with inverse transform sampling: each draw is the quantile of a uniform random number.

Draws increase with the uniform number, so another mean or spread rescales the draws of the same requests.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Final, TypeAlias, cast

import numpy as np

from hwsim.records import dataclass
from hwsim.workload.load.numbers import Floats, Number, exp, log, normal, uniform, uniforms

BLOCK: Final = 1024  # requests per block of draws


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant."""

    value: float

    @property
    def mean(self) -> float:
        return self.value

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.value, 0.0, 0.0

    def at(self, share: Number) -> Number:
        """Return the quantile at a share between 0 and 1."""
        return share * 0.0 + self.value


@dataclass(frozen=True, slots=True)
class Exponential:
    """An exponential distribution: the time between events of a Poisson process."""

    mean: float

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.mean, 0.0, 0.0

    def at(self, share: Number) -> Number:
        return -self.mean * log(1.0 - share)


@dataclass(frozen=True, slots=True)
class Lognormal:
    """A log-normal distribution."""

    median: float
    sigma: float

    @property
    def mean(self) -> float:
        return self.median * math.exp(self.sigma**2 / 2)

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.median, self.sigma, 0.0

    def at(self, share: Number) -> Number:
        return self.median * exp(self.sigma * normal(share))


@dataclass(frozen=True, slots=True)
class Uniform:
    """A continuous uniform distribution from `low` to `high`."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.low, self.high, 0.0

    def at(self, share: Number) -> Number:
        return self.low + (self.high - self.low) * share


@dataclass(frozen=True, slots=True)
class UniformInteger:
    """A uniform distribution of the whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def parameters(self) -> tuple[float, float, float]:
        return float(self.low), float(self.high), 0.0

    def at(self, share: Number) -> Number:
        part: Any = np.floor(share * float(self.high - self.low + 1)) + float(self.low)
        return cast("Number", np.minimum(part, float(self.high)) if isinstance(part, np.ndarray) else float(min(part, self.high)))


@dataclass(frozen=True, slots=True)
class Pareto:
    """A Pareto distribution, truncated at `most`: the probability of a value above x falls as x to the power of -shape."""

    shape: float
    least: float
    most: float = math.inf

    @property
    def _cut(self) -> float:
        """Probability above `most` in the distribution without truncation."""
        return 0.0 if math.isinf(self.most) else exp(self.shape * log(self.least / self.most))

    @property
    def mean(self) -> float:
        if math.isinf(self.most) and self.shape <= 1:
            return math.inf
        if math.isclose(self.shape, 1):
            return float(self.shape * self.least**self.shape * math.log(self.most / self.least) / (1 - self._cut))
        above = 0.0 if math.isinf(self.most) else self.most ** (1 - self.shape)
        scale = self.shape * self.least**self.shape / (self.shape - 1) / (1 - self._cut)
        return float(scale * (self.least ** (1 - self.shape) - above))

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.shape, self.least, self.most

    def at(self, share: Number) -> Number:
        return self.least * exp(log(1.0 - share * (1.0 - self._cut)) * (-1.0 / self.shape))


@dataclass(frozen=True, slots=True)
class Values:
    """An empirical distribution: values of equal probability, in ascending order."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def parameters(self) -> tuple[float, float, float]:
        return float(len(self.values)), 0.0, 0.0

    def at(self, share: Number) -> Number:
        index: Any = share * len(self.values)
        values: Any = np.asarray(self.values, np.float64)[index.astype(np.int64)] if isinstance(index, np.ndarray) else None
        return cast("Number", self.values[int(index)] if values is None else values)


Distribution: TypeAlias = Constant | Exponential | Lognormal | Uniform | UniformInteger | Pareto | Values


@dataclass(slots=True)
class RandomDraws:
    """The random draws of one quantity, by request and visit.

    First visits are drawn in blocks of 1,024 requests; the two latest blocks are kept.

    Args:
        key: random stream from `stream`, whose names identify the quantity.
        distribution: distribution of the draws.
    """

    key: int
    distribution: Distribution
    _block: int = field(default=-1, repr=False)
    _drawn: list[float] = field(default_factory=list, repr=False)
    _other: int = field(default=-1, repr=False)
    _kept: list[float] = field(default_factory=list, repr=False)

    def at(self, request: int, visit: int = 0) -> float:
        """Return the draw of a request; repeated calls return the same value."""
        if visit:
            return self.distribution.at(uniform(self.key, request, visit))
        if request // BLOCK != self._block:
            self._turn_to(request // BLOCK)
        return self._drawn[request % BLOCK]

    def _turn_to(self, block: int) -> None:
        self._block, self._other = self._other, self._block
        self._drawn, self._kept = self._kept, self._drawn
        if self._block != block:
            self._block, self._drawn = block, self.many(block * BLOCK, BLOCK).tolist()

    def many(self, first: int, count: int) -> Floats:
        """Return the draws of `count` consecutive requests from `first` on."""
        requests = np.uint64(first) + np.arange(count, dtype=np.uint64)
        return self.distribution.at(uniforms(self.key, requests))
