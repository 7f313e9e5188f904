"""Amounts of money, energy and power with their 90 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in SI units (USD, USD/s, J, W, kg) with its 90 % interval.

    Errors of added amounts are independent; n equal parts share one error.

    >>> Amount(10.0, 8.0, 12.0) * 3, (Amount(3.0, 0.0, 6.0) + Amount(4.0, 0.0, 8.0)).high
    (Amount(value=30.0, low=24.0, high=36.0), 12.0)
    """

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Amount:
        """Return an amount without uncertainty."""
        return cls(value, value, value)

    @classmethod
    def within(cls, value: float, part: float) -> Amount:
        """Return an amount with a relative error of `part`.

        >>> Amount.within(100.0, 0.25)
        Amount(value=100.0, low=75.0, high=125.0)
        """
        return cls(value, value * (1.0 - part), value * (1.0 + part))

    @property
    def half(self) -> float:
        """Half width of the interval of the logarithm; 0 if the lower end is 0."""
        return math.log(self.high / self.low) / 2 if self.low > 0 else 0.0

    def __add__(self, other: Amount) -> Amount:
        return total((self, other))

    def __mul__(self, factor: float) -> Amount:
        """Return the amount times a factor, with the same relative error."""
        ends = sorted((self.low * factor, self.high * factor))
        return Amount(self.value * factor, ends[0], ends[1])

    __rmul__ = __mul__

    def of(self, factor: Amount) -> Amount:
        """Return the product with a number that has an independent error.

        >>> Amount.within(100.0, 0.3).of(Amount.within(2.0, 0.4))
        Amount(value=200.0, low=100.0, high=300.0)
        """
        value = self.value * factor.value
        if value == 0:
            return Amount.exact(0.0) if not (self.high and factor.high) else Amount(0.0, 0.0, self.high * factor.high)
        below = math.hypot(1.0 - self.low / self.value, 1.0 - factor.low / factor.value)
        above = math.hypot(self.high / self.value - 1.0, factor.high / factor.value - 1.0)
        return Amount(value, value * max(0.0, 1.0 - below), value * (1.0 + above))

    def wider(self, half: float) -> Amount:
        """Return the amount with a further independent error of half width `half` (logarithm)."""
        return self.of(Amount(1.0, math.exp(-half), math.exp(half)))


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum of amounts; their errors add in squares.

    >>> total([])
    Amount(value=0.0, low=0.0, high=0.0)
    """
    summands = tuple(amounts)
    if len(summands) == 1:
        return summands[0]
    value = math.fsum(summand.value for summand in summands)
    below = math.hypot(*(amount.value - amount.low for amount in summands))
    above = math.hypot(*(amount.high - amount.value for amount in summands))
    return Amount(value, value - below, value + above)
