"""The figure of a study as data, and the scales of its axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.units import parse
from hwsim.views.kit.table import BINARY

WIDE: Final = 100.0  # largest / smallest value above which an axis is logarithmic
BITS: Final = "b/s"  # unit of network links
FAR: Final = 1000.0  # largest / smallest value from which each tick has its own unit


@dataclass(frozen=True, slots=True)
class StudyCurve:
    """A line of a study.

    Args:
        label: label.
        values: measure at each value; None if missing.
    """

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Curves:
    """The figure of a study.

    Args:
        title: title.
        across: quantity of the values.
        unit: SI unit of the values; "" for plain numbers.
        numbers: values; empty if they are names.
        names: values as texts.
        legend: quantities that distinguish the lines.
        lines: lines.
        measure: compared quantity.
        measure_unit: SI unit of the measure; "" for plain numbers.
        binary: whether the values are in KiB, MiB, ...
        below: line below the title, with the names of the runs.
        limits: bottleneck at each value of a single line.
        perfect: measure at each value with linear scaling.
    """

    title: str
    across: str
    unit: str
    numbers: tuple[float, ...]
    names: tuple[str, ...]
    legend: str
    lines: tuple[StudyCurve, ...]
    measure: str = "time"
    measure_unit: str = "s"
    binary: bool = False
    below: str = ""
    limits: tuple[str, ...] = ()
    perfect: tuple[float, ...] = ()

    @property
    def order(self) -> list[int]:
        """Indices of the values in ascending order."""
        return sorted(range(len(self.numbers)), key=lambda place: self.numbers[place])

    @property
    def has_own_units(self) -> bool:
        """Whether the values span too large a range for one unit."""
        return self.unit != "" and min(self.numbers) > 0 and max(self.numbers) / min(self.numbers) >= FAR

    @property
    def across_by(self) -> tuple[float, str]:
        """(divisor, unit) of the values on their axis."""
        return (1.0, "") if self.has_own_units else scaled(self.numbers, self.unit, binary=self.binary)

    @property
    def every(self) -> list[float]:
        """All values of the lines."""
        return [value for line in self.lines for value in line.values if value is not None] + list(self.perfect)


def logarithmic(values: Iterable[float]) -> bool:
    """Return whether an axis should be logarithmic: more than a factor of 100, or constant ratios.

    >>> logarithmic([1, 2, 4, 8]), logarithmic([1, 2, 3, 4]), logarithmic([1, 1000]), logarithmic([0, 1000])
    (True, False, True, False)
    """
    ordered = sorted(set(values))
    if len(ordered) < 2 or ordered[0] <= 0:
        return False
    ratios = [high / low for low, high in pairwise(ordered)]
    return ordered[-1] / ordered[0] > WIDE or (len(ordered) > 3 and max(ratios) < min(ratios) * 1.01)


def scaled(values: Sequence[float], unit: str, *, binary: bool = False) -> tuple[float, str]:
    """Return (divisor, unit) of an axis, from its largest value.

    >>> scaled([1e9, 16e9], "B/s"), scaled([0.015], "s"), scaled([3.0], "")
    ((1000000000.0, 'GB/s'), (0.001, 'ms'), (1.0, ''))
    >>> scaled([65536.0, 131072.0], "B", binary=True), scaled([100e9, 800e9], "b/s"), scaled([8.0, 128.0], "s")
    ((1024.0, 'KiB'), (1000000000.0, 'Gb/s'), (1.0, 's'))
    """
    if not unit or not values or max(values) <= 0:
        return 1.0, unit
    if binary and unit == "B" and max(values) >= 1024:
        return next((float(size), name) for size, name in BINARY if max(values) >= size)
    if unit == BITS:
        shown = format_quantity(min(filter(None, values)), "B/s").partition(" ")[2].replace("B", "b")
        return 8.0 * parse(f"1 {shown}").value, shown
    symbol = format_quantity(max(values), unit).partition(" ")[2]
    if unit == "s" and min(values) < parse(f"1 {symbol}").value and parse(f"1 {symbol}").value > 1.0:
        return 1.0, "s"  # fractions of a minute are hard to read
    return parse(f"1 {symbol}").value, symbol
