"""Random values: distributions by their quantile function, and independent or Latin hypercube samples of them.

A Latin hypercube of n points has one value in each of n equally likely intervals of every distribution, so few points cover
its range (McKay, Beckman and Conover, Technometrics 21(2), 1979). Equal seeds produce equal points on every system.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree
from hwsim.spec.ranges import is_range, parse_range
from hwsim.studies.grid import scalar, with_unit
from hwsim.units import COUNT, Dimension, Quantity, UnitError, parse, parse_as

DIGITS: Final = 6  # digits of a random value; rows contain exactly the simulated value
_POINT: Final = re.compile(r"\d\.\d")
LEAST: Final = 1e-9  # smallest quantile of a normal distribution
Quantile = Callable[[float], object]  # of a number from 0 to 1, which is left out


@dataclass(frozen=True, slots=True)
class UniformRange:
    """A uniform or log-uniform distribution between two ends."""

    low: float
    high: float
    log: bool
    whole: bool
    dimension: Dimension

    def __call__(self, part: float) -> object:
        """Return the quantile at `part` (0 to 1)."""
        if self.whole:
            return self._whole(part)
        value = self.low * (self.high / self.low) ** part if self.log else self.low + (self.high - self.low) * part
        return _written(value, self.dimension)

    def _whole(self, part: float) -> int:
        if self.log:
            low, high = self.low - 0.5, self.high + 0.5
            return min(round(low * math.pow(high / low, part)), int(self.high))
        return int(self.low) + min(int(part * (self.high - self.low + 1)), int(self.high - self.low))


@dataclass(frozen=True, slots=True)
class NormalDistribution:
    """A normal distribution, truncated at `low` and `high`."""

    mean: float
    sd: float
    low: float
    high: float
    whole: bool
    dimension: Dimension

    def __call__(self, part: float) -> object:
        """As of `UniformRange`."""
        bell = NormalDist(self.mean, self.sd)
        first, last = bell.cdf(self.low), bell.cdf(self.high)
        value = bell.inv_cdf(min(max(first + (last - first) * part, LEAST), 1 - LEAST))
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else _written(value, self.dimension)


@dataclass(frozen=True, slots=True)
class DiscreteChoice:
    """A uniform distribution over a list of values."""

    values: tuple[object, ...]

    def __call__(self, part: float) -> object:
        """As of `UniformRange`."""
        return self.values[min(int(part * len(self.values)), len(self.values) - 1)]


def distribution(tree: Tree, mistakes: Mistakes) -> Quantile | None:
    """Parse a distribution; return None and add its mistakes if it is invalid.

    8 GB/s..64 GB/s                                uniform; :log for log-uniform; whole numbers if both ends are whole
    [a, b, c]                                      one of the values, with equal probability
    {normal: {mean: 6 ms, sd: 1 ms, low: 1 ms}}    normal, truncated
    """
    try:
        return _distribution(tree, mistakes)
    except UnitError as error:
        mistakes.add(tree.place, error.message, error.hint)
        return None


def _distribution(tree: Tree, mistakes: Mistakes) -> Quantile | None:
    if tree.is_list:
        return _choice(tree, mistakes)
    if is_range(tree.value):
        return _between(str(tree.value), tree, mistakes)
    if not tree.is_mapping or len(tree.items()) != 1:
        mistakes.add(
            tree.place, f"not a distribution: {tree.what()}", "8 GB/s..64 GB/s, [a, b] or {normal: {mean: 6 ms, sd: 1 ms}}"
        )
        return None
    ((kind, inside),) = tree.items()
    if kind == "normal":
        return _normal(inside, mistakes)
    mistakes.add(tree.key_place(kind), f"unknown distribution '{kind}'", "8 GB/s..64 GB/s, 1..64:log, [a, b] or normal")
    return None


def _choice(tree: Tree, mistakes: Mistakes) -> DiscreteChoice | None:
    values = tuple(scalar(element.plain()) for element in tree.elements())
    if not values:
        mistakes.add(tree.place, "the list of values is empty", "[a, b, c]")
        return None
    return DiscreteChoice(values)


def _between(text: str, tree: Tree, mistakes: Mistakes) -> UniformRange | None:
    """Parse a range as a distribution; of whole numbers if both ends are whole."""
    ends = parse_range(text, listed=False)
    if ends.scale == "times" or (ends.scale == "linear" and ":" in text):
        mistakes.add(tree.place, f"a random range cannot have steps, got '{text}'", "remove the step, or use :log")
        return None
    return UniformRange(ends.low, ends.high, ends.scale == "log", ends.whole and not _POINT.search(text), ends.dimension)


def _normal(tree: Tree, mistakes: Mistakes) -> NormalDistribution | None:
    numbers: dict[str, Quantity] = {}
    for key, inside in tree.items():
        if key not in ("mean", "sd", "low", "high"):
            mistakes.add(tree.key_place(key), f"unknown key '{key}' of a normal distribution", "known keys: mean, sd, low, high")
            return None
        numbers[key] = _quantity(inside)
    if not {"mean", "sd"} <= numbers.keys():
        mistakes.add(tree.place, "a normal distribution requires `mean` and `sd`", "{normal: {mean: 6 ms, sd: 1 ms}}")
        return None
    mean = numbers["mean"]
    for key, quantity in numbers.items():
        if not quantity.dimension.fits(mean.dimension):
            mistakes.add(tree.key_place(key), f"`{key}` is {quantity.dimension.name}, but `mean` is {mean.dimension.name}")
            return None
    sd = numbers["sd"].value
    low = numbers["low"].value if "low" in numbers else 0.0 if mean.value > 0 else -math.inf
    high = numbers["high"].value if "high" in numbers else math.inf
    if sd <= 0 or not low < high or not low - 5 * sd < mean.value < high + 5 * sd:
        mistakes.add(tree.place, "the distribution is empty", "sd must be above 0, and mean between low (default: 0) and high")
        return None
    is_whole = all(isinstance(inside.value, int) for _, inside in tree.items())
    return NormalDistribution(mean.value, sd, low, high, is_whole, mean.dimension)


def _quantity(tree: Tree) -> Quantity:
    value: Any = tree.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Quantity(float(value), COUNT)
    return value if isinstance(value, Quantity) else parse(str(value))


def _written(value: float, dimension: Dimension) -> object:
    """Return a value rounded as in a file; as text if it has a unit."""
    value = float(f"{value:.{DIGITS}g}")
    if dimension.plain:
        return value
    text = with_unit(Quantity(value, dimension))
    parse_as(text, dimension)
    return text


def draw_points(quantiles: Sequence[Quantile], points: int, seed: int, *, latin: bool) -> Iterator[tuple[object, ...]]:
    """Yield random points, each with a value of every distribution.

    >>> sorted(value for value, in draw_points([DiscreteChoice((1, 2, 3, 4))], 4, 7, latin=True))
    [1, 2, 3, 4]
    """
    columns = []
    for number in range(len(quantiles)):
        dice = random.Random(f"{seed} {number}")  # a stream for each path: one more path leaves the others as they are
        parts = [dice.random() for _ in range(points)]
        if latin:
            ranks = sorted(range(points), key=[dice.random() for _ in range(points)].__getitem__)
            parts = [(rank + part) / points for rank, part in zip(ranks, parts, strict=True)]
        columns.append(parts)
    for point in zip(*columns, strict=True):
        yield tuple(quantile(part) for quantile, part in zip(quantiles, point, strict=True))
