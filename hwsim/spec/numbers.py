"""Decoders of numbers and their sources, and common parts of the decoders of all types.

A number may include its source: `{value: 900 GB/s, source: datasheet, ref: "..."}`. A `source:`/`ref:` of a mapping applies to
every number in it without its own source, if the number is in the same file: values from the library keep the sources of the
library.

Kinds of sources:

    datasheet, standard   copied from the named document
    recalled              content of the named document from memory
    measured, fitted      from measurements
    twin                  from measurements of another part with the same chip
    elsewhere             from measurements of other software or another computer
    guess                 no source
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
from hwsim.origins import GIVEN, SOURCES, Origin, UncertainNumber
from hwsim.records import dataclass
from hwsim.spec.library import of_user
from hwsim.spec.mistakes import Mistakes, did_you_mean
from hwsim.spec.tree import Tree
from hwsim.units import RATIO, TIME, Dimension, Quantity, UnitError, parse_as, quantity_of

SOURCE_KEYS: Final = ("source", "ref")
NUMBER_KEYS: Final = ("value", "source", "ref", "spread", "ci95", "points", "note")
WIDEST: Final = 3.0  # maximum spread: a factor of 20
FAILED: Final = object()
Doubts = Literal["", "own", "file"]
_LONGEST: Final = ticks.LONGEST / ticks.FEMTO  # longest accepted time, s


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds and choices of a field, and whether a single value is accepted for a tuple of one."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    one_or_many: bool = False
    choices: tuple[str, ...] | None = None


NO_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Context:
    """A context of a decoder.

    Args:
        mistakes: collector of mistakes.
        sourced: whether every mapping may have a source.
        doubts: whether results include the uncertainty of a number: "": no; own: from its own keys; file: also from the source of
            the surrounding mapping.
    """

    mistakes: Mistakes
    sourced: bool
    doubts: Doubts = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of one type.

    Args:
        expects: name of the type in messages.
        takes: accepted nodes: scalar, list, mapping or any.
        read: decoding function.
        optional: whether null is accepted as None, without a call of `read`.
    """

    expects: str
    takes: str
    read: Callable[[Tree, Context], Any]
    optional: bool = False


def short(text: str) -> str:
    """Return a key, shortened to 40 characters for messages."""
    return text if len(text) <= 40 else text[:37] + "..."


def number_of(tree: Tree, mistakes: Mistakes) -> Tree | None:
    """Return the value of a number with a source: `{value: 900 GB/s, source: datasheet}`; None if a mistake was added."""
    if not isinstance(tree.value, dict):
        return tree
    if "value" not in tree.value:
        mistakes.add(tree.place, "expected a number, got a mapping", "a number with a source is {value: ..., source: ...}")
        return None
    for key in tree.value:
        if key not in NUMBER_KEYS:
            mistakes.add(tree.key_place(key), f"unknown key '{short(key)}' next to `value`", did_you_mean(key, NUMBER_KEYS))
    return tree.value["value"]


