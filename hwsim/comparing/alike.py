"""Machines as if both were known alike: what was measured of a part is left out, and filled in from its class.

    answer         of the files as they are: a part was fitted, its counterpart in the other machine is filled in from its class
    known alike    with both filled in from their classes: what the files state of both
    apart          answer over known alike: what the fit alone makes; it says nothing about the other machine

A claim must hold both ways, so the range of the answer grows by `apart`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from hwsim.machine.classes import completed
from hwsim.results.interval import Interval
from hwsim.results.ratio import Ratio
from hwsim.spec import Mistakes, Tree, origin_of, resolve
from hwsim.studies.provenance import rank_of

SOURCE_KEYS: Final = ("source", "ref")
FITTED: Final = ("measured", "fitted")
COUNTS: Final = 0.02  # part of the time from which on an error counts


def is_unlike(first: Interval | None, second: Interval | None) -> bool:
    """Whether one answer has errors of measured parts where the other has errors of a class."""
    if first is None or second is None:
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


def widened(over: Ratio, alike: float) -> Ratio:
    """The ratio with the difference that provenance alone makes as a further error.

    >>> wide = widened(Ratio(1.2, 0.1), 1.1)
    >>> round(wide.low, 3), round(1.1 * math.exp(-0.1), 3), wide.is_told
    (0.995, 0.995, False)
    """
    return replace(over, half=over.half + abs(math.log(over.value / alike)))


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
