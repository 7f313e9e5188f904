"""The result of a sensitivity analysis: bars, errors with the value of measuring them, break-even values and prices."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from hwsim.costs.amount import Amount
from hwsim.records import dataclass
from hwsim.results.ratio import Ratio
from hwsim.sensitivities.tornado import TornadoBar
from hwsim.spec import Warning
from hwsim.studies.measures import StudyMeasure
from hwsim.views.kit.answer_forms import FigureAnswer


@dataclass(frozen=True, slots=True)
class UncertaintyShare:
    """A source of uncertainty, and the interval that remains if it is measured.

    Args:
        name: name of the error.
        share: share of the variance.
        half: half width of the interval without it, as a logarithm.
        wrong: average probability of a wrong choice without it; None with one option.
    """

    name: str
    share: float
    half: float
    wrong: float | None


@dataclass(frozen=True, slots=True)
class BreakEvenValue:
    """A break-even value, at which the order of two options changes.

    Args:
        name: input of B.
        factor: break-even value over the value in the file.
        written: break-even value with unit.
    """

    name: str
    factor: float
    written: str


@dataclass(frozen=True, slots=True)
class BreakEvenPrice:
    """The prices of two options, and the break-even price of B, at which the same work costs the same on both.

    Args:
        way: "purchase" or "on_demand".
        prices: prices of both machines (USD or USD/s).
        factor: break-even price of B over its price.
        unlike: reason why the prices cannot be compared; "" if they can.
    """

    way: str
    prices: tuple[Amount, Amount]
    factor: float
    unlike: str = ""


@dataclass(frozen=True)
class Sensitivity(FigureAnswer):
    """Uncertain inputs by their effect on a result, or on the choice between two options.

    Args:
        titles: workload and machine of each option.
        measure: measure.
        values: measure of each option.
        answer: the measure, or the factor by which B is better than A.
        half: half width of its 90 % interval, as a logarithm; None if unknown.
        ends: ends of the interval, which may be asymmetric; the answer itself without an interval.
        is_outside: whether an option is extrapolated beyond all measurements.
        bars: inputs and errors with an effect, longest first.
        doubts: sources of uncertainty, largest first; empty without an interval.
        wrong: probability that the apparently better option is worse; None with one option.
        breaks: break-even values.
        unbroken: inputs without a break-even value.
        worth: break-even prices.
        unpriced: machines without a price.
        idle: number of inputs without effect.
        runs: number of simulations.
        warnings: warnings of the runs.
        settings: (path, value) of each setting, by option.
    """

    titles: tuple[tuple[str, str], ...]
    measure: StudyMeasure
    values: tuple[float, ...]
    answer: float
    half: float | None
    ends: tuple[float, float]
    is_outside: bool
    bars: tuple[TornadoBar, ...]
    doubts: tuple[UncertaintyShare, ...]
    wrong: float | None
    breaks: tuple[BreakEvenValue, ...]
    unbroken: tuple[str, ...]
    worth: tuple[BreakEvenPrice, ...]
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
        """The ratio of two options with its interval; None with one option or without an interval."""
        return Ratio(self.answer, self.half, self.is_outside) if self.is_choice and self.half is not None else None

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: sensitivity/2`."""
        from hwsim.sensitivities.say import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Render the tornado."""
        from hwsim.sensitivities.say import drawn
        from hwsim.views.bars import draw

        return draw.render(drawn(self), suffix)

    def text(self, *, verbose: bool = False) -> str:
        """Return the measurements that narrow the interval, and the tornado; verbose: all inputs with an effect."""
        from hwsim.sensitivities.say import text

        return text(self, verbose=verbose)

    def __str__(self) -> str:
        return self.text()
