"""Draws in statements: `bytes: {lognormal: {median: 3 MB, sigma: 0.6}}, as: photo`, and later `$photo`.

A statement is lowered at a few values of what is drawn, from the distribution's rarest small to its rarest large ones; between
them its time is straight. Where the times lie on one line, two values are left, and nothing is approximated.
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

SHARES: Final = (1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.997, 0.999, 0.9999)  # of the draws, below a knot
STRAIGHT: Final = 1e-6  # of a time: two lines are one
_DRAWS: Final = (TimeDraw, SizeDraw, CountDraw)


@dataclass(frozen=True, slots=True)
class Random:
    """The part of a statement that differs from request to request.

    Args:
        distribution: in SI units; dimension: of its values.
        slot: place of the value that an earlier statement kept; -1: the statement draws it.
    """

    distribution: Distribution
    dimension: Dimension
    slot: int = -1

    def quantity(self, value: float) -> Quantity | float:
        """A value as it stands in a file."""
        return value if self.dimension.plain else Quantity(value, self.dimension)


def is_draw(tree: Tree) -> bool:
    """Whether a node is a draw where a value stands."""
    return isinstance(tree.value, dict) and len(tree.value) == 1 and next(iter(tree.value)) in WAYS


def draws_in(tree: Tree) -> Iterator[Tree]:
    """The draws of a statement."""
    if is_draw(tree):
        yield tree
        return
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    for entry in inside:
        yield from draws_in(entry)


def kept_in(tree: Tree) -> Iterator[str]:
    """Names of kept values that a statement mentions, or anything else with a `$`."""
    if isinstance(tree.value, str):
        yield from names_in(tree.value)
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    for entry in inside:
        yield from kept_in(entry)


def kept_of(tree: Tree) -> frozenset[str]:
    """Names that `as:` gives anywhere in the services of a file, or of its jobs: only a request knows their values."""
    jobs = tree.get("jobs")
    inside = [] if jobs is None else [job.get("services") for _, job in jobs.items()]
    result: set[str] = set()
    stack = [each for each in (tree.get("services"), *inside) if each is not None]
    while stack:
        node = stack.pop()
        if (name := node.text("as")) is not None:
            result.add(name)
        stack += node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    return frozenset(result)


def read_draw(tree: Tree, mistakes: Mistakes) -> Random | None:
    """The distribution that a node says; None once its mistakes are noted."""
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
    return Random(result.distribution, result.dimension) if len(mistakes) == before else None


def filled(tree: Tree, drawn: Tree | None, value: Any) -> Tree:
    """The statement with a value in the place of its draw."""
    if tree is drawn:
        return Tree(value, tree.place)
    if isinstance(tree.value, dict):
        return replace(tree, value={key: filled(each, drawn, value) for key, each in tree.value.items()})
    if isinstance(tree.value, list):
        return replace(tree, value=[filled(each, drawn, value) for each in tree.value])
    return tree


def lines_of(random: Random, time: Callable[[float], float]) -> tuple[tuple[float, float, float], ...]:
    """The time as a part of the time at the mean, in straight lines: (value up to which it counts, a, b) of a + b value."""
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
    """The fewest of them from which straight lines give the others."""
    kept = [points[0]]
    at = 0
    while at < len(points) - 1:
        reach = len(points) - 1
        while reach > at + 1 and not _is_straight(points, at, reach):
            reach -= 1
        kept.append(points[reach])
        at = reach
    return kept


def _is_straight(points: list[tuple[float, float]], first: int, last: int) -> bool:
    (x0, y0), (x1, y1) = points[first], points[last]
    return all(
        abs(y0 + (y1 - y0) * (x - x0) / (x1 - x0) - y) <= STRAIGHT * max(abs(y), STRAIGHT) for x, y in points[first + 1 : last]
    )
