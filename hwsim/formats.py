"""Formatting of quantities: numbers with prefix and unit, percentages, durations, counts, and names in natural order.

>>> format_quantity(0.015, "s"), format_quantity(16e9, "B/s"), format_quantity(65536, "B")
('15.0 ms', '16 GB/s', '65.5 kB')
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from hwsim.units import COUNT, DAY, UP, UnitError, unit_of

_PREFIXES: Final = {**{power: prefix for prefix, power in UP.items()}, 0: "", -3: "m", -6: "u", -9: "n", -12: "p", -15: "f"}
_PREFIXED: Final = {  # unit: (smallest power, largest power)
    "s": (-15, 0), "B": (0, 18), "b": (0, 18), "bit": (0, 18), "FLOP": (0, 18), "OP": (0, 18), "T": (0, 18), "Hz": (0, 18),
    "IOPS": (0, 18), "W": (-6, 18), "J": (-15, 18), "Wh": (0, 18), "m": (-9, 3),
}  # fmt: skip
_RUN_OF_DIGITS: Final = re.compile(r"(\d+)")
_LONG: Final = ((2 * DAY, DAY, "day"), (7200.0, 3600.0, "h"), (120.0, 60.0, "min"))
_NUMBERED: Final = re.compile(r"(?<=[A-Za-z_])\d+(?=$|[ .,:<>-])")  # gpu0.compute, slots:psw->gpu0


def format_quantity(value: float, unit: str, digits: int = 3) -> str:
    """Return a value in SI units with `digits` significant digits and a suitable prefix.

    `unit` is the symbol without prefix ("s", "B", "B/s", "FLOP/s", "1/s", "%", "1", "USD/h", ...).
    Times keep their trailing zeros; above two minutes their unit is min, h or day.

    >>> format_quantity(1.2e12, "FLOP"), format_quantity(0.5, "%"), format_quantity(9000, "s")
    ('1.2 TFLOP', '50 %', '2.50 h')
    """
    scale = unit_of(unit) if unit != "1" else (0, 1.0, COUNT)
    if scale is None:
        raise UnitError(f"unknown unit '{unit}'")
    suffix = "" if unit == "1" else " " + unit
    if not math.isfinite(value):
        return f"{value}{suffix}"
    if unit == "s":
        for least, size, name in _LONG:
            if abs(value) >= least:
                return f"{_digits(value / size, digits, 0, keep=True)} {name}"
    shown = value / (scale[1] * 10.0 ** scale[0]) if scale[0] >= 0 else value * 10.0 ** -scale[0] / scale[1]
    if shown == 0:
        return "0" + suffix
    first = unit.split("/", 1)[0]
    power = 0
    if first in _PREFIXED:
        low, high = _PREFIXED[first]
        exponent = int(f"{shown:.{digits - 1}e}".partition("e")[2])  # after rounding: 999.6 is 1.00 k
        power = min(max(exponent // 3 * 3, low), high)
    prefix = _PREFIXES[power]
    if unit == "%":
        return percent(value, f".{digits}g")
    return f"{_digits(shown, digits, power, keep=unit == 's')}{' ' if suffix else ''}{prefix}{suffix.lstrip()}"


def prefixed(value: float) -> str:
    """Return a number with three significant digits and a prefix.

    >>> prefixed(116_000), prefixed(906), prefixed(15e12)
    ('116 k', '906', '15 T')
    """
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= 0.9995 * size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g}"


def format_between(low: float, high: float, unit: str, digits: int = 3) -> tuple[str, str]:
    """Return both limits of a range; long times have a common unit.

    >>> format_between(44.0 * 3600, 2.51 * DAY, "s"), format_between(950.0, 1200.0, "W")
    (('1.83 day', '2.51 day'), ('950 W', '1.2 kW'))
    """
    texts = format_quantity(low, unit, digits), format_quantity(high, unit, digits)
    if unit == "s" and texts[0].rpartition(" ")[2] != texts[1].rpartition(" ")[2]:
        size = next((size for _, size, name in _LONG if texts[1].endswith(f" {name}")), None)
        if size is not None and abs(low) >= size:
            return f"{_digits(low / size, digits, 0, keep=True)} {texts[1].rpartition(' ')[2]}", texts[1]
    return texts


def format_duration(seconds: float, digits: int = 4) -> str:
    """Return a duration in words, such as that of a training.

    >>> (format_duration(5640), format_duration(45.2), format_duration(754), format_duration(30.5 * 3600),
    ...  format_duration(53.21 * DAY), format_duration(1442.6 * DAY, 3))
    ('1 h 34 min', '45.2 s', '12 min 34 s', '30 h 30 min', '53.21 days', '1,443 days')
    """
    if seconds >= 2 * DAY:
        return f"{seconds / DAY:,.0f} days" if seconds >= 1000 * DAY else f"{seconds / DAY:.{digits}g} days"
    if seconds < 119.5:
        return format_quantity(seconds, "s")
    size, names = (60, ("h", "min")) if seconds >= 3599.5 else (1, ("min", "s"))
    first, second = divmod(round(seconds / size), 60)
    return f"{first} {names[0]} {second} {names[1]}" if second else f"{first} {names[0]}"


def format_share(fraction: float) -> str:
    """Return a fraction in per cent with two significant digits from 0.1 % on; only a full fraction is 100 %.

    >>> format_share(1), format_share(0.9996), format_share(0.5), format_share(0.0123), format_share(0.00099), format_share(5e3)
    ('100 %', '99.9 %', '50 %', '1.2 %', '<0.1 %', '500,000 %')
    """
    if 0 < fraction < 0.001:
        return "<0.1 %"
    if 0.9945 <= fraction < 0.99999:
        return f"{min(fraction * 100, 99.9):.1f} %"
    if fraction >= 1000:
        return f"{100 * fraction:,.0f} %"
    return format_quantity(fraction, "%", 2) if fraction < 0.995 else format_quantity(fraction, "%", 3)


def format_change(fraction: float) -> str:
    """Return a change in per cent with sign: two significant digits, whole numbers from 10 % on.

    >>> format_change(1.1), format_change(0.057), format_change(-0.346), format_change(12.345), format_change(0.0004)
    ('+110 %', '+5.7 %', '-35 %', '+1,234 %', '+0.0 %')
    """
    points = abs(100 * fraction)
    return percent(fraction, "+,.0f" if points >= 9.95 else "+.2g" if points >= 1 else "+.1f")


def percent(fraction: float, form: str = "") -> str:
    """Return a fraction in per cent with one decimal; only 1 is "100 %", and only 0 is "0.0 %".

    Args:
        form: Python format of the number, without these special cases.

    >>> percent(0.1234), percent(1), percent(0.9999), percent(0.0001), percent(1.5)
    ('12.3 %', '100 %', '99.9 %', '<0.1 %', '150.0 %')
    >>> percent(0.1234, ".0f"), percent(-0.05, "+.1f"), percent(1e-7, ".4g")
    ('12 %', '-5.0 %', '0.00001 %')
    """
    if form:
        number = f"{100 * fraction:{form}}"
        if "e" in number:
            from decimal import Decimal

            number = f"{Decimal(number):f}"
        return f"{number} %"
    if fraction == 1:
        return "100 %"
    if 0 < fraction < 0.001:
        return "<0.1 %"
    return f"{min(100 * fraction, 99.9) if fraction < 1 else 100 * fraction:.1f} %"


@lru_cache(maxsize=4096)  # for thousands of equal links
def format_count(value: float, digits: int = 3) -> str:
    """Return an average count without an exponent.

    >>> format_count(60_812.3), format_count(999.6), format_count(12.345), format_count(0.0), format_count(1234.56, 4)
    ('60,800', '1,000', '12.3', '0', '1,235')
    """
    text = f"{value:.{digits}g}"
    return text if abs(value) < 999.5 else f"{float(text):,.0f}"


def counted(value: float) -> str:
    """Return a count: whole numbers in full, others with three digits, and from ten million on with a prefix.

    >>> counted(1536), counted(46_721.3), counted(5.84), counted(115e6), counted(0.4321)
    ('1,536', '46,700', '5.84', '115 M', '0.432')
    """
    if abs(value) >= 1e7:
        return prefixed(value)
    return f"{value:,.0f}" if value == round(value) else format_count(value)


def pluralized(count: int, what: str) -> str:
    """Return a whole number with a noun in singular or plural.

    >>> pluralized(1, "step"), pluralized(2000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


@lru_cache(maxsize=4096, typed=True)  # derivations repeat the rates and constants of a part
def precise(value: float, unit: str, digits: int = 6) -> str:
    """Return a number of a derivation with enough digits to repeat the calculation.

    >>> precise(965.6e9, "FLOP/s"), precise(12e-6, "s"), precise(0.158, "%"), precise(1e6, "1"), precise(9e-11, "%")
    ('965.6 GFLOP/s', '12 us', '15.8 %', '1e6', '0.000000009 %')
    """
    if unit == "1":
        return f"{value:.{digits}g}".replace("e+0", "e").replace("e+", "e")
    if unit == "%":
        return percent(value, f".{digits}g")
    number, space, symbol = format_quantity(value, unit, digits).partition(" ")
    if "." in number and "e" not in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{space}{symbol}"


def natural(name: str) -> tuple[tuple[str | int, ...], str]:
    """Return a natural sorting key: gpu9 before gpu10.

    >>> sorted(["gpu10", "gpu9", "cpu"], key=natural)
    ['cpu', 'gpu9', 'gpu10']
    """
    return tuple(int(part) if index % 2 else part for index, part in enumerate(_RUN_OF_DIGITS.split(name))), name


def _digits(value: float, digits: int, power: int, *, keep: bool) -> str:
    """Format value / 10**power with `digits` significant digits, by moving the decimal point in the text."""
    mantissa, _, exponent = f"{abs(value):.{digits - 1}e}".partition("e")
    figures, point = mantissa.replace(".", ""), int(exponent) - power + 1
    if -3 <= point <= 7:
        padded = figures.rjust(len(figures) + max(0, 1 - point), "0").ljust(point, "0")
        point = max(point, 1)
        text = padded[:point] + ("." + padded[point:] if padded[point:] else "")
    else:
        if not keep and "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}e{point - 1}"
    if not keep and "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return ("-" if value < 0 else "") + text


@lru_cache(maxsize=1 << 16)
def family(name: str) -> str:
    """Return a name with * for the numbers of its devices.

    >>> family("slots:psw->gpu3"), family("node12.gpu0.compute"), family("pcie4.0")
    ('slots:psw->gpu*', 'node*.gpu*.compute', 'pcie*.0')
    """
    return _NUMBERED.sub("*", name)
