"""How single numbers are read, and what the readers of all types have in common."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any, Final

from hwsim import ticks
from hwsim.records import dataclass
from hwsim.spec.mistakes import Mistakes, did_you_mean
from hwsim.spec.tree import Tree
from hwsim.units import RATIO, TIME, Dimension, Quantity, UnitError, format_quantity, parse_as

SOURCE_KEYS: Final = ("source", "ref")
NUMBER_KEYS: Final = ("value", "source", "ref", "ci95", "points", "note")
FAILED: Final = object()


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the metadata of a field says about its numbers, and whether one stands for many."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    one_or_many: bool = False
    choices: tuple[str, ...] | None = None


NO_BOUNDS: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader is given beside the node: where mistakes go, and whether sources may stand everywhere."""

    mistakes: Mistakes
    sourced: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """How one type is read, what it is called, and which nodes it may be: scalar, list, mapping, any."""

    expects: str
    takes: str
    read: Callable[[Tree, Context], Any]


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


def quantity_shape(dimension: Dimension, bounds: Bounds) -> Shape:
    """How a number with a unit is read; not below zero, and a ratio not above one, unless its bounds say so."""
    unit = "%" if dimension is RATIO else dimension.unit
    if bounds.minimum is None and bounds.exclusive_minimum is None:
        bounds = dataclasses.replace(bounds, minimum=0.0)
    if bounds.maximum is None and dimension is RATIO:
        bounds = dataclasses.replace(bounds, maximum=1.0)
    if bounds.maximum is None and dimension is TIME:
        bounds = dataclasses.replace(bounds, maximum=ticks.LONGEST / ticks.FEMTO)

    def read(tree: Tree, context: Context) -> Any:
        number = number_of(tree, context.mistakes)
        if number is None:
            return FAILED
        given = number.value
        if isinstance(given, bool) or not isinstance(given, str | int | float | Quantity):
            context.mistakes.add(number.place, f"{number.what()} is not {dimension.name}", f"such as '{dimension.example}'")
            return FAILED
        try:
            value = parse_as(given, dimension)
        except UnitError as error:
            context.mistakes.add_unit_error(number.place, error)
            return FAILED
        return _within(value, value, bounds, number, context, unit)

    return Shape(f"{dimension.name}, such as '{dimension.example}'", "scalar", read)


def _within(value: Any, compared: float, bounds: Bounds, tree: Tree, context: Context, unit: str) -> Any:
    """The value if its bounds allow it."""
    least, above, most = bounds.minimum, bounds.exclusive_minimum, bounds.maximum
    message = None
    if least is not None and compared < least:
        message = "cannot be negative" if least == 0 else f"is less than the least, {_bound(least, unit)}"
    elif above is not None and compared <= above:
        message = "must be more than 0" if above == 0 else f"must be more than {_bound(above, unit)}"
    elif most is not None and compared > most:
        message = f"is more than the most, {_bound(most, unit)}"
    if message is None:
        return value
    forgot = unit == "%" and 1 < compared <= 100 and isinstance(tree.value, int | float)
    context.mistakes.add(tree.place, f"{tree.what()} {message}", f"did you mean '{tree.value} %'?" if forgot else None)
    return FAILED


def _bound(value: float, unit: str) -> str:
    if unit == TIME.unit and value == ticks.LONGEST / ticks.FEMTO:
        return ticks.LONGEST_TEXT
    return f"{value:.15g}" if unit == "1" else format_quantity(value, unit)


def _plain_number(tree: Tree, context: Context, needed: str) -> Any:
    number = number_of(tree, context.mistakes)
    if number is None:
        return FAILED, tree
    given = number.value
    if isinstance(given, Quantity):
        if given.dimension.plain:
            return given.value, number
        context.mistakes.add(number.place, f"{number.what()} is {given.dimension.name}, but {needed} is needed here")
        return FAILED, number
    if isinstance(given, bool) or not isinstance(given, int | float):
        hint = None
        if isinstance(given, str):
            squeezed = given.replace("_", "").replace(",", "").strip()
            if re.fullmatch(r"[-+]?0[0-9]{1,20}", squeezed):
                hint = f"write {squeezed.lstrip('+0') or '0'} (or 0o... for octal)"
            elif re.fullmatch(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?", squeezed):
                hint = f"write {squeezed} without quotes" if squeezed == given else f"write {squeezed}"
        context.mistakes.add(number.place, f"{number.what()} is not {needed}", hint)
        return FAILED, number
    return given, number


def whole_shape(bounds: Bounds) -> Shape:
    """How a whole number is read; `1e9` is one."""

    def read(tree: Tree, context: Context) -> Any:
        given, number = _plain_number(tree, context, "a whole number")
        if given is FAILED:
            return FAILED
        if isinstance(given, float):
            if not math.isfinite(given) or not given.is_integer():
                context.mistakes.add(number.place, f"{number.what()} is not a whole number")
                return FAILED
            given = int(given)
        if abs(given) > 2**63 - 1:
            context.mistakes.add(number.place, f"{number.what()} is too large")
            return FAILED
        return _within(given, given, bounds, number, context, "1")

    return Shape("a whole number", "scalar", read)


def float_shape(bounds: Bounds) -> Shape:
    """How a number without a unit is read."""

    def read(tree: Tree, context: Context) -> Any:
        given, number = _plain_number(tree, context, "a number")
        if given is FAILED:
            return FAILED
        value = float(given)  # a whole number of a file has at most 40 digits
        return _within(value, value, bounds, number, context, "1")

    return Shape("a number", "scalar", read)