def number_shape(bounds: Bounds, dimension: Dimension | None = None, *, whole: bool = False) -> Shape:
    """Return the decoder of a number with a unit, of a whole number (`1e9` is whole), or of any number.

    Default bounds: a quantity is not negative, a ratio is at most one, and a time is at most the longest accepted time.
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
            message = "cannot be negative" if least == 0 else f"is below the minimum of {_bound(least, unit)}"
        elif above is not None and value <= above:
            message = "must be more than 0" if above == 0 else f"must be more than {_bound(above, unit)}"
        elif most is not None and value > most:
            message = f"is above the maximum of {_bound(most, unit)}"
        elif isinstance(tree.value, dict) or context.doubts == "file":
            return _unsure(value, tree, context, whole=whole)
        else:
            return value
        is_percent = unit == "%" and 1 < value <= 100 and isinstance(number.value, int | float)
        hint = f"did you mean '{number.value} %'?" if is_percent else None
        context.mistakes.add(number.place, f"{number.what()} {message}", hint)
        return FAILED

    plain = "a whole number" if whole else "a number"
    return Shape(plain if dimension is None else f"{dimension.name}, such as '{dimension.example}'", "scalar", read)


def _unsure(value: Any, tree: Tree, context: Context, *, whole: bool) -> Any:
    """A number with its uncertainty, if stated; FAILED if no result would include the uncertainty."""
    spread = tree.get("spread")
    if spread is not None and _spread(spread, context) is None:
        return FAILED
    origin = origin_of(tree) if tree.is_mapping else tree.origin if context.doubts == "file" else None
    exempt = whole and context.doubts == "file" and origin and not origin.spread and (origin.kind != "guess" or not of_user(tree))
    if context.sourced or origin is None or not origin.doubts or exempt:
        return value
    if context.doubts and not whole:
        return UncertainNumber(value, origin)
    message = f"no result includes the uncertainty of this number ({origin!s})"
    context.mistakes.add(tree.place, message, "state it for a number of an op or a time of the runtime, or omit it here")
    return FAILED


def _spread(tree: Tree, context: Context) -> float | None:
    """Relative standard deviation of a number; None if a mistake was added."""
    value = tree.value
    try:
        spread = (
            parse_as(value, RATIO) if isinstance(value, str | int | float | Quantity) and not isinstance(value, bool) else -1.0
        )
    except UnitError as error:
        context.mistakes.add_unit_error(tree.place, error)
        return None
    if not 0 <= spread <= WIDEST:
        message = f"`spread`: expected a relative standard deviation (0 % to 300 %), got {tree.what()}"
        context.mistakes.add(tree.place, message, "spread: 5 %")
        return None
    return spread


def _bound(value: float, unit: str) -> str:
    if unit == TIME.unit and value == _LONGEST:
        return ticks.LONGEST_TEXT
    return f"{value:.15g}" if unit == "1" else format_quantity(value, unit)


def _plain_number(number: Tree, context: Context, *, whole: bool) -> Any:
    """A number without a unit; FAILED if a mistake was added."""
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
        return float(given)  # at most 40 digits
    if isinstance(given, float) and (not math.isfinite(given) or not given.is_integer()):
        context.mistakes.add(number.place, message)
        return FAILED
    if abs(int(given)) > 2**63 - 1:
        context.mistakes.add(number.place, f"{number.what()} is too large")
        return FAILED
    return int(given)


# ---- sources ----


def origin_of(tree: Tree) -> Origin | None:
    """Return the origin that the `source:`, `ref:` and `spread:` of a mapping state; None without any."""
    source, ref = (tree.text(key) for key in SOURCE_KEYS)
    given = tree.get("spread") if tree.get("value") is not None else None
    spread = None if given is None else _spread(given, Context(Mistakes(), False))
    if source is None:
        return Origin("stated", ref or GIVEN.ref, spread) if ref or spread is not None else None
    for kind in SOURCES:
        if source == kind:
            return Origin(kind, ref or "", spread)
    return Origin("stated", f"{source}, {ref}" if ref else source, spread)


def uncertain_numbers(
    node: Tree, path: tuple[str, ...] = (), guess: Tree | None = None
) -> Iterator[tuple[tuple[str, ...], Tree]]:
    """Yield path and node of each number with a spread, or with the source `guess` of its own or of its mapping.

    Args:
        guess: source keys of the surrounding mapping, if its source is a guess.
    """
    if node.get("value") is not None and (node.get("spread") is not None or node.text("source") == "guess"):
        yield path, node
        return
    if node.get("value") is None and node.text("source") is not None:
        entries = {key: entry for key, entry in node.items() if key in SOURCE_KEYS}
        guess = Tree(entries, entries["source"].place) if node.text("source") == "guess" else None
    for key, child in enumerate(node.elements()) if node.is_list else node.items():
        if isinstance(child.value, dict | list):
            yield from uncertain_numbers(child, (*path, str(key)), guess)
            continue
        if guess is None or child.place.file != guess.place.file or (number := child.quantity) is None or number.dimension.plain:
            continue
        yield (*path, str(key)), Tree({**dict(guess.items()), "value": child}, child.place)


def refuse_doubts(tree: Tree, mistakes: Mistakes) -> None:
    """Add a mistake for each number with a stated uncertainty in a file whose uncertainties no result includes.

    Guesses of the library are exempt, because the error model covers them.
    """
    for _, node in uncertain_numbers(tree):
        if (origin := origin_of(node)) is not None and origin.doubts and (origin.spread or of_user(node)):
            mistakes.add(node.place, f"no result includes the uncertainty of this number ({origin!s})", "omit its uncertainty")


def with_origins(tree: Tree) -> Tree:
    """Return the tree with the source of every value set, unless it is already set."""
    return _stamp(tree, None, "")


def _stamp(tree: Tree, default: Origin | None, file: str) -> Tree:
    """Set the source of values in `file` to `default`, unless a mapping states another."""
    if isinstance(tree.value, dict):
        default, file = _inside(tree, default, file)
        entries = {key: _stamp(child, default, file) for key, child in tree.value.items()}
        return tree if all(map(is_, entries.values(), tree.value.values())) else tree.having(entries)
    if isinstance(tree.value, list):
        elements = [_stamp(child, default, file) for child in tree.value]
        return tree if all(map(is_, elements, tree.value)) else tree.having(elements)
    if tree.origin is not None or default is None or tree.place.file != file:
        return tree
    return Tree(tree.value, tree.place, tree.keys, default, tree.over)


def _inside(tree: Tree, default: Origin | None, file: str) -> tuple[Origin | None, str]:
    """The source that applies inside a mapping, and the file that states it."""
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
    """Return the source of each number with a source, by path: `parts.gpu.memory.bandwidth`.

    An element of a list has its `name:` or else its index in the path.
    """
    return {path: node.origin for path, node in _values(with_origins(tree)) if node.origin is not None and _is_number(node)}


def origins(tree: Tree) -> dict[str, Origin]:
    """Return the source of each value of a resolved mapping, by path; `GIVEN` for lists and values without a source."""
    return {
        path: node.origin if node.origin is not None and _is_number(node) else GIVEN
        for path, node in _values(tree, into_lists=False)
    }


def _values(node: Tree, path: str = "", *, into_lists: bool = True) -> Iterator[tuple[str, Tree]]:
    """Path and node of each scalar (and list); a number with a source counts as one scalar."""
    if isinstance(node.value, dict):
        if "value" in node.value and set(node.value) <= set(NUMBER_KEYS):
            yield from _values(node.value["value"], path)
            return
        for key, child in node.value.items():
            if key not in SOURCE_KEYS and key != "hwsim":
                name, inside = f"{path}.{key}" if path else key, isinstance(child.value, dict | list)
                yield from _values(child, name, into_lists=into_lists) if inside else [(name, child)]
    elif isinstance(node.value, list) and into_lists:
        for index, child in enumerate(node.value):
            yield from _values(child, f"{path}.{child.text('name') or index}")
    else:
        yield path, node


def _is_number(tree: Tree) -> bool:
    if isinstance(tree.value, bool):
        return False
    if isinstance(tree.value, str) and tree.value[:1].isdigit():
        return quantity_of(tree.value) is not None
    return isinstance(tree.value, int | float | Quantity)
