"""Numbers of a machine's file that say their spread, and the machine with each of them moved: how far ops follow is then seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from hwsim.demand import Doubt, doubt_of
from hwsim.spec import Mistakes, Place, Tree, origin_of
from hwsim.units import Quantity, UnitError, parse

if TYPE_CHECKING:
    from hwsim.machine.model import Machine

_UNTIMED = ("collectives", "price", "supply", "power")


class Moved(NamedTuple):
    """A number that a file says is unsure: its doubt, one standard deviation, and the machine with the number less by that."""

    doubt: Doubt
    step: float
    machine: Machine
    place: Place


def moved(tree: Tree, mistakes: Mistakes, build: Callable[[Tree, Mistakes], Machine | None]) -> Iterator[Moved]:
    """Each number of the file itself with a spread; refused where no machine can be made with it moved."""
    for path, node in _unsure(tree, ()):
        origin, noted = origin_of(node), Mistakes()
        if origin is None or not origin.spread:
            continue
        other = None if path[0] == "collectives" else build(_put(tree, path, _less(node, math.exp(-origin.spread))), noted)
        if other is None or len(noted):
            message = f"no answer carries how unsure this number is ({origin!s})"
            mistakes.add(node.place, message, "say it of a rate, a time or a share of a part or a link, or leave it out here")
            continue
        name = ".".join(step for step in path if not step.isdigit())
        doubt = doubt_of(name.removeprefix("parts."), origin)._replace(case="stated")
        yield Moved(doubt, origin.spread, other, node.place)


def _unsure(node: Tree, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Tree]]:
    if node.get("value") is not None and node.get("spread") is not None:
        yield path, node
        return
    entries = node.items() if node.is_mapping else ((str(at), each) for at, each in enumerate(node.elements()))
    for key, child in entries:
        if (child.is_mapping or child.is_list) and key not in _UNTIMED[1:]:
            yield from _unsure(child, (*path, key))


def _less(node: Tree, factor: float) -> Tree:
    """The number times a factor; an expression is worked out first."""
    value = node.get("value") or node
    if isinstance(value.value, str) and "$" in value.value:
        return node.put("value", value.having(f"({value.value}) * {factor!r}"))
    try:
        quantity = value.value if isinstance(value.value, Quantity) else parse(str(value.value))
    except UnitError:
        return node  # which its reader refuses
    number: float | Quantity = quantity * factor
    return node.put("value", value.having(quantity.value * factor if quantity.dimension.plain else number))


def _put(node: Tree, path: tuple[str, ...], value: Tree) -> Tree:
    if not path:
        return value
    first, *rest = path
    if isinstance(node.value, list):
        return node.having([_put(each, tuple(rest), value) if at == int(first) else each for at, each in enumerate(node.value)])
    inner = node.get(first)
    return node if inner is None else node.put(first, _put(inner, tuple(rest), value))
