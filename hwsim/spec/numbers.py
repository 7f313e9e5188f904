"""Numbers of a file: their readers, their sources, and what the readers of all types have in common.

A number may be written with its source: `{value: 900 GB/s, source: datasheet, ref: "..."}`. A `source:`/`ref:` of a mapping
holds for every number in it that has none of its own, as far as the same file goes: what a file takes from the library keeps
the sources of the library.

The kinds of sources: `datasheet` and `standard` are read off the document named, `recalled` is what the document named is
remembered to say (without the document in hand), `measured` and `fitted` come from measurements, `twin` from those of another
part with the same chip, `elsewhere` from those of other software or another computer, `guess` from none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import is_
from typing import Any, Final, Literal

from hwsim import ticks
from hwsim.formats import format_quantity
from hwsim.origins import GIVEN, SOURCES, Origin, Unsure
from hwsim.records import dataclass
from hwsim.spec.library import of_user
from hwsim.spec.mistakes import Mistakes, did_you_mean
from hwsim.spec.tree import Tree
from hwsim.units import RATIO, TIME, Dimension, Quantity, UnitError, is_quantity, parse_as

SOURCE_KEYS: Final = ("source", "ref")
NUMBER_KEYS: Final = ("value", "source", "ref", "spread", "ci95", "points", "note")
WIDEST: Final = 3.0  # spread: a factor of 20
FAILED: Final = object()
Doubts = Literal["", "own", "file"]
_LONGEST: Final = ticks.LONGEST / ticks.FEMTO  # seconds


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds from a field's metadata, and whether one value stands for a tuple of one."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    one_or_many: bool = False
    choices: tuple[str, ...] | None = None


NO_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Context:
    """Arguments of a reader besides the node.

    Args:
        mistakes: where mistakes go.
        sourced: sources may stand everywhere, and are kept by path.
        doubts: answers carry how unsure the number is: by what stands beside it (own), or around it, too (file).
    """

    mistakes: Mistakes
    sourced: bool
    doubts: Doubts = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Reader of one type, its name in messages, and the nodes it takes: scalar, list, mapping, any.

    optional: null is None, and is not handed to `read`.
    """

    expects: str
    takes: str
    read: Callable[[Tree, Context], Any]
    optional: bool = False


def short(text: str) -> str:
    """A key as far as a message has room for it."""
    return text if len(text) <= 40 else text[:37] + "..."


def number_of(tree: Tree, mistakes: Mistakes) -> Tree | None:
    """The number itself where it is written with its source: `{value: 900 GB/s, source: datasheet}`."""
    if not isinstance(tree.value, dict):
        return tree
    if "value" not in tree.value:
        mistakes.add(tree.place, "a number is needed, not a mapping", "with its source it is {value: ..., source: ...}")
        return None
    for key in tree.value:
        if key not in NUMBER_KEYS:
            mistakes.add(tree.key_place(key), f"unknown key '{short(key)}' beside a value", did_you_mean(key, NUMBER_KEYS))
    return tree.value["value"]


def number_shape(bounds: Bounds, dimension: Dimension | None = None, *, whole: bool = False) -> Shape:
    """Reader of a number: with a unit, whole (`1e9` is), or any.

    A quantity is not below zero, a ratio not above one and a time not above the longest, unless its bounds say so.
    """
    least, above, most = bounds.minimum, bounds.exclusive_minimum, bounds.maximum
    if dimension is not None:
        least = 0.0 if least is None and above is None else least
        most = (1.0 if dimension is RATIO else _LONGEST if dimension is TIME else None) if most is None else most

    def read(tree: Tree, context: Context) -> Any:
        number = tree if not isinstance(tree.value, dict) else number_of(tree, context.mistakes)
        if number is None:
            return FAILED
        value: Any
        if dimension is None:
            value = _plain_number(number, context, whole=whole)
        elif isinstance(number.value, bool) or not isinstance(number.value, str | int | float | Quantity):
            example = f"such as '{dimension.example}'"
            context.mistakes.add(number.place, f"{number.what()} is not {dimension.name}", example)
            return FAILED
        else:
            try:
                value = parse_as(number.value, dimension)
            except UnitError as error:
                context.mistakes.add_unit_error(number.place, error)
                return FAILED
        if value is FAILED:
            return FAILED
        unit = "1" if dimension is None else "%" if dimension is RATIO else dimension.unit
        if least is not None and value < least:
            message = "cannot be negative" if least == 0 else f"is less than the least, {_bound(least, unit)}"
        elif above is not None and value <= above:
            message = "must be more than 0" if above == 0 else f"must be more than {_bound(above, unit)}"
        elif most is not None and value > most:
            message = f"is more than the most, {_bound(most, unit)}"
        elif isinstance(tree.value, dict) or context.doubts == "file":
            return _unsure(value, tree, context, whole=whole)
        else:
            return value
        forgot = unit == "%" and 1 < value <= 100 and isinstance(number.value, int | float)
        context.mistakes.add(number.place, f"{number.what()} {message}", f"did you mean '{number.value} %'?" if forgot else None)
        return FAILED

    plain = "a whole number" if whole else "a number"
    return Shape(plain if dimension is None else f"{dimension.name}, such as '{dimension.example}'", "scalar", read)


