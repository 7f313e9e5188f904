"""Numbers of a machine's file that are unsure, and the machine with each of them moved: how far answers follow is then seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.origins import Doubt, Origin, doubt_of
from hwsim.spec import Mistakes, Place, Tree, origin_of
from hwsim.spec.library import of_user
from hwsim.spec.numbers import doubted

if TYPE_CHECKING:
    from hwsim.machine.model import Machine

_WATTS: Final = frozenset({"power", "supply"})
_UNFELT: Final = _WATTS | {"price", "endurance"}  # keys whose numbers set no time
MOST: Final = 32  # numbers
END: Final = 1.6449  # standard deviations to the ends of a range that holds nine of ten

Build = Callable[[Tree, Mistakes, Tree | None], "Machine | None"]
Found = tuple[tuple[str, ...], Tree, Origin]


class Moved(NamedTuple):
    """Numbers with one error, and the machine with them at both ends of their range and nothing said of them.

    ends: at one where the other cannot be (95 % and more).
    """

    doubt: Doubt
    origin: Origin
    ends: tuple[Machine, ...]
    place: Place


def moved(tree: Tree, resolved: Tree, mistakes: Mistakes, build: Build) -> Iterator[Moved]:
    """Each number of the file, and of the user's files that it uses, with a spread or of a guess.

    It is refused where no machine can be made with the number moved; a guess of watts is an error that energies have anyway.

    resolved: the tree with the files that it uses.  build: makes the machine of a file's tree, or of a resolved one.
    """
    used = [(resolved, path, node) for path, node in doubted(resolved) if node.place.file != tree.place.file]
    alike: dict[tuple[Doubt, bool], list[Found]] = {}  # numbers with one error are wrong together
    for whole, path, node in (*[(tree, *each) for each in doubted(tree)], *used):
        origin = origin_of(node)
        if origin is not None and origin.doubts and (origin.spread or of_user(node)):
            name = ".".join(each for each in path if not each.isdigit()).removeprefix("parts.")
            alike.setdefault((doubt_of(name, origin)._replace(case="stated"), whole is resolved), []).append((path, node, origin))
    if len(alike) > MOST:
        message = f"{len(alike)} numbers are unsure, of which an answer follows {MOST}: each takes two more"
        mistakes.add(tree.place, message, "leave out `spread` and `source: guess` where they matter least")
    for (doubt, is_resolved), found in alike.items() if len(alike) <= MOST else ():
        (path, node, origin), *_ = found
        factors = [math.exp(end * origin.step) for end in (-END, END) if _UNFELT.isdisjoint(path)]
        ends = [_built(resolved if is_resolved else tree, found, build, is_resolved, factor) for factor in factors]
        if made := tuple(each for each in ends if each is not None):
            yield Moved(doubt, origin, made, node.place)
        elif origin.spread or _UNFELT.isdisjoint(path):
            message = f"no answer carries how unsure this number is ({origin!s})"
            mistakes.add(node.place, message, "say it of a rate, a time or a share of a part or a link, or leave it out here")


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
    """The number alone, times a factor; an expression is worked out first, and a count moves by one at least."""
    value, quantity = node.get("value") or node, node.quantity
    if isinstance(value.value, str) and "$" in value.value:
        return Tree(f"({value.value}) * {factor!r}", value.place, over=node.over)
    if quantity is None:
        return node  # which its reader refuses
    number = quantity.value * factor if quantity.dimension.plain else quantity * factor
    if is_count and isinstance(value.value, int):
        by = round(value.value * factor) - value.value
        number = max(0, value.value + (by or int(math.copysign(1, factor - 1))))
    return Tree(number, value.place, over=node.over)


def _put(node: Tree, path: Sequence[str], value: Tree) -> Tree:
    if not path:
        return value
    first, *rest = path
    if isinstance(node.value, list):
        return node.having([_put(each, rest, value) if at == int(first) else each for at, each in enumerate(node.value)])
    return node.put(first, _put(dict(node.items())[first], rest, value))
