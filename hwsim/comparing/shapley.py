"""Shapley values: the contribution of each of several changes to a difference, independent of their order.

    share of a change = mean, over all orders of the changes, of the difference that this change makes in its place

Up to eight changes the mean is exact, with one evaluation per set of changes. For more changes it is the mean over sampled
orders, each with its reverse. The shares add up to the total difference exactly, in whole numbers of a unit (femtoseconds,
cents).

**Source**: L. S. Shapley, "A value for n-person games", Contributions to the Theory of Games II, 1953; antithetic orders:
Mitchell, Cooper, Frank and Holmes, "Sampling permutations for Shapley value estimation", JMLR 23, 2022, quoted from memory.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import combinations
from typing import Final

from hwsim.records import dataclass

EXACT: Final = 8  # number of changes up to which all sets are evaluated
ORDERS: Final = 64  # sampled orders for more changes
Chosen = frozenset[str]


@dataclass(frozen=True, slots=True)
class Shares:
    """The contribution of each change to a difference.

    Args:
        exact: shares as fractions, which add up to the difference.
        whole: shares as whole numbers, which also add up to the difference.
        evaluations: number of evaluated sets of changes.
        orders: number of sampled orders; 0 if the mean is over all orders.
        unsure: standard error of each share; empty if the mean is over all orders.
    """

    exact: Mapping[str, Fraction]
    whole: Mapping[str, int]
    evaluations: int
    orders: int = 0
    unsure: Mapping[str, float] = field(default_factory=dict)


def shares(
    names: Sequence[str], value: Callable[[Chosen], int], *, exact: int = EXACT, orders: int = ORDERS, seed: int = 0
) -> Shares:
    """Return the shares of the changes in value(all changes) - value(no changes).

    Args:
        names: names of the changes; their order has no effect.
        value: function that returns the result, in whole units, with a set of the changes made; called once per set.
        exact: number of changes up to which all sets are evaluated.
        orders: number of orders for more changes, half of them sampled, the others their reverses.
        seed: seed of the sampling.

    >>> found = shares(["gpu", "link"], lambda chosen: 100 - 60 * ("gpu" in chosen) - 10 * (len(chosen) == 2))
    >>> dict(found.whole), found.evaluations
    ({'gpu': -65, 'link': -5}, 4)
    """
    listed = sorted(names)
    values: dict[Chosen, int] = {}

    def valued(chosen: Chosen) -> int:
        if chosen not in values:
            values[chosen] = value(chosen)
        return values[chosen]

    unsure: dict[str, float] = {}
    if len(listed) <= exact:
        drawn, exactly = 0, _over_all(listed, valued)
    else:
        lists = list(drawn_orders(listed, orders, seed))
        drawn = len(lists)
        exactly, unsure = _over(lists, listed, valued)
    total = valued(frozenset(listed)) - valued(frozenset())
    return Shares(exactly, rounded(exactly, total), len(values), drawn, unsure)


def _over_all(names: Sequence[str], value: Callable[[Chosen], int]) -> dict[str, Fraction]:
    count = len(names)
    sums = dict.fromkeys(names, Fraction(0))
    for size in range(count):
        weight = Fraction(math.factorial(size) * math.factorial(count - size - 1), math.factorial(count))
        for group in map(frozenset, combinations(names, size)):
            for name in names:
                if name not in group:
                    sums[name] += weight * (value(group | {name}) - value(group))
    return sums


def drawn_orders(names: Sequence[str], orders: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield sampled orders and their reverses; at least one pair."""
    draw = random.Random(seed)  # reproducible
    for _ in range(max(1, orders // 2)):
        order = list(names)
        draw.shuffle(order)
        yield tuple(order)
        yield tuple(order[::-1])


def _over(
    lists: Sequence[Sequence[str]], names: Sequence[str], value: Callable[[Chosen], int]
) -> tuple[dict[str, Fraction], dict[str, float]]:
    """Return means over orders, and their standard errors from the pairs of an order and its reverse."""
    steps: dict[str, list[int]] = {name: [] for name in names}
    for order in lists:
        chosen: Chosen = frozenset()
        for name in order:
            steps[name].append(value(chosen | {name}) - value(chosen))
            chosen |= {name}
    means = {name: Fraction(sum(taken), len(lists)) for name, taken in steps.items()}  # integers
    unsure = {}
    for name, taken in steps.items():
        pairs = [(first + second) / 2 for first, second in zip(taken[::2], taken[1::2], strict=True)]
        middle = math.fsum(pairs) / len(pairs)
        squares = math.fsum((pair - middle) ** 2 for pair in pairs)
        unsure[name] = math.sqrt(squares / (len(pairs) - 1) / len(pairs)) if len(pairs) > 1 else math.inf
    return means, unsure


def rounded(exactly: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Round fractions to whole numbers that add up to the total; opposite fractions get opposite whole numbers.

    >>> rounded({"a": Fraction(1, 3), "b": Fraction(1, 3), "c": Fraction(1, 3)}, 1)
    {'a': 1, 'b': 0, 'c': 0}
    """
    integers = {name: math.trunc(share) for name, share in exactly.items()}
    left = total - sum(integers.values())  # integers
    sign = 1 if left > 0 else -1
    for name in sorted(exactly, key=lambda name: (-sign * (exactly[name] - integers[name]), name))[: abs(left)]:
        integers[name] += sign
    return integers