def _unsure(value: Any, tree: Tree, context: Context, *, whole: bool) -> Any:
    """A number with its doubt, where it has one; refused where no answer would carry it."""
    spread = tree.get("spread")
    if spread is not None and _spread(spread, context) is None:
        return FAILED
    origin = origin_of(tree) if tree.is_mapping else tree.origin if context.doubts == "file" else None
    around = whole and context.doubts == "file" and origin and not origin.spread and (origin.kind != "guess" or not of_user(tree))
    if context.sourced or origin is None or not origin.doubts or around:
        return value
    if context.doubts and not whole:
        return Unsure(value, origin)
    message = f"no answer carries how unsure this number is ({origin!s})"
    context.mistakes.add(tree.place, message, "say it of a number of an op or of a time of the runtime, or leave it out here")
    return FAILED


def _spread(tree: Tree, context: Context) -> float | None:
    """One standard deviation of a number, as a part of it."""
    given = tree.value
    try:
        spread = (
            parse_as(given, RATIO) if isinstance(given, str | int | float | Quantity) and not isinstance(given, bool) else -1.0
        )
    except UnitError as error:
        context.mistakes.add_unit_error(tree.place, error)
        return None
    if not 0 <= spread <= WIDEST:
        context.mistakes.add(tree.place, f"{tree.what()} is not a spread", "one standard deviation as a part of the number: 5 %")
        return None
    return spread


def _bound(value: float, unit: str) -> str:
    if unit == TIME.unit and value == _LONGEST:
        return ticks.LONGEST_TEXT
    return f"{value:.15g}" if unit == "1" else format_quantity(value, unit)


