"""Numbers of a machine's file that say their spread, and the machine with each of them moved: how far ops follow is then seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.origins import Doubt, Origin, doubt_of
from hwsim.spec import Mistake, Mistakes, Place, Tree, origin_of
from hwsim.spec.numbers import doubted
from hwsim.spec.use import of_user

if TYPE_CHECKING:
    from hwsim.machine.model import Machine

_UNFELT: Final = frozenset({"collectives", "power", "supply"})  # keys whose numbers set no time that ops are lowered to


class Moved(NamedTuple):
    """A number that a file says is unsure: its doubt, and the machine with the number a step less and nothing said of it."""

    doubt: Doubt
    origin: Origin
    machine: Machine
    place: Place


def moved(
    tree: Tree, resolved: Tree, mistakes: Mistakes, build: Callable[[Tree, Mistakes, Tree | None], Machine | None]
) -> Iterator[Moved]:
    """Each number of the file, and of the user's files that it uses, with a spread or of a guess.

    A spread is refused where no machine can be made with the number moved.

    resolved: the tree with the files that it uses.  build: makes the machine of a file's tree, or of a resolved one.
    """
    used = [(resolved, path, node) for path, node in doubted(resolved) if node.place.file != tree.place.file]
    for whole, path, node in (*[(tree, *each) for each in doubted(tree)], *used):
        origin, noted = origin_of(node), Mistakes()
        if origin is None or not origin.doubts or not (origin.spread or of_user(node)):
            continue
        less = _put(whole, path, _less(node, math.exp(-origin.step)))
        other = build(less, noted, less if whole is resolved else None) if _UNFELT.isdisjoint(path) else None
        if other is not None and not len(noted):
            name = ".".join(each for each in path if not each.isdigit()).removeprefix("parts.")
            yield Moved(doubt_of(name, origin)._replace(case="stated"), origin, other, node.place)
        elif origin.spread:
            message = f"no answer carries how unsure this number is ({origin!s})"
            mistakes.add(node.place, message, "say it of a rate, a time or a share of a part or a link, or leave it out here")


def unanswered(numbers: Iterable[Moved]) -> Iterator[Mistake]:
    """Mistakes of a file of which a model is asked: its answers follow no single number."""
    for number in numbers:
        if number.origin.spread:
            message = "no answer of a model carries how unsure a number of the machine is"
            yield Mistake(number.place, message, "leave out its `spread`")


def _less(node: Tree, factor: float) -> Tree:
    """The number alone, times a factor; an expression is worked out first."""
    value, quantity = node.get("value") or node, node.quantity
    if isinstance(value.value, str) and "$" in value.value:
        return Tree(f"({value.value}) * {factor!r}", value.place, over=node.over)
    if quantity is None:
        return node  # which its reader refuses
    number = quantity.value * factor if quantity.dimension.plain else quantity * factor
    return Tree(number, value.place, over=node.over)


def _put(node: Tree, path: Sequence[str], value: Tree) -> Tree:
    if not path:
        return value
    first, *rest = path
    if isinstance(node.value, list):
        return node.having([_put(each, rest, value) if at == int(first) else each for at, each in enumerate(node.value)])
    return node.put(first, _put(dict(node.items())[first], rest, value))
