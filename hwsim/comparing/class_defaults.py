"""The ratio of two results and its interval, for `hwsim compare` and `hwsim plan`, also with class defaults on both machines.

If parts of one machine were fitted to measurements and those of the other are class defaults, a part of the ratio is due to the
data:

    answer         ratio with the files as they are
    known alike    ratio with class defaults in place of the measured numbers of both machines
    apart          answer / known alike: the effect of the fit, which is unknown for the other machine

The interval of the answer is widened by `apart`, so that a claim holds in both cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.costs.machine_price import PricedItem, unlike_prices
from hwsim.machine.classes import with_class_defaults
from hwsim.records import dataclass
from hwsim.results.interval import Interval
from hwsim.results.ratio import Ratio, ratio
from hwsim.spec import Mistakes, Tree, origin_of, resolve
from hwsim.studies.provenance import rank_of

SOURCE_KEYS: Final = ("source", "ref")
FITTED: Final = ("measured", "fitted")
COUNTS: Final = 0.02  # share of the time; errors of smaller parts are ignored
UNLIKE: Final = "parts of one machine were measured, those of the other are class defaults"


@dataclass(frozen=True, slots=True)
class ResultUncertainty:
    """The uncertainty of one of two results.

    Args:
        time: interval of its time, or its half width as a logarithm if the errors shared with the other result are unknown.
        besides: half width of other errors, such as prices, as a logarithm.
        prices: prices on which it is based, highest first; empty if it is no cost.
    """

    time: Interval | float
    besides: float = 0.0
    prices: Sequence[PricedItem] = ()


@dataclass(frozen=True, slots=True)
class JudgedRatio:
    """The ratio of two results.

    Args:
        over: ratio with its interval.
        why: reason why no claim is possible, whatever the ratio; "" if there is none.
        alike: ratio with class defaults on both machines; None if not needed or unknown.
    """

    over: Ratio
    why: str = ""
    alike: float | None = None


def judged(
    value: float, first: ResultUncertainty, second: ResultUncertainty, alike: Callable[[], float | None] | None
) -> JudgedRatio:
    """Return the ratio of two results with its interval, and whether a claim is possible.

    Shared errors cancel. The interval includes the ratio with class defaults on both machines.

    Args:
        value: ratio.
        first: uncertainty of the first result.
        second: uncertainty of the second result.
        alike: function that returns the ratio with class defaults, or None if unknown; None for a single machine.
    """
    halves = [known.time.half if isinstance(known.time, Interval) else known.time for known in (first, second)]
    time = Ratio(1.0, math.hypot(*halves))
    if isinstance(first.time, Interval) and isinstance(second.time, Interval):
        time = ratio(first.time, second.time)
    offers = [[(price.name, price.provider, price.date) for price in entry.prices] for entry in (first, second)]
    is_shared = offers[0] == offers[1] and bool(offers[0] or time.half == 0 < halves[0])  # same run and prices
    half = time.half if is_shared else math.hypot(time.half, first.besides, second.besides)
    over = Ratio(value, half, time.outside)
    if why := unlike_prices(second.prices, first.prices):
        return JudgedRatio(over, why)
    if alike is None or not is_unlike(first.time, second.time):
        return JudgedRatio(over)
    told = alike()
    if told is None:
        return JudgedRatio(over, UNLIKE)
    return JudgedRatio(replace(over, half=half + abs(math.log(value / told))), alike=told)  # a claim must hold in both cases


def is_unlike(first: Interval | float | None, second: Interval | float | None) -> bool:
    """Return whether one result has errors of measured parts where the other has errors of class defaults."""
    if not isinstance(first, Interval) or not isinstance(second, Interval):
        return False
    ranks: list[dict[str, int]] = []
    for sure in (first, second):
        least: dict[str, int] = {}
        for part in sure.parts:
            if part.time_share >= COUNTS and not part.is_number:
                least[part.regime] = max(least.get(part.regime, 0), rank_of(part.case))
        ranks.append(least)
    ours, theirs = ranks
    return any(ours[regime] != theirs[regime] for regime in ours.keys() & theirs.keys())


def as_its_class(machine: Tree) -> Tree:
    """Return a machine with its measured numbers replaced by class defaults."""
    mistakes = Mistakes()
    tree = resolve(machine, mistakes, kind="machine").without("use", "let")
    mistakes.raise_if_any()
    return _plain(tree)


def _plain(tree: Tree) -> Tree:
    """Return a part, link or machine with class defaults."""
    kind = tree.text("kind")
    if kind is not None and kind != "machine" and tree.get("parts") is None:
        return _of_class(tree, kind)
    parts, links = tree.get("parts"), tree.get("links")
    if parts is not None:
        tree = tree.put("parts", replace(parts, value={name: _plain(part) for name, part in parts.items()}))
    if links is not None and links.is_list:
        wires = [_of_class(link, link.text("kind") or "") for link in links.elements()]
        tree = tree.put("links", replace(links, value=wires))
    return tree


def _of_class(tree: Tree, kind: str) -> Tree:
    tree = tree.without("use")  # the tree has all keys of that part
    left = _unmeasured(tree, is_fitted=False)
    return _restored(tree, left, with_class_defaults(left, kind))


def _unmeasured(tree: Tree, *, is_fitted: bool) -> Tree:
    """Return the mapping without measured numbers, guesses among them, and mappings that become empty."""
    origin = origin_of(tree)
    is_fitted = is_fitted if origin is None else origin.kind in FITTED
    entries: dict[str, Tree] = {}
    for key, child in tree.items():
        if child.is_mapping and child.get("value") is None:
            inside = _unmeasured(child, is_fitted=is_fitted)
            if inside.value or not child.value:
                entries[key] = inside
        elif not _is_measured(child, is_fitted=is_fitted):
            entries[key] = child
    return replace(tree, value={} if all(key in SOURCE_KEYS for key in entries) else entries)


def _is_measured(node: Tree, *, is_fitted: bool) -> bool:
    number = node.get("value") or node
    origin = origin_of(node) or number.origin
    return origin is not None and (origin.kind in FITTED or (is_fitted and origin.kind in ("guess", "twin")))


def _restored(tree: Tree, left: Tree, filled: Tree) -> Tree:
    """Return the part with class defaults, and with its own values where the class has none.

    If the class has kernels of a kind, they replace all kernels of this kind, so that both parts have the same kernels.
    """
    entries, is_filled = dict(filled.items()), len(filled.items()) > len(left.items())
    for key, child in tree.items():
        is_section = child.is_mapping and child.get("value") is None
        inside = left.get(key)
        if key not in entries:
            if not (is_section and is_filled):
                entries[key] = child
        elif is_section and inside is not None and inside.is_mapping:
            entries[key] = _restored(child, inside, entries[key])
    return replace(filled, value=entries)
