"""What follows `--vary`: `batch=32,64`, `nodes=1..512:x2`, `machine.links.slot.bandwidth=8 GB/s,16 GB/s`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from hwsim.spec import Mistake, Place, Source, SpecError, Tree, is_range, parse_range, read_text
from hwsim.units import Quantity, UnitError, format_quantity, parse_as

_OPEN: Final = {"[": "]", "{": "}", "(": ")"}


def parse_vary(text: str) -> tuple[str, tuple[object, ...]]:
    """Path and values of `PATH=VALUES`.

    Raises:
        SpecError: there is no path or no value, or a value cannot be read.
    """
    path, equals, values = text.partition("=")
    if not equals or not path.strip():
        raise SpecError([_mistake(text, 1, f"'{text:.60}' does not say what to vary", "write PATH=VALUES: batch=32,64")])
    return path.strip(), parse_values(values, path.strip())


def parse_values(text: str, path: str = "") -> tuple[object, ...]:
    """Values between commas, ranges written out; commas inside brackets and quotes belong to the value.

    Numbers come as numbers and true and false as bool; anything else stays text.

    >>> parse_values("1, 4..16:x2, ring"), parse_values("1 GB/s..4 GB/s:x2"), parse_values("[a, b], [b, a]")
    ((1, 4, 8, 16, 'ring'), ('1 GB/s', '2 GB/s', '4 GB/s'), ('[a, b]', '[b, a]'))

    Raises:
        SpecError: an empty value, or one that cannot be read.
    """
    shown, offset = (f"{path}={text}", len(path) + 2) if path else (text, 1)
    found: list[object] = []
    for start, item in _items(text):
        try:
            found += _values(item)
        except UnitError as error:
            raise SpecError([_mistake(shown, offset + start, error.message, error.hint)]) from None
        except SpecError as error:
            raise SpecError([_mistake(shown, offset + start, each.message, each.hint) for each in error.mistakes]) from None
    return tuple(found)


def scalar(value: object) -> object:
    """A value given in Python: a number of numpy becomes Python's, a text is what it would be in a file."""
    if isinstance(value, str):
        return _read(value)
    item = getattr(value, "item", None)
    plain: object = item() if callable(item) and not isinstance(value, Tree) else value
    return str(plain) if isinstance(plain, Quantity) else plain


def _mistake(shown: str, column: int, message: str, hint: str | None) -> Mistake:
    line = " ".join(shown.splitlines()) if len(shown.splitlines()) > 1 else shown
    return Mistake(Place("--vary", 1, column, Source("--vary", line)), message, hint)


def _items(text: str) -> Iterator[tuple[int, str]]:
    """Where each item begins, and the item."""
    closing: list[str] = []
    quote, start = "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'" and not text[start:at].strip():
            quote = sign
        elif sign in _OPEN:
            closing.append(_OPEN[sign])
        elif closing and sign == closing[-1]:
            closing.pop()
        elif sign == "," and not closing:
            yield _stripped(text, start, at)
            start = at + 1
    yield _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> tuple[int, str]:
    item = text[start:end]
    return start + len(item) - len(item.lstrip()), item.strip()


def _values(item: str) -> Iterator[object]:
    if not item:
        raise UnitError("a value is missing", "values stand between commas: 32,64")
    if not is_range(item):
        yield _read(item)
        return
    wanted = parse_range(item)
    for value in wanted.values():
        if wanted.scale == "log" and not wanted.whole and wanted.low < value < wanted.high:
            value = float(f"{value:.4g}")  # the values between are nobody's choice: four digits are enough
        quantity = Quantity(value, wanted.dimension)
        yield value if wanted.dimension.plain else ("iB" in item and _in_binary(quantity)) or _with_unit(quantity)


def _read(item: str) -> object:
    """The number or bool that a file would read in this text, else the text itself."""
    value: Any = read_text(item, "--vary").value
    return value if isinstance(value, bool | int | float) else item


def _in_binary(quantity: Quantity) -> str:
    """The same with a power of 1024, as the ends of the range have it; "" if it is no whole number of one.

    >>> parse_values("512 KiB..2 MiB:x2")
    ('512 KiB', '1 MiB', '2 MiB')
    """
    unit = quantity.dimension.unit
    fits = [
        (step, prefix)
        for step, prefix in enumerate(("Ki", "Mi", "Gi", "Ti"), start=1)
        if unit.startswith("B") and quantity.value >= 1024**step and quantity.value % 1024**step < 0.5
    ]
    return f"{quantity.value / 1024 ** fits[-1][0]:.0f} {fits[-1][1]}{unit}" if fits else ""


def _with_unit(quantity: Quantity) -> str:
    """The shortest text that is this quantity (steps that were added up may be off in the last digit)."""
    for digits in (3, 6, 15):
        text = format_quantity(quantity.value, quantity.dimension.unit, digits)
        number, _, symbol = text.partition(" ")
        text = f"{number.rstrip('0').rstrip('.') if '.' in number and 'e' not in number else number} {symbol}"
        try:
            found = parse_as(text, quantity.dimension)
        except UnitError:
            continue
        if math.isclose(found, quantity.value, rel_tol=1e-14):
            return text
    return str(quantity)
