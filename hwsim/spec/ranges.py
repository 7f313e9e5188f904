"""Ranges of values: `1..512` (every whole number), `1..512:x2` (doubling), `1..512:log` (even on a logarithmic scale)."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.units import COUNT, Dimension, UnitError, parse

_STEPPED: Final = re.compile(r"\s*([\d.+-][^:]*\.\.[^:]*):\s*([\d.].*)", re.DOTALL)  # a step without + or x
_RANGE: Final = re.compile(r"\s*([^:]+?)\s*\.\.\s*([^:]+?)\s*(?::\s*(log|x[0-9.]+|\+.+))?\s*", re.DOTALL)
MAX_VALUES: Final = 100_000  # values of a range

Scale = Literal["linear", "times", "log"]


@dataclass(frozen=True, slots=True)
class Range:
    """A range from `low` to `high`, both included, in SI units; `step` is an increment (linear) or a factor (times)."""

    low: float
    high: float
    scale: Scale
    step: float
    dimension: Dimension
    text: str

    @property
    def whole(self) -> bool:
        """Whether the values are whole numbers."""
        return self.dimension.plain and self.low.is_integer() and self.high.is_integer() and "%" not in self.text

    def values(self, points: int = 10) -> tuple[float, ...]:
        """Return the values; a logarithmic range has `points` values, or fewer if whole numbers coincide.

        >>> parse_range("1..512:x2").values()
        (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
        """
        if self.scale == "log":
            ratio = self.high / self.low
            values = [self.low * ratio ** (index / max(points - 1, 1)) for index in range(points)]
            values[-1] = self.high
        elif self.scale == "times":
            values, value = [], self.low
            while value <= self.high * (1 + 1e-12):
                values.append(value)
                value = self.low * self.step ** len(values)
        else:
            steps = math.floor((self.high - self.low) / self.step * (1 + 1e-12))
            values = [self.low + index * self.step for index in range(steps + 1)]
        if self.whole and (self.scale == "log" or float(self.step).is_integer()):
            return tuple(dict.fromkeys(round(value) for value in values))
        return tuple(values)


def is_range(text: object) -> bool:
    """Return whether a text has the form of a range; names such as `gpu0..3` do not."""
    if not isinstance(text, str) or len(text) > 200:
        return False
    match = _RANGE.fullmatch(text)
    return _STEPPED.fullmatch(text) is not None if match is None else match[1][:1] in set("0123456789.+-")


def parse_range(text: str, *, listed: bool = True) -> Range:
    """Parse a range.

    Args:
        listed: whether all values are needed, not only the limits.

    Raises:
        UnitError: the text is not a range, its limits have different dimensions, or it has too many values.
    """
    match = _RANGE.fullmatch(text) if len(text) <= 200 else None
    if match is None and (stepped := _STEPPED.fullmatch(text[:200])) is not None:
        ends, step = stepped[1], stepped[2].strip()
        raise UnitError(f"the step {step:.20} of '{text[:60]}' needs + or x", f"write '{ends}:+{step}' or '{ends}:x{step}'")
    if match is None:
        raise UnitError(f"'{text[:60]}' is not a range", "write '1..512', '1..512:x2', '0..512:+8' or '1..512:log'")
    high = parse(match[2])
    low = parse(match[1])
    if low.dimension.plain and not high.dimension.plain and "%" not in match[1]:
        raise UnitError(f"the lower limit of '{text}' has no unit", f"write '{match[1]}{match[2].lstrip('0123456789.e+-')}'")
    if not low.dimension.fits(high.dimension):
        raise UnitError(f"'{text}' goes from {low.dimension.name} to {high.dimension.name}")
    if low.value > high.value:
        raise UnitError(f"the lower limit of '{text}' is above the upper limit")
    scale, step = _scale(text, match[3] or "", low.dimension)
    if listed and scale == "linear" and not match[3] and not low.dimension.plain:
        raise UnitError(f"'{text}' has no step", f"append a step: '{text}:x2', '{text}:log' or '{text}:+{match[1]}'")
    if scale != "linear" and low.value <= 0:
        raise UnitError(f"the lower limit of '{text}' must be above 0")
    if scale == "times" and math.log(high.value / low.value) / math.log(step) > MAX_VALUES:
        raise UnitError(f"'{text}' has more than {MAX_VALUES:,} values")
    if listed and scale == "linear" and (high.value - low.value) / step > MAX_VALUES:
        raise UnitError(f"'{text}' has more than {MAX_VALUES:,} values", f"write '{match[1]}..{match[2]}:x2'")
    return Range(low.value, high.value, scale, step, low.dimension if not low.dimension.plain else COUNT, text.strip())


def _scale(text: str, written: str, dimension: Dimension) -> tuple[Scale, float]:
    """The scale of a range and its step or factor, from the part after the colon: `log`, `x2`, `+8` or nothing."""
    if written == "log":
        return "log", 1.0
    if written[:1] == "x":
        factor = parse(written[1:]).value
        if factor <= 1:
            raise UnitError(f"the factor of '{text}' must be more than 1")
        return "times", factor
    if not written:
        return "linear", 1.0
    step = parse(written[1:])
    if not step.dimension.fits(dimension) or step.value <= 0:
        raise UnitError(f"the step '{written[1:]}' of '{text}' must be positive and have the unit of the limits")
    return "linear", step.value