def _plain_number(number: Tree, context: Context, *, whole: bool) -> Any:
    """A number without a unit; FAILED once its mistake is noted."""
    given, needed, hint = number.value, "a whole number" if whole else "a number", None
    message = f"{number.what()} is not {needed}"
    if isinstance(given, Quantity):
        if not given.dimension.plain:
            message = f"{number.what()} is {given.dimension.name}, but {needed} is needed here"
        given = given.value if given.dimension.plain else None
    elif isinstance(given, str):
        squeezed = given.replace("_", "").replace(",", "").strip()
        if re.fullmatch(r"[-+]?0[0-9]{1,20}", squeezed):
            hint = f"write {squeezed.lstrip('+0') or '0'} (or 0o... for octal)"
        elif re.fullmatch(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?", squeezed):
            hint = f"write {squeezed} without quotes" if squeezed == given else f"write {squeezed}"
    if isinstance(given, bool) or not isinstance(given, int | float):
        context.mistakes.add(number.place, message, hint)
        return FAILED
    if not whole:
        return float(given)  # a whole number of a file has at most 40 digits
    if isinstance(given, float) and (not math.isfinite(given) or not given.is_integer()):
        context.mistakes.add(number.place, message)
        return FAILED
    if abs(int(given)) > 2**63 - 1:
        context.mistakes.add(number.place, f"{number.what()} is too large")
        return FAILED
    return int(given)


# ---- sources ----


def origin_of(tree: Tree) -> Origin | None:
    """Origin stated by a mapping's own `source:` and `ref:`."""
    source, ref = (tree.text(key) for key in SOURCE_KEYS)
    given = tree.get("spread") if tree.get("value") is not None else None
    spread = None if given is None else _spread(given, Context(Mistakes(), False))
    if source is None:
        return Origin("stated", ref or GIVEN.ref, spread) if ref or spread is not None else None
    for kind in SOURCES:
        if source == kind:
            return Origin(kind, ref or "", spread)
    return Origin("stated", f"{source}, {ref}" if ref else source, spread)


def doubted(node: Tree, path: tuple[str, ...] = (), guess: Tree | None = None) -> Iterator[tuple[tuple[str, ...], Tree]]:
    """Path and node of each number beside which stands its spread, or that it is a guess, or that all of its mapping are.

    guess: what the mapping around it says of its source, where that is a guess.
    """
    if node.get("value") is not None and (node.get("spread") is not None or node.text("source") == "guess"):
        yield path, node
        return
    if node.get("value") is None and node.text("source") is not None:
        says = {key: entry for key, entry in node.items() if key in SOURCE_KEYS}
        guess = Tree(says, says["source"].place) if node.text("source") == "guess" else None
    for key, child in enumerate(node.elements()) if node.is_list else node.items():
        if isinstance(child.value, dict | list):
            yield from doubted(child, (*path, str(key)), guess)
            continue
        if guess is None or child.place.file != guess.place.file or (number := child.quantity) is None or number.dimension.plain:
            continue
        yield (*path, str(key)), Tree({**dict(guess.items()), "value": child}, child.place)


def refuse_doubts(tree: Tree, mistakes: Mistakes) -> None:
    """Note a mistake for each, of a file whose numbers no answer doubts; guesses of the library are among its errors."""
    for _, node in doubted(tree):
        if (origin := origin_of(node)) is not None and origin.doubts and (origin.spread or of_user(node)):
            mistakes.add(node.place, f"no answer carries how unsure this number is ({origin!s})", "leave its doubt out")


def with_origins(tree: Tree) -> Tree:
    """The tree with every value knowing its source; one that already knows keeps it."""
    return _stamp(tree, None, "")


def _stamp(tree: Tree, default: Origin | None, file: str) -> Tree:
    """`default` is what `file` says about the values in it."""
    if isinstance(tree.value, dict):
        default, file = _inside(tree, default, file)
        entries = {key: _stamp(each, default, file) for key, each in tree.value.items()}
        return tree if all(map(is_, entries.values(), tree.value.values())) else tree.having(entries)
    if isinstance(tree.value, list):
        elements = [_stamp(each, default, file) for each in tree.value]
        return tree if all(map(is_, elements, tree.value)) else tree.having(elements)
    if tree.origin is not None or default is None or tree.place.file != file:
        return tree
    return Tree(tree.value, tree.place, tree.keys, default, tree.over)


def _inside(tree: Tree, default: Origin | None, file: str) -> tuple[Origin | None, str]:
    """The source that holds inside a mapping, and the file that says so."""
    stated = tree.get("source") or tree.get("ref") or (tree.get("spread") if tree.get("value") is not None else None)
    origin = origin_of(tree)
    if (
        origin is not None
        and tree.get("source") is None
        and default is not None
        and stated is not None
        and stated.place.file == file
    ):
        origin = replace(origin, kind=default.kind)  # another reference of the same kind
    return (origin, stated.place.file) if origin is not None and stated is not None else (default, file)


def sources(tree: Tree) -> dict[str, Origin]:
    """Source of each number that has one, by path: `parts.gpu.memory.bandwidth`.

    The path of an element of a list ends in its `name:` where it has one, else in its index.
    """
    return {path: node.origin for path, node in _values(with_origins(tree)) if node.origin is not None and _is_number(node)}


def origins(tree: Tree) -> dict[str, Origin]:
    """Source of each value of a resolved mapping, by path; as given for a list, and for values without a source."""
    return {
        path: node.origin if node.origin is not None and _is_number(node) else GIVEN
        for path, node in _values(tree, into_lists=False)
    }


def _values(node: Tree, path: str = "", *, into_lists: bool = True) -> Iterator[tuple[str, Tree]]:
    """Path and node of each scalar (and list); a number with its source counts as one scalar."""
    if isinstance(node.value, dict):
        if "value" in node.value and set(node.value) <= set(NUMBER_KEYS):
            yield from _values(node.value["value"], path)
            return
        for key, child in node.value.items():
            if key not in SOURCE_KEYS and key != "hwsim":
                yield from _values(child, f"{path}.{key}" if path else key, into_lists=into_lists)
    elif isinstance(node.value, list) and into_lists:
        for index, child in enumerate(node.value):
            yield from _values(child, f"{path}.{child.text('name') or index}")
    else:
        yield path, node


def _is_number(tree: Tree) -> bool:
    if isinstance(tree.value, bool):
        return False
    if isinstance(tree.value, str) and tree.value[:1].isdigit():
        return is_quantity(tree.value)
    return isinstance(tree.value, int | float | Quantity)
