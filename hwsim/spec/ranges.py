"""Values to try: `1..512` (every whole number), `1..512:x2` (doubling), `1..512:log` (evenly on a logarithmic scale)."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.units import COUNT, Dimension, UnitError, parse

_STEPPED: Final = re.compile(r"\s*([\d.+-][^:]*\.\.[^:]*):\s*([\d.].*)", re.DOTALL)  # a step without its sign
_RANGE: Final = re.compile(r"\s*([^:]+?)\s*\.\.\s*([^:]+?)\s*(?::\s*(log|x[0-9.]+|\+.+))?\s*", re.DOTALL)
MAX_VALUES: Final = 100_000

Scale = Literal["linear", "times", "log"]


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included, in SI units; `step` is added (linear) or multiplied (times)."""

    low: float
    high: float
    scale: Scale
    step: float
    dimension: Dimension
    text: str

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return self.dimension.plain and self.low.is_integer() and self.high.is_integer() and "%" not in self.text

    def values(self, points: int = 10) -> tuple[float, ...]:
        """The values; `points` is how many a logarithmic range has (fewer if they fall on one whole number).

        >>> parse_range("1..512:x2").values()
        (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
        """
        if self.scale == "log":
            ratio = self.high / self.low
            values = [self.low * ratio ** (place / max(points - 1, 1)) for place in range(points)]
            values[-1] = self.high
        elif self.scale == "times":
            values, value = [], self.low
            while value <= self.high * (1 + 1e-12):
                values.append(value)
                value = self.low * self.step ** len(values)
        else:
            steps = math.floor((self.high - self.low) / self.step * (1 + 1e-12))
            values = [self.low + place * self.step for place in range(steps + 1)]
        if self.whole and (self.scale == "log" or float(self.step).is_integer()):
            return tuple(dict.fromkeys(round(value) for value in values))
        return tuple(values)


def is_range(text: object) -> bool:
    """Whether a text has the form of a range (names such as `gpu0..3` have not)."""
    if not isinstance(text, str) or len(text) > 200:
        return False
    match = _RANGE.fullmatch(text)
    return _STEPPED.fullmatch(text) is not None if match is None else match[1][:1] in set("0123456789.+-")


def parse_range(text: str, *, listed: bool = True) -> Range:
    """Read a range.

    listed: its values are to be listed, not only its ends.

    Raises:
        UnitError: the text is no range, its ends do not fit each other, or it has too many values.
    """
    match = _RANGE.fullmatch(text) if len(text) <= 200 else None
    if match is None and (stepped := _STEPPED.fullmatch(text[:200])) is not None:
        ends, step = stepped[1], stepped[2].strip()
        raise UnitError(f"'{text[:60]}' does not say what is done with {step:.20}", f"write '{ends}:+{step}' or '{ends}:x{step}'")
    if match is None:
        raise UnitError(f"'{text[:60]}' is not a range", "write '1..512', '1..512:x2', '0..512:+8' or '1..512:log'")
    high = parse(match[2])
    low = parse(match[1])
    if low.dimension.plain and not high.dimension.plain and "%" not in match[1]:
        raise UnitError(f"'{text}' has no unit at its lower end", f"write '{match[1]}{match[2].lstrip('0123456789.e+-')}'")
    if not low.dimension.fits(high.dimension):
        raise UnitError(f"'{text}' goes from {low.dimension.name} to {high.dimension.name}")
    if low.value > high.value:
        raise UnitError(f"'{text}' goes from the larger to the smaller")
    scale, step = _scale(text, match[3] or "", low.dimension)
    if listed and scale == "linear" and not match[3] and not low.dimension.plain:
        raise UnitError(f"'{text}' has no step", f"append a step: '{text}:x2', '{text}:log' or '{text}:+{match[1]}'")
    if scale != "linear" and low.value <= 0:
        raise UnitError(f"'{text}' has to begin above 0")
    if scale == "times" and math.log(high.value / low.value) / math.log(step) > MAX_VALUES:
        raise UnitError(f"'{text}' has more than {MAX_VALUES} values")
    if listed and scale == "linear" and (high.value - low.value) / step > MAX_VALUES:
        raise UnitError(f"'{text}' has more than {MAX_VALUES} values", f"write '{match[1]}..{match[2]}:x2'")
    return Range(low.value, high.value, scale, step, low.dimension if not low.dimension.plain else COUNT, text.strip())


def _scale(text: str, written: str, dimension: Dimension) -> tuple[Scale, float]:
    """The scale of a range and its step or factor, from the part after the colon: `log`, `x2`, `+8` or nothing."""
    if written == "log":
        return "log", 1.0
    if written[:1] == "x":
        factor = parse(written[1:]).value
        if factor <= 1:
            raise UnitError(f"'{text}' does not grow: the factor must be more than 1")
        return "times", factor
    if not written:
        return "linear", 1.0
    step = parse(written[1:])
    if not step.dimension.fits(dimension) or step.value <= 0:
        raise UnitError(f"'{text}' cannot be stepped by '{written[1:]}'")
    return "linear", step.value
