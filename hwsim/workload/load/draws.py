"""Distributions: what is drawn for each request, from a uniform number by the inverse of the distribution.

The larger the uniform number, the larger the draw, so that another mean or spread stretches the same requests.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Final, TypeAlias, cast

import numpy as np

from hwsim.records import dataclass
from hwsim.workload.load.numbers import Floats, Number, exp, log, normal, uniform, uniforms

BLOCK: Final = 1024  # requests that are drawn together


@dataclass(frozen=True, slots=True)
class Constant:
    """The same number always."""

    value: float

    @property
    def mean(self) -> float:
        return self.value

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.value, 0.0, 0.0

    def at(self, share: Number) -> Number:
        """The number that this share of the draws is below."""
        return share * 0.0 + self.value


@dataclass(frozen=True, slots=True)
class Exponential:
    """Without memory: the time to the next of many things that know nothing of each other."""

    mean: float

    @property
    def parameters(self) -> tuple[float, float, float]:
        return self.mean, 0.0, 0.0

    def at(self, share: Number) -> Number:
        return -self.mean * log(1.0 - share)


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Numbers whose logarithms are spread normally."""

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
    """Any number from the first to the second."""

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
class Whole:
    """Any whole number from the first to the second."""

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
    """Most are small and a few very large: the share above x falls as x to the power of -shape, up to `most`."""

    shape: float
    least: float
    most: float = math.inf

    @property
    def _cut(self) -> float:
        """Share of the unbounded distribution above the largest."""
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
    """One of these, each as likely as the others; in rising order."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def parameters(self) -> tuple[float, float, float]:
        return float(len(self.values)), 0.0, 0.0

    def at(self, share: Number) -> Number:
        at: Any = share * len(self.values)
        many = isinstance(at, np.ndarray)
        return cast("Number", np.asarray(self.values, np.float64)[at.astype(np.int64)] if many else self.values[int(at)])


Distribution: TypeAlias = Constant | Exponential | Lognormal | Uniform | Whole | Pareto | Values


@dataclass(slots=True)
class Draws:
    """The draws of a statement, by request and visit: first visits 1,024 at a time; two such blocks are kept.

    Args:
        key: result of `stream`, whose names state the quantity drawn.
    """

    key: int
    distribution: Distribution
    _block: int = field(default=-1, repr=False)
    _drawn: list[float] = field(default_factory=list, repr=False)
    _other: int = field(default=-1, repr=False)
    _kept: list[float] = field(default_factory=list, repr=False)

    def at(self, request: int, visit: int = 0) -> float:
        """The draw of a request, the same whenever and how often it is asked for."""
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
        """The draws, as numbers, of requests one after another."""
        requests = np.uint64(first) + np.arange(count, dtype=np.uint64)
        return self.distribution.at(uniforms(self.key, requests))
