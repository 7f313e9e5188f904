"""Parser of quantities with units: '16 GB/s' -> 16e9 in SI units, with checks of dimensions.

`k M G T P E` are powers of 1000, `Ki Mi Gi Ti Pi` powers of 1024 (IEC 80000-13); `b` is a bit and `B` a byte. Units are case
sensitive. Values are floats in s, B, FLOP, USD, J, m, kg and their quotients. A year has 365 days, and a month is a twelfth of a
year (730 h, as in cloud prices).

>>> parse_as("400 Gb/s", BANDWIDTH)
50000000000.0
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Final

from hwsim.records import dataclass

_BASES: Final = ("s", "B", "FLOP", "T", "USD", "J", "m", "kg")
Exponents = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A physical dimension: powers of s, B, FLOP, T (transfers), USD, J, m and kg.

    Args:
        name: name with article, for messages.
        unit: symbol of the SI unit.
        example: example, for messages.
    """

    exponents: Exponents
    name: str
    unit: str
    example: str

    def __mul__(self, other: Dimension) -> Dimension:
        return _dimension(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Dimension) -> Dimension:
        return _dimension(tuple(a - b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def fits(self, other: Dimension) -> bool:
        """Return whether values of both dimensions can be added: a frequency is a rate, a ratio is a number."""
        return self.exponents == other.exponents

    @property
    def plain(self) -> bool:
        """Whether the dimension has no unit."""
        return not any(self.exponents)


def _named(name: str, unit: str, example: str, **powers: int) -> Dimension:
    return Dimension(tuple(powers.get(base, 0) for base in _BASES), name, unit, example)


TIME: Final = _named("a time", "s", "10 us", s=1)
SIZE: Final = _named("a size", "B", "160 MB", B=1)
BANDWIDTH: Final = _named("a bandwidth", "B/s", "16 GB/s", B=1, s=-1)
DATA_RATE: Final = _named("a bandwidth", "B/s", "25 Gb/s", B=1, s=-1)
FLOP: Final = _named("an amount of work", "FLOP", "640 GFLOP", FLOP=1)
SPEED: Final = _named("a speed", "FLOP/s", "15.7 TFLOP/s", FLOP=1, s=-1)
RATE: Final = _named("a rate", "1/s", "400 1/s", s=-1)
FREQUENCY: Final = _named("a frequency", "Hz", "2.5 GHz", s=-1)
TRANSFERS: Final = _named("a transfer rate", "T/s", "16 GT/s", T=1, s=-1)
POWER: Final = _named("a power", "W", "700 W", J=1, s=-1)
ENERGY: Final = _named("an energy", "J", "3 kWh", J=1)
MONEY: Final = _named("an amount of money", "USD", "6000 USD", USD=1)
PRICE: Final = _named("a price per time", "USD/s", "1.2 USD/h", USD=1, s=-1)
LENGTH: Final = _named("a length", "m", "30 m", m=1)
MASS: Final = _named("a mass", "kg", "12 t", kg=1)
GRID: Final = _named("a carbon intensity", "kg/J", "400 g/kWh", kg=1, J=-1)
TARIFF: Final = _named("a price of energy", "USD/J", "0.10 USD/kWh", USD=1, J=-1)
RATIO: Final = _named("a ratio", "%", "95 %")
COUNT: Final = _named("a number", "1", "8")

_CANONICAL: Final = {
    dimension.exponents: dimension
    for dimension in (TIME, SIZE, BANDWIDTH, FLOP, SPEED, RATE, TRANSFERS, POWER, ENERGY, MONEY, PRICE, LENGTH, MASS, GRID,
                      TARIFF, COUNT)
}  # fmt: skip

Seconds = Annotated[float, TIME]
Bytes = Annotated[float, SIZE]
BytesPerSecond = Annotated[float, BANDWIDTH]
DataRate = Annotated[float, DATA_RATE]
Flop = Annotated[float, FLOP]
FlopPerSecond = Annotated[float, SPEED]
PerSecond = Annotated[float, RATE]
Hertz = Annotated[float, FREQUENCY]
TransfersPerSecond = Annotated[float, TRANSFERS]
Watts = Annotated[float, POWER]
DollarsPerSecond = Annotated[float, PRICE]
Metres = Annotated[float, LENGTH]
Ratio = Annotated[float, RATIO]

DAY: Final = 86_400.0  # seconds
YEAR: Final = 365 * DAY
MONTH: Final = YEAR / 12
BYTES: Final[Mapping[str, float]] = {  # bytes per element in memory, by number format; tf32 is stored as fp32
    "fp64": 8.0, "fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5,
    "int64": 8.0, "int32": 4.0, "int16": 2.0, "int8": 1.0, "int4": 0.5, "bool": 1.0, "complex64": 8.0, "complex128": 16.0,
}  # fmt: skip


def _dimension(exponents: Exponents) -> Dimension:
    """The canonical dimension of these powers."""
    if exponents in _CANONICAL:
        return _CANONICAL[exponents]
    powers = [(base, power) for base, power in zip(_BASES, exponents, strict=True) if power]
    above = "*".join(base for base, power in powers for _ in range(power)) or "1"
    unit = above + "".join("/" + base for base, power in powers for _ in range(-power))
    return Dimension(exponents, f"a quantity in {unit}", unit, f"1 {unit}")


class UnitError(ValueError):
    """An error for a text that is not the expected quantity, with a hint."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI units with its dimension; a frequency becomes a rate, and a ratio a number.

    >>> (parse("160 MB") / parse("16 GB/s")).dimension is TIME
    True
    """

    value: float
    dimension: Dimension

    def __post_init__(self) -> None:
        canonical = _CANONICAL.get(self.dimension.exponents)
        if canonical is not None and canonical is not self.dimension:
            object.__setattr__(self, "dimension", canonical)

    def _same(self, other: object) -> float:
        """The value of another quantity of the same dimension."""
        there = other if isinstance(other, Quantity) else Quantity(_number(other), COUNT)
        if there.dimension.exponents != self.dimension.exponents:
            raise UnitError(f"{self} and {there} cannot be added or compared: {self.dimension.name} and {there.dimension.name}")
        return there.value

    def __add__(self, other: object) -> Quantity:
        return Quantity(self.value + self._same(other), self.dimension)

    def __sub__(self, other: object) -> Quantity:
        return Quantity(self.value - self._same(other), self.dimension)

    def __rsub__(self, other: object) -> Quantity:
        return Quantity(self._same(other) - self.value, self.dimension)

    def __mul__(self, other: object) -> Quantity:
        if isinstance(other, Quantity):
            return Quantity(self.value * other.value, self.dimension * other.dimension)
        return Quantity(self.value * _number(other), self.dimension)

    def __truediv__(self, other: object) -> Quantity:
        if isinstance(other, Quantity):
            return Quantity(self.value / other.value, self.dimension / other.dimension)
        return Quantity(self.value / _number(other), self.dimension)

    def __rtruediv__(self, other: object) -> Quantity:
        return Quantity(_number(other) / self.value, COUNT / self.dimension)

    def __neg__(self) -> Quantity:
        return Quantity(-self.value, self.dimension)

    def __lt__(self, other: object) -> bool:
        return self.value < self._same(other)

    def __gt__(self, other: object) -> bool:
        return self.value > self._same(other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __str__(self) -> str:
        return f"{self.value!r} {self.dimension.unit}" if not self.dimension.plain else repr(self.value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnitError(f"{value!r} is not a number")
    return float(value)


# ---- the table: unit -> (power of ten, factor, exponents); prefixes are powers of ten ----

UP: Final = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DOWN: Final = {"m": -3, "u": -6, "µ": -6, "μ": -6, "n": -9, "p": -12, "f": -15}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60}
_Atom = tuple[int, float, Exponents]


def _atoms() -> dict[str, _Atom]:
    table: dict[str, _Atom] = {}

    def add(names: str, factor: float, dimension: Dimension, *prefixes: dict[str, int], ten: int = 0) -> None:
        for name in names.split():
            table[name] = (ten, factor, dimension.exponents)
            for prefix, power in (pair for group in prefixes for pair in group.items()):
                table[prefix + name] = (ten + power, factor, dimension.exponents)

    add("s", 1.0, TIME, _DOWN)
    add("min", 60.0, TIME)
    add("h", 3600.0, TIME)
    add("day", DAY, TIME)
    add("month", MONTH, TIME)
    add("year", YEAR, TIME)
    add("B", 1.0, SIZE, UP)
    add("b bit", 0.125, SIZE, UP)
    for prefix, factor in _BINARY.items():
        add(prefix + "B", factor, SIZE)
        add(f"{prefix}b {prefix}bit", factor / 8, SIZE)
    add("FLOP OP", 1.0, FLOP, UP)
    add("Hz IOPS", 1.0, RATE, UP)
    add("rpm", 1 / 60, RATE)
    add("T", 1.0, TRANSFERS * TIME, UP)
    add("W", 1.0, POWER, UP, {"m": -3, "u": -6})
    add("J", 1.0, ENERGY, UP, _DOWN)
    add("Wh", 3600.0, ENERGY, UP)
    add("USD", 1.0, MONEY, UP)
    add("m", 1.0, LENGTH, {"k": 3, "m": -3, "c": -2, "u": -6, "n": -9})
    add("g", 1.0, MASS, {"k": 3, "m": -3}, ten=-3)
    add("t", 1000.0, MASS, {"k": 3, "M": 6})
    add("%", 1.0, COUNT, ten=-2)
    add("1", 1.0, COUNT)
    return table


_ATOMS: Final = _atoms()
_TEXT: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9}))?\s*(\S.*)?")


