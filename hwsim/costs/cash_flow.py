"""Present values of payments over years of use, with growth and discounting; the break-even of buying against renting.

    machines in year y   ceil(machines (1 + growth)^y), added at the start of the year
    payment at time t    counts (1 + discount)^(-t / year)
    bought machine       its price when it is added and after each lifetime, less its value at the end: it falls linearly from
                         the price to `residual` x price over the lifetime
    rent and running     paid evenly over the time of use; a reservation over whole terms

Without growth and discount these are plain products of price and time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from hwsim.records import dataclass
from hwsim.units import YEAR

TINY = 1e-9


@dataclass(frozen=True, slots=True)
class CashFlow:
    """The growth and discount rate of a period of use.

    Args:
        growth: growth of the number of machines per year.
        discount: discount rate per year.
        machines: number of machines at the start, which grows in whole machines.
    """

    growth: float = 0.0
    discount: float = 0.0
    machines: int = 1

    def counts(self, seconds: float) -> list[int]:
        """Return the number of machines in each year of the period.

        >>> CashFlow(growth=0.2, machines=3).counts(3 * YEAR)
        [3, 4, 5]
        """
        years = max(1, math.ceil(seconds / YEAR - TINY))
        return [math.ceil(self.machines * (1.0 + self.growth) ** year - TINY) for year in range(years)]

    def discounted(self, start: float, seconds: float) -> float:
        """Return the present value of 1 USD/s paid for `seconds` from `start` on.

        >>> CashFlow().discounted(5.0, 7.0), round(CashFlow(discount=0.1).discounted(YEAR, YEAR) / YEAR, 4)
        (7.0, 0.8671)
        """
        rate = math.log1p(self.discount) / YEAR
        return math.exp(-rate * start) * -math.expm1(-rate * seconds) / rate if rate else seconds

    def _added(self, seconds: float) -> Iterator[tuple[float, float]]:
        """Yield (start, machines added / machines at the start) of each year."""
        for year, (before, now) in enumerate(pairwise([0, *self.counts(seconds)])):
            yield year * YEAR, (now - before) / self.machines

    def used(self, seconds: float, term: float = 0.0) -> float:
        """Return the present value of 1 USD/s for each machine at the start, paid while machines are used, or for whole terms."""
        return math.fsum(
            share * self.discounted(start, whole_terms(seconds - start, term)) for start, share in self._added(seconds)
        )

    def bought(self, seconds: float, lifetime: float, residual: float) -> float:
        """Return the present value of machines that are bought for 1 USD, for each machine at the start.

        >>> CashFlow().bought(YEAR, 4 * YEAR, 0.1), round(CashFlow(discount=0.1).bought(YEAR, 4 * YEAR, 0.0), 4)
        (0.225, 0.3182)
        """
        if not self.growth and not self.discount:
            return (1.0 - residual) * seconds / lifetime
        return math.fsum(share * self._owned(start, seconds, lifetime, residual) for start, share in self._added(seconds))

    def _owned(self, start: float, end: float, lifetime: float, residual: float) -> float:
        value = 0.0
        while start < end:
            age = min(lifetime, end - start)
            sold = (1.0 - (1.0 - residual) * age / lifetime) * (1.0 + self.discount) ** (-(start + age) / YEAR)
            value += (1.0 + self.discount) ** (-start / YEAR) - sold
            start += age
        return value

    def break_even(self, price: float, running: float, rent: float) -> float | None:
        """Return the time of use after which a machine that keeps no value was cheaper to buy (seconds); None: never.

        Args:
            price: purchase price (USD).
            running: energy and hosting of the bought machine (USD/s).
            rent: rent of the same machine (USD/s).

        >>> CashFlow().break_even(100.0, 1.0, 3.0), CashFlow().break_even(100.0, 3.0, 3.0)
        (50.0, None)
        """
        rate = math.log1p(self.discount) / YEAR
        if rent <= running or rate * price >= rent - running:
            return None
        plain = price / (rent - running)
        return -math.log1p(-rate * plain) / rate if rate else plain


def whole_terms(seconds: float, term: float) -> float:
    """Return a time in whole terms; the time itself without a term.

    >>> whole_terms(25.0, 10.0), whole_terms(25.0, 0.0)
    (30.0, 25.0)
    """
    return seconds if term <= 0 else math.ceil(seconds / term * (1 - 1e-12)) * term
