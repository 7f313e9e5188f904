"""The points of a study: parsed `--vary` texts, and every combination of their values; the last path varies fastest.

batch=32,64      nodes=1..512:x2      machine.links.slot.bandwidth=8 GB/s,16 GB/s
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec import Mistake, Place, SourceText, SpecError, Tree, read_text, tree_of
from hwsim.spec.ranges import is_range, parse_range
from hwsim.units import COUNT, Quantity, UnitError, parse, parse_as

MAX_STUDY_POINTS: Final = 10_000
_OPEN: Final = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Points:
    """The points of a study: paths, and the values of each point in the same order.

    >>> Points(("batch", "workers"), ((32, 4), (64, 8), (64, 16))).values
    ((32, 64), (4, 8, 16))
    """

    paths: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    @property
    def values(self) -> tuple[tuple[object, ...], ...]:
        """Distinct values of each path, in the order of the points."""
        return tuple(
            tuple({value_text(cell): cell for cell in reversed(column)}.values())[::-1] for column in zip(*self.rows, strict=True)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.rows)


def grid(vary: Mapping[str, Sequence[object] | str], most: int = MAX_STUDY_POINTS) -> Points:
    """Return every combination of the values, given as lists or text (`"1..64:x2"`); duplicates count once.

    >>> list(grid({"batch": "32, 64", "machine.gpu.count": [1, 2]}))
    [(32, 1), (32, 2), (64, 1), (64, 2)]

    Raises:
        SpecError: nothing to vary, a path without values, or more than `most` points.
    """
    if not vary:
        raise SpecError.of(None, "a sweep needs at least one path to vary")
    values: list[tuple[object, ...]] = []
    for path, given in vary.items():
        listed = parse_values(given, path) if isinstance(given, str) else tuple(scalar(value) for value in given)
        if not listed:
            raise SpecError.of(None, f"`{path}` has no values")
        different: dict[str, object] = {}
        for value in listed:
            different.setdefault(value_text(value), value)
        values.append(tuple(different.values()))
    points = math.prod(map(len, values))
    if points > most:
        sizes = " x ".join(str(len(value)) for value in values)
        many = f"{sizes} = {points} points" if len(values) > 1 else f"{points} points"
        raise SpecError.of(None, f"{many} exceed the limit of {most} per study", "use fewer values: 1..512:x2, 1..512:log")
    return Points(tuple(vary), tuple(product(*values)))


def quantity_of(value: object) -> Quantity | None:
    """Return a value as a quantity; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Quantity):
        return None
    try:
        if isinstance(value, Quantity):
            return value
        return parse(value) if isinstance(value, str) else Quantity(float(value), COUNT)
    except (UnitError, OverflowError):
        return None


def value_text(value: object) -> str:
    """Return a value as it is written in a file.

    >>> value_text(True), value_text(0.5), value_text("8 GB/s"), value_text(None)
    ('true', '0.5', '8 GB/s', 'null')
    """
    if isinstance(value, bool) or value is None:
        return str(value).lower().replace("none", "null")
    return str(value)


def parse_vary(text: str) -> tuple[str, tuple[object, ...]]:
    """Parse `PATH=VALUES` into path and values.

    Raises:
        SpecError: the path or a value is missing, or a value is invalid.
    """
    path, equals, values = text.partition("=")
    if not equals or not path.strip():
        raise SpecError([_mistake(text, 1, f"expected PATH=VALUES, got '{text:.60}'", "for example batch=32,64")])
    return path.strip(), parse_values(values, path.strip())


def parse_values(text: str, path: str = "") -> tuple[object, ...]:
    """Parse comma-separated values and expand ranges; commas inside brackets and quotes belong to the value.

    Numbers become numbers, `true` and `false` become bool; other values remain text.

    >>> parse_values("1, 4..16:x2, ring"), parse_values("1 GB/s..4 GB/s:x2"), parse_values("[a, b], [b, a]")
    ((1, 4, 8, 16, 'ring'), ('1 GB/s', '2 GB/s', '4 GB/s'), ('[a, b]', '[b, a]'))

    Raises:
        SpecError: an empty value, or one that cannot be read.
    """
    shown, offset = (f"{path}={text}", len(path) + 2) if path else (text, 1)
    values: list[object] = []
    for start, item in _items(text):
        try:
            values += _values(item)
        except UnitError as error:
            raise SpecError([_mistake(shown, offset + start, error.message, error.hint)]) from None
        except SpecError as error:
            raise SpecError(
                [_mistake(shown, offset + start, mistake.message, mistake.hint) for mistake in error.mistakes]
            ) from None
    return tuple(values)


def scalar(value: object) -> object:
    """Return a Python value as in a file: NumPy numbers become Python numbers, text is parsed. Raises the errors of `tree_of`."""
    if isinstance(value, str):
        return _read(value)
    numpy = getattr(value, "tolist", None)
    plain: object = numpy() if callable(numpy) and not isinstance(value, Tree) else value
    return str(plain) if isinstance(plain, Quantity) else plain if isinstance(plain, Tree) else tree_of(plain).plain()


def _mistake(shown: str, column: int, message: str, hint: str | None) -> Mistake:
    line = " ".join(shown.splitlines()) if len(shown.splitlines()) > 1 else shown
    return Mistake(Place("--vary", 1, column, SourceText("--vary", line)), message, hint)


def _items(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start position, item) of each comma-separated item."""
    closing: list[str] = []
    quote, start = "", 0
    for index, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'" and not text[start:index].strip():
            quote = sign
        elif sign in _OPEN:
            closing.append(_OPEN[sign])
        elif closing and sign == closing[-1]:
            closing.pop()
        elif sign == "," and not closing:
            yield _stripped(text, start, index)
            start = index + 1
    yield _stripped(text, start, len(text))


def _stripped(text: str, start: int, end: int) -> tuple[int, str]:
    item = text[start:end]
    return start + len(item) - len(item.lstrip()), item.strip()


def _values(item: str) -> Iterator[object]:
    if not item:
        raise UnitError("a value between commas is empty", "for example batch=32,64")
    if not is_range(item):
        yield _read(item)
        return
    wanted = parse_range(item)
    for value in wanted.values():
        quantity = Quantity(value, wanted.dimension)
        binary = _in_binary(quantity) if "iB" in item else ""
        long = wanted.scale == "log" or value != float(f"{value:.6g}")
        if long and wanted.scale != "linear" and not (wanted.whole or binary) and wanted.low < value < wanted.high:
            value = float(f"{value:.4g}")  # four digits are enough between the ends, which were given
            quantity = Quantity(value, wanted.dimension)
        yield value if wanted.dimension.plain else binary or with_unit(quantity)


def _read(item: str) -> object:
    """Return the number or bool in a text, else the text itself."""
    value: Any = read_text(item, "--vary").value
    return value if isinstance(value, bool | int | float) else item


def _in_binary(quantity: Quantity) -> str:
    """Return a quantity in a binary unit; "" if it is not a whole number of one.

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


def with_unit(quantity: Quantity) -> str:
    """Return the shortest text of a quantity (repeated addition of steps may change the last digit)."""
    for digits in (3, 6, 15):
        text = format_quantity(quantity.value, quantity.dimension.unit, digits)
        number, _, symbol = text.partition(" ")
        text = f"{number.rstrip('0').rstrip('.') if '.' in number and 'e' not in number else number} {symbol}"
        try:
            value = parse_as(text, quantity.dimension)
        except UnitError:
            continue
        if math.isclose(value, quantity.value, rel_tol=1e-14):
            return text
    return str(quantity)