@lru_cache(maxsize=4096)
def unit_of(text: str) -> tuple[int, float, Dimension] | None:
    """Return (power of ten, factor, dimension) of a unit such as 'GB/s'; None if a part of it is unknown."""
    above, *below = (part.strip() for part in text.split("/"))
    if above not in _ATOMS or (above == "1" and not below):
        return None
    ten, factor, exponents = _ATOMS[above]
    for part in below:
        if part not in _ATOMS or part in ("1", "%"):
            return None
        minus, divisor, powers = _ATOMS[part]
        ten, factor = ten - minus, factor / divisor
        exponents = tuple(a - b for a, b in zip(exponents, powers, strict=True))
    return ten, factor, _dimension(exponents)


def parse(text: str) -> Quantity:
    """Return the quantity of a text; a number without a unit is a count.

    Raises:
        UnitError: the text is not a number with a known unit, or out of the range of a float.

    >>> parse("100 ns").value, parse("3 kWh").value, parse("7200 rpm").value
    (1e-07, 10800000.0, 120.0)
    """
    return Quantity(*_parse(text, None))


@lru_cache(maxsize=8192)
def quantity_of(text: str) -> Quantity | None:
    """Return the quantity of a text; None if it is not a number with a known unit or without a unit.

    >>> quantity_of("24 GiB").value, quantity_of("7 B").value, quantity_of("3.5 turbo")
    (25769803776.0, 7.0, None)
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None or not (match[3] is None or match[3] in UP or unit_of(match[3]) or unit_of(_joined(match[3]))):
        return None
    try:
        return parse(text)
    except UnitError:
        return None


@lru_cache(maxsize=8192)
def _parse(text: str, wanted: Dimension | None) -> tuple[float, Dimension]:
    """(value in SI units, dimension) of a text."""
    stripped = text.strip()
    shown = stripped if len(stripped) <= 60 else stripped[:57] + "..."
    needed = wanted.name if wanted else "a quantity"
    match = _TEXT.fullmatch(stripped) if len(stripped) <= 200 else None
    if match is None:
        example = (wanted or BANDWIDTH).example
        raise UnitError(f"'{shown}' is not {needed}", f"write a number and its unit, such as '{example}'")
    mantissa, power, unit = match.groups()
    ten, factor, dimension = 0, 1.0, COUNT
    if unit in UP and (wanted is COUNT or (wanted is None and unit not in _ATOMS)):
        ten = UP[unit]  # '16 M': a number without a unit
    elif unit is not None:
        unit_parts = unit_of(unit) or unit_of(_joined(unit))
        if unit_parts is None:
            raise _unknown(shown, unit, needed, wanted)
        ten, factor, dimension = unit_parts
    value = float(f"{mantissa}e{int(power or 0) + ten}") * factor  # a single rounding: '100 ns' is exactly 1e-07
    if math.isinf(value):
        raise UnitError(f"'{shown}' is too large to be a number")
    if value == 0 and mantissa.strip("+-0."):
        raise UnitError(f"'{shown}' is below the smallest float")
    return value, dimension


def _joined(unit: str) -> str:
    """A unit without the space after its prefix, such as 'M USD'."""
    prefix, space, rest = unit.partition(" ")
    return prefix + rest.lstrip() if space and prefix in UP else unit


def _unknown(shown: str, unit: str, needed: str, wanted: Dimension | None) -> UnitError:
    if unit[0] in ",_'" and unit[1:2].isdigit():
        return UnitError(f"'{shown}' is not {needed}", "write digits without separators, such as 50000")
    likely = suggest_unit(unit, wanted)
    hint = "did you mean " + " or ".join(f"'{name}'" for name in likely) + "?" if likely else None
    return UnitError(
        f"'{shown}' is not {needed}: unknown unit '{unit}'", hint or (f"write it as in '{wanted.example}'" if wanted else None)
    )


def parse_as(given: str | float | Quantity, dimension: Dimension) -> float:
    """Return the value in SI units of a quantity of this dimension.

    Raises:
        UnitError: the value is not a quantity, lacks a unit, or has another dimension.

    >>> parse_as("95 %", RATIO), parse_as(8, COUNT), parse_as("64 KiB", SIZE)
    (0.95, 8.0, 65536.0)
    """
    if isinstance(given, str):
        value, measured = _parse(given, dimension)
        shown, has_no_unit = f"'{given.strip()}'", measured.plain and "%" not in given
    elif isinstance(given, Quantity):
        value, measured, shown, has_no_unit = given.value, given.dimension, str(given), given.dimension.plain
    elif isinstance(given, bool) or not isinstance(given, int | float):
        raise UnitError(f"{given!r} is not {dimension.name}")
    else:
        try:
            value, measured, shown, has_no_unit = float(given), COUNT, f"{given!r}", True
        except OverflowError:
            raise UnitError("the number is too large for a float") from None
    if not math.isfinite(value):
        raise UnitError(f"{shown} is not a finite number")
    if measured.exponents != dimension.exponents:
        if has_no_unit:
            raise UnitError(
                f"{shown.strip(chr(39))} has no unit: {dimension.name} is needed, such as '{_like(shown, dimension)}'"
            )
        rate = unit_of(measured.unit + "/s")
        hint = None
        if isinstance(given, str) and rate and rate[2].fits(dimension):
            hint = f"did you mean '{given.strip()}/s'"
            hint += f" (bits) or '{given.strip()[:-1]}B/s'?" if given.strip().endswith("b") else "?"
        raise UnitError(f"{shown} is {measured.name}, but {dimension.name} is needed here", hint)
    if dimension is COUNT and isinstance(given, str) and "%" in given:
        raise UnitError(f"{shown} is a ratio, but a number is needed here")
    return value


def _like(shown: str, dimension: Dimension) -> str:
    """The number with the unit of the example; for a long number, the example itself."""
    number, (_, _, unit) = shown.strip("'"), dimension.example.partition(" ")
    return f"{number} {unit}" if unit and len(number) <= 7 else dimension.example


# ---- suggestions: never between bit and byte, never of another dimension ----

_WORDS: Final = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "nsec": "ns", "minute": "min",
    "minutes": "min", "mins": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "d": "day", "days": "day",
    "months": "month", "years": "year", "yr": "year", "a": "year", "kilogram": "kg", "tonne": "t", "tonnes": "t", "gram": "g",
    "kwh": "kWh", "KWh": "kWh", "usd": "USD",
    "byte": "B", "bytes": "B", "Byte": "B", "Bytes": "B", "bits": "bit", "percent": "%", "$": "USD", "dollar": "USD",
    "dollars": "USD", "hz": "Hz", "iops": "IOPS", "IOPs": "IOPS", "watt": "W", "watts": "W", "meter": "m", "metre": "m",
    "meters": "m", "metres": "m", "RPM": "rpm",
}  # fmt: skip
_PER_SECOND: Final = re.compile(r"([kKMGTPEmgtpe]?i?)(B|b|bit|bits|T|Bytes|bytes)(?:ps|/sec|/second)")
_FLOPS: Final = re.compile(r"([kKMGTPEgtpe]?)(?:flops?|FLOPS|FLOPs|Flops?|FLOP|OPS|OPs|TOPS)(ps|/s|/sec)?", re.ASCII)


def suggest_unit(unit: str, wanted: Dimension | None = None) -> list[str]:
    """Return at most two probable units for an unknown unit, best first.

    >>> suggest_unit("GBps"), suggest_unit("gb/s"), suggest_unit("KB")
    (['GB/s'], ['Gb/s'], ['kB', 'KiB'])
    """
    candidates: list[str] = []
    if match := _PER_SECOND.fullmatch(unit):
        candidates = [
            candidate + "/s"
            for candidate in _near(match[1] + {"bits": "bit"}.get(match[2], match[2][:1] if "yte" in match[2] else match[2]))
        ]
    elif match := _FLOPS.fullmatch(unit):
        prefix = match[1].upper().replace("K", "k")
        candidates = [f"{prefix}FLOP/s"] if match[2] else [f"{prefix}FLOP/s", f"{prefix}FLOP"]
    else:
        parts = [_near(part.strip()) for part in unit.split("/")]
        if unit.startswith("/"):
            parts[0] = ["1"]
        if all(parts) and len(parts) <= 3:
            candidates = ["/".join([first, *(part[0] for part in parts[1:])]) for first in parts[0]]
    readable = [(candidate, unit_parts[2]) for candidate in dict.fromkeys(candidates) if (unit_parts := unit_of(candidate))]
    fitting = [candidate for candidate, dimension in readable if wanted is None or dimension.fits(wanted)]
    return fitting[:2]


def _near(atom: str) -> list[str]:
    """Known units that differ from this text by case, a common synonym or a typing error."""
    if atom in _ATOMS:
        return [atom]
    if atom in _WORDS:
        return [_WORDS[atom]]
    folded = atom.casefold()

    def same_bits(name: str) -> bool:
        return ("B" in name, "b" in name) == ("B" in atom, "b" in atom)

    by_case = [name for name in _ATOMS if name.casefold() == folded and same_bits(name)]
    if re.fullmatch(r"[KkMmGgTtPp][Bb]", atom):  # 'KB' is ambiguous
        by_case += [name for name in (atom[0].upper() + "i" + atom[1],) if atom[0] == "K"]
    if by_case:
        return by_case
    import difflib

    return [name for name in difflib.get_close_matches(atom, _ATOMS, 3, 0.7) if same_bits(name)][:1]
