"""The result of a sensitivity analysis: bars, errors with the value of measuring them, break-even values and prices."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from hwsim.costs.amount import Amount
from hwsim.records import dataclass
from hwsim.results.ratio import Ratio
from hwsim.sensitivities.tornado import Bar
from hwsim.spec import Warning
from hwsim.studies.measures import Measure
from hwsim.views.kit.shown import Drawn


@dataclass(frozen=True, slots=True)
class Doubt:
    """An error of the answer, and what would be left if it were measured.

    Args:
        share: its part of the variance.
        half: half width of the interval without it, as a logarithm.
        wrong: probability of a wrong choice without it, on average; None where nothing is chosen.
    """

    name: str
    share: float
    half: float
    wrong: float | None


@dataclass(frozen=True, slots=True)
class Break:
    """A value at which the order of two options changes.

    Args:
        name: the number of B; factor: its value there over its value in the file; written: the number there, with its unit.
    """

    name: str
    factor: float
    written: str


@dataclass(frozen=True, slots=True)
class Worth:
    """Prices of two options, and the price of B at which both cost the same for the same work.

    Args:
        way: "purchase" or "on_demand".
        prices: both machines, USD or USD a second.
        factor: price of B there over its price.
    """

    way: str
    prices: tuple[Amount, Amount]
    factor: float


@dataclass(frozen=True)
class Sensitivity(Drawn):
    """Uncertain inputs by their effect on a result, or on the choice between two options.

    Args:
        titles: workload and machine of each option.
        measure: the number; values: of each option.
        answer: the value, or how many times as good B is as A.
        half: half width of its 90 % interval, as a logarithm; None where nothing says how sure it is.
        ends: of that interval, which may lie unlike far from the answer; it alone where there is none.
        bars: numbers and errors that move the answer, the longest first.
        doubts: errors of the answer, the largest first; empty where it has no interval.
        wrong: probability that the option that looks better is not; None with one option.
        idle: numbers that move nothing; runs: simulations.
        settings: paths and values of `set` in each option.
    """

    titles: tuple[tuple[str, str], ...]
    measure: Measure
    values: tuple[float, ...]
    answer: float
    half: float | None
    ends: tuple[float, float]
    is_outside: bool
    bars: tuple[Bar, ...]
    doubts: tuple[Doubt, ...]
    wrong: float | None
    breaks: tuple[Break, ...]
    unbroken: tuple[str, ...]
    worth: tuple[Worth, ...]
    unpriced: tuple[str, ...]
    idle: int
    runs: int
    warnings: tuple[Warning, ...]
    settings: tuple[tuple[tuple[str, str], ...], ...]
    TABLE: ClassVar = "bars"
    COLUMNS: ClassVar = ("name", "at_low", "at_high", "range", "source")

    @property
    def is_choice(self) -> bool:
        """Whether there are two options."""
        return len(self.titles) == 2

    @cached_property
    def over(self) -> Ratio | None:
        """The answer of a choice with its range."""
        return Ratio(self.answer, self.half, self.is_outside) if self.is_choice and self.half is not None else None

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: sensitivity/1`."""
        from hwsim.sensitivities.say import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The tornado."""
        from hwsim.sensitivities.say import drawn
        from hwsim.views.bars import draw

        return draw.render(drawn(self), suffix)

    def text(self, *, verbose: bool = False) -> str:
        """What to measure first, then the tornado; verbose: every input that moves the answer."""
        from hwsim.sensitivities.say import text

        return text(self, verbose=verbose)

    def __str__(self) -> str:
        return self.text()
