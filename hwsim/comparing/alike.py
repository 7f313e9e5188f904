"""Which of two results is better, for `hwsim compare` and `hwsim plan`, and the ratio with class defaults on both machines.

Known alike: measured numbers of both machines are replaced by class defaults.

    answer         of the files as they are: a part was fitted, its counterpart in the other machine is filled in from its class
    known alike    with both filled in from their classes: what the files state of both
    apart          answer over known alike: what the fit alone makes; it says nothing about the other machine

A claim must hold both ways, so the range of the answer grows by `apart`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from hwsim.costs.pricing import PricedItem, unlike_prices
from hwsim.machine.classes import completed
from hwsim.records import dataclass
from hwsim.results.interval import Interval
from hwsim.results.ratio import Ratio, ratio
from hwsim.spec import Mistakes, Tree, origin_of, resolve
from hwsim.studies.provenance import rank_of

SOURCE_KEYS: Final = ("source", "ref")
FITTED: Final = ("measured", "fitted")
COUNTS: Final = 0.02  # part of the time from which on an error counts
UNLIKE: Final = "parts of one machine were measured, those of the other are class defaults"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one of two answers.

    Args:
        time: how sure its time is; a half width, as a logarithm, where nothing tells what of it another answer shares.
        besides: half width of all else, such as prices.
        prices: that it comes from, the dearest first; none where it is no money.
    """

    time: Interval | float
    besides: float = 0.0
    prices: Sequence[PricedItem] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """The ratio of two answers.

    Args:
        why: why no ratio of the two is sure, however large it is; "" if nothing forbids a claim.
        alike: the ratio if both machines were known alike; None where they are, or where nothing tells it.
    """

    over: Ratio
    why: str = ""
    alike: float | None = None


def judged(value: float, first: Known, second: Known, alike: Callable[[], float | None] | None) -> Judged:
    """The ratio `value` of the first answer to the second, and whether one may be called better.

    Errors that both have cancel. The range holds the ratio of the two known alike as well.

    Args:
        alike: finds that ratio, None where it cannot; None of one machine, which is known alike.
    """
    halves = [each.time.half if isinstance(each.time, Interval) else each.time for each in (first, second)]
    time = Ratio(1.0, math.hypot(*halves))
    if isinstance(first.time, Interval) and isinstance(second.time, Interval):
        time = ratio(first.time, second.time)
    offers = [[(price.name, price.provider, price.date) for price in entry.prices] for entry in (first, second)]
    is_shared = offers[0] == offers[1] and bool(offers[0] or time.half == 0 < halves[0])  # of one run at equal prices all is
    half = time.half if is_shared else math.hypot(time.half, first.besides, second.besides)
    over = Ratio(value, half, time.outside)
    if why := unlike_prices(second.prices, first.prices):
        return Judged(over, why)
    if alike is None or not is_unlike(first.time, second.time):
        return Judged(over)
    told = alike()
    if told is None:
        return Judged(over, UNLIKE)
    return Judged(replace(over, half=half + abs(math.log(value / told))), alike=told)  # a claim must hold both ways


def is_unlike(first: Interval | float | None, second: Interval | float | None) -> bool:
    """Whether one answer has errors of measured parts where the other has errors of a class."""
    if not isinstance(first, Interval) or not isinstance(second, Interval):
        return False
    ranks: list[dict[str, int]] = []
    for sure in (first, second):
        least: dict[str, int] = {}
        for part in sure.parts:
            if part.of_time >= COUNTS and not part.is_number:
                least[part.regime] = max(least.get(part.regime, 0), rank_of(part.case))
        ranks.append(least)
    ours, theirs = ranks
    return any(ours[regime] != theirs[regime] for regime in ours.keys() & theirs.keys())


def as_its_class(machine: Tree) -> Tree:
    """A machine, of whose parts nothing is left that was measured and that their classes have as well."""
    mistakes = Mistakes()
    tree = resolve(machine, mistakes, kind="machine").without("use", "let")
    mistakes.raise_if_any()
    return _plain(tree)


def _plain(tree: Tree) -> Tree:
    """A part, a link or a machine in a machine."""
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
    tree = tree.without("use")  # all of that part stands in the tree
    left = _unmeasured(tree, is_fitted=False)
    return _restored(tree, left, completed(left, kind))


def _unmeasured(tree: Tree, *, is_fitted: bool) -> Tree:
    """The mapping without what was measured, and without guesses that stand among it; mappings of nothing else go."""
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
    """The part with its class filled in, and as it was where its class knows nothing.

    Kernels stay with the class where it has any of their kind: another kernel of one part alone would be compared with them.
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
