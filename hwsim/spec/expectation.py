"""Parser of expected results: `15 ms +- 1 %`, `at most 2 s`, `at least 400 1/s`, `9 ms .. 11 ms`."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from hwsim.records import dataclass
from hwsim.units import COUNT, Dimension, Quantity, UnitError, parse

_AT: Final = re.compile(r"at\s+(most|least)\s+(.+)", re.DOTALL)
_ABOUT: Final = re.compile(r"(.+?)\s*(?:\+-|±|\+/-)\s*(.+)", re.DOTALL)
_BETWEEN: Final = re.compile(r"(.+?)\s*\.\.\s*(.+)", re.DOTALL)
_FORMS: Final = "write '15 ms +- 1 %', 'at most 2 s', 'at least 400 1/s' or '9 ms .. 11 ms'"


@dataclass(frozen=True, slots=True)
class Expectation:
    """An interval of accepted results.

    Args:
        low, high: bounds in SI units, both included; infinite if there is none.
        dimension: dimension of the result.
        text: text of the expectation.
    """

    low: float
    high: float
    dimension: Dimension
    text: str

    def check(self, value: float) -> bool:
        """Return whether a value in SI units is inside the interval.

        >>> parse_expectation("15 ms +- 1 %").check(0.01505), parse_expectation("at most 2 s").check(2.5)
        (True, False)
        """
        return self.low <= value <= self.high

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=256, typed=True)
def parse_expectation(value: object) -> Expectation:
    """Parse an expectation; a whole number without tolerance is expected exactly. Raise UnitError if the text is invalid."""
    if not isinstance(value, str):
        if isinstance(value, int) and not isinstance(value, bool):
            return Expectation(float(value), float(value), COUNT, str(value))
        raise UnitError(f"the expectation {value} has no tolerance", _FORMS)
    text = " ".join(value.split())
    if match := _AT.fullmatch(text):
        bound = parse(match[2])
        return Expectation(*((-math.inf, bound.value) if match[1] == "most" else (bound.value, math.inf)), bound.dimension, text)
    if match := _ABOUT.fullmatch(text):
        middle, width = parse(match[1]), parse(match[2])
        if "%" in match[2] and "%" not in match[1]:
            width = Quantity(abs(middle.value) * width.value, middle.dimension)
        if not width.dimension.fits(middle.dimension):
            raise UnitError(f"'{text}' combines {middle.dimension.name} with a tolerance that is {width.dimension.name}", _FORMS)
        if width.value < 0:
            raise UnitError(f"'{text}' has a negative tolerance", _FORMS)
        return Expectation(middle.value - width.value, middle.value + width.value, middle.dimension, text)
    if match := _BETWEEN.fullmatch(text):
        low, high = parse(match[1]), parse(match[2])
        if not low.dimension.fits(high.dimension):
            raise UnitError(f"'{text}' goes from {low.dimension.name} to {high.dimension.name}", _FORMS)
        if low.value > high.value:
            raise UnitError(f"the lower limit of '{text}' is above the upper limit")
        return Expectation(low.value, high.value, low.dimension, text)
    if re.match(r"[<>=]", text):
        raise UnitError(f"expected a comparison in words, got '{text}'", _FORMS)
    raise UnitError(f"the expectation '{text}' has no tolerance", _FORMS)
