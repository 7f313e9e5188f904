"""Random values in statements: `bytes: {lognormal: {median: 3 MB, sigma: 0.6}}, as: photo`, and later `$photo`.

A statement is lowered at a dozen values between the extremes of the distribution, and its time is interpolated linearly. If the
times lie on one line, two values remain, and the interpolation is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, decode, names_in
from hwsim.units import Dimension, Quantity
from hwsim.workload.load.draws import Distribution
from hwsim.workload.load.keys import WAYS, CountDraw, SizeDraw, TimeDraw

SHARES: Final = (1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.999, 0.9999)  # quantiles to lower at
STRAIGHT: Final = 1e-6  # relative deviation below which two segments are one
_DRAWS: Final = (TimeDraw, SizeDraw, CountDraw)


@dataclass(frozen=True, slots=True)
class RandomValue:
    """A random value of a statement.

    Args:
        distribution: distribution in SI units.
        dimension: dimension of its values.
        slot: index of the kept value of an earlier statement; -1: the statement draws it.
    """

    distribution: Distribution
    dimension: Dimension
    slot: int = -1

    def quantity(self, value: float) -> Quantity | float:
        """Return a value as a file would have it."""
        return value if self.dimension.plain else Quantity(value, self.dimension)


def is_draw(tree: Tree) -> bool:
    """Whether a node is a distribution in the place of a value."""
    return isinstance(tree.value, dict) and len(tree.value) == 1 and next(iter(tree.value)) in WAYS


def draws_in(tree: Tree) -> Iterator[Tree]:
    """Yield the distributions in a statement."""
    if is_draw(tree):
        yield tree
        return
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    for entry in inside:
        yield from draws_in(entry)


def kept_in(tree: Tree) -> Iterator[str]:
    """Yield the names after `$` in a statement: kept values and others."""
    if isinstance(tree.value, str):
        yield from names_in(tree.value)
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    for entry in inside:
        yield from kept_in(entry)


def kept_of(tree: Tree) -> frozenset[str]:
    """Return all names defined with `as:` in the services of a file and its jobs; their values differ per request."""
    jobs = tree.get("jobs")
    inside = [] if jobs is None else [job.get("services") for _, job in jobs.items()]
    result: set[str] = set()
    stack = [services for services in (tree.get("services"), *inside) if services is not None]
    while stack:
        node = stack.pop()
        if (name := node.text("as")) is not None:
            result.add(name)
        stack += node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    return frozenset(result)


def read_draw(tree: Tree, mistakes: Mistakes) -> RandomValue | None:
    """Return the random value that a node defines, or None if mistakes were noted."""
    result: Any = None
    for keys in _DRAWS:
        trial = Mistakes()
        result = decode(tree, keys, trial)
        if result is not None and not len(trial):
            break
        result = None
    if result is None:
        decode(tree, TimeDraw, mistakes)
        return None
    before = len(mistakes)
    for key, message, hint in result.problems():
        mistakes.add(tree.key_place(key) if key else tree.place, message, hint)
    return RandomValue(result.distribution, result.dimension) if len(mistakes) == before else None


def substitute_draw(tree: Tree, drawn: Tree | None, value: Any) -> Tree:
    """Return the statement with a value in the place of its distribution."""
    if tree is drawn:
        return Tree(value, tree.place)
    if isinstance(tree.value, dict):
        return replace(tree, value={key: substitute_draw(entry, drawn, value) for key, entry in tree.value.items()})
    if isinstance(tree.value, list):
        return replace(tree, value=[substitute_draw(entry, drawn, value) for entry in tree.value])
    return tree


def lines_of(random: RandomValue, time: Callable[[float], float]) -> tuple[tuple[float, float, float], ...]:
    """Return time / time at the average as segments (upper end of the value, a, b) of a + b value."""
    distribution = random.distribution
    mean = distribution.mean
    values = sorted({float(distribution.at(share)) for share in SHARES} | {mean})
    if len(values) == 1:
        values = [mean, 2 * mean]
    total = time(mean)
    if total <= 0:
        return ((math.inf, 1.0, 0.0),)
    points = _bends([(value, time(value) / total) for value in values])
    lines = []
    for (x0, y0), (x1, y1) in pairwise(points):
        slope = (y1 - y0) / (x1 - x0)
        base = y0 - slope * x0
        lines.append((x1, 0.0 if abs(base) < STRAIGHT**2 else base, slope))
    return tuple(lines)


def _bends(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the fewest points whose connecting lines contain all points."""
    kept = [points[0]]
    begin = 0
    while begin < len(points) - 1:
        end = len(points) - 1
        while end > begin + 1 and not _is_straight(points, begin, end):
            end -= 1
        kept.append(points[end])
        begin = end
    return kept


def _is_straight(points: list[tuple[float, float]], first: int, last: int) -> bool:
    (x0, y0), (x1, y1) = points[first], points[last]
    return all(
        abs(y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y) <= STRAIGHT * max(abs(y), STRAIGHT) for x, y in points[first + 1 : last]
    )
