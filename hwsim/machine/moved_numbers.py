"""Sensitivity to uncertain numbers of a machine file: the machine with each number moved to the ends of its 90 % range."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.origins import Origin, UncertaintySource, number_uncertainty
from hwsim.spec import Mistakes, Place, Tree, origin_of
from hwsim.spec.library import of_user
from hwsim.spec.numbers import uncertain_numbers

if TYPE_CHECKING:
    from hwsim.machine.model import Machine

_WATTS: Final = frozenset({"power", "supply"})
_UNFELT: Final = _WATTS | {"price", "endurance"}  # keys whose numbers do not affect times
MAX_UNCERTAIN_NUMBERS: Final = 32  # maximum number of uncertain numbers
STD_DEVIATIONS_AT_90: Final = 1.6449  # standard deviations to the ends of a 90 % range

Build = Callable[[Tree, Mistakes, Tree | None], "Machine | None"]
Found = tuple[tuple[str, ...], Tree, Origin]


class MovedNumber(NamedTuple):
    """A group of numbers with one error, and the machine with them at both ends of their range.

    Args:
        doubt: source of uncertainty.
        origin: source of the first number.
        ends: machines with the numbers at the lower and upper end, without their sources; only one if the other end is impossible
            (a share above 100 %).
        place: place of the first number.
    """

    doubt: UncertaintySource
    origin: Origin
    ends: tuple[Machine, ...]
    place: Place


def moved(tree: Tree, resolved: Tree, mistakes: Mistakes, build: Build) -> Iterator[MovedNumber]:
    """Yield each uncertain number (with a spread, or guessed) of the file and of the user's files that it uses.

    Add a mistake if no machine can be built with the number moved. Guessed powers are skipped: energies have that error anyway.

    Args:
        tree: tree of the file.
        resolved: tree with the files that it uses.
        build: function that builds the machine of a tree or of a resolved tree.
    """
    used = [(resolved, path, node) for path, node in uncertain_numbers(resolved) if node.place.file != tree.place.file]
    alike: dict[tuple[UncertaintySource, bool], list[Found]] = {}  # numbers with one error move together
    for whole, path, node in (*[(tree, *number) for number in uncertain_numbers(tree)], *used):
        origin = origin_of(node)
        if origin is not None and origin.doubts and (origin.spread or of_user(node)):
            name = ".".join(key for key in path if not key.isdigit()).removeprefix("parts.")
            alike.setdefault((number_uncertainty(name, origin)._replace(case="stated"), whole is resolved), []).append(
                (path, node, origin)
            )
    if len(alike) > MAX_UNCERTAIN_NUMBERS:
        message = (
            f"{len(alike)} numbers are uncertain: expected at most {MAX_UNCERTAIN_NUMBERS}, because each requires two more runs"
        )
        mistakes.add(tree.place, message, "omit `spread` and `source: guess` of the least important numbers")
    for (doubt, is_resolved), found in alike.items() if len(alike) <= MAX_UNCERTAIN_NUMBERS else ():
        (path, node, origin), *_ = found
        factors = [
            math.exp(end * origin.step) for end in (-STD_DEVIATIONS_AT_90, STD_DEVIATIONS_AT_90) if _UNFELT.isdisjoint(path)
        ]
        ends = [_built(resolved if is_resolved else tree, found, build, is_resolved, factor) for factor in factors]
        if made := tuple(machine for machine in ends if machine is not None):
            yield MovedNumber(doubt, origin, made, node.place)
        elif origin.spread or _UNFELT.isdisjoint(path):
            message = f"the uncertainty of this number ({origin!s}) has no effect on times"
            mistakes.add(node.place, message, "state it for a rate, a time or a share of a part or link, or omit it")


def _built(tree: Tree, found: Sequence[Found], build: Build, is_resolved: bool, factor: float) -> Machine | None:
    for is_count in (False, True):
        moved, mistakes = tree, Mistakes()
        for path, node, _ in found:
            moved = _put(moved, path, _times(node, factor, is_count=is_count))
        machine = build(moved, mistakes, moved if is_resolved else None)
        if machine is not None and not len(mistakes):
            return machine
    return None


def _times(node: Tree, factor: float, *, is_count: bool) -> Tree:
    """Return the number without its source, times a factor; expressions are evaluated first, counts change by at least 1."""
    value, quantity = node.get("value") or node, node.quantity
    if isinstance(value.value, str) and "$" in value.value:
        return Tree(f"({value.value}) * {factor!r}", value.place, over=node.over)
    if quantity is None:
        return node  # an error when it is read
    number = quantity.value * factor if quantity.dimension.plain else quantity * factor
    if is_count and isinstance(value.value, int):
        change = round(value.value * factor) - value.value
        number = max(0, value.value + (change or int(math.copysign(1, factor - 1))))
    return Tree(number, value.place, over=node.over)


def _put(node: Tree, path: Sequence[str], value: Tree) -> Tree:
    if not path:
        return value
    first, *rest = path
    if isinstance(node.value, list):
        return node.having([_put(item, rest, value) if index == int(first) else item for index, item in enumerate(node.value)])
    return node.put(first, _put(dict(node.items())[first], rest, value))
