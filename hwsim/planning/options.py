"""Options of a plan: points with their numbers, first in closed form, then simulated, and the reasons for rejection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from hwsim.costs.amount import Amount
from hwsim.planning.reasons import Reason
from hwsim.planning.variants import PlanPoint
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.costs.cost import CostItem
    from hwsim.costs.machine_price import PricedItem
    from hwsim.models import TrainingStep
    from hwsim.planning.payments import OptionUse
    from hwsim.planning.training_screen import TrainingTotal
    from hwsim.results.interval import Interval
    from hwsim.results.work import WorkAmount

How = Literal["machine", "estimate", "simulation"]


@dataclass(frozen=True, slots=True)
class PlanOption:
    """An option: a point with its numbers and the constraints that it violates.

    Args:
        point: point of the search space.
        how: origin of the numbers: the machine only, an estimate in closed form, or a simulation.
        numbers: numbers by quantity key, in SI units, each with its interval.
        reasons: violated constraints.
        steps: training steps in closed form by workload: the fastest, then other plans that are nearly as fast.
        wholes: entire trainings by workload.
        work: amounts of work of the run, by workload.
        intervals: interval of the run time, by workload.
        plans: parallel plans as text, by workload.
        settings: the parallel plans as settings.
        searched: what became of the combinations of its parallel plan.
        axes: axes of the parallel plan that were searched.
        prices: prices behind the cost, largest first; options with the same prices share their errors.
        items: parts of the cost.
        use: time of use, prices and energy behind the cost; None without a cost.
        ratio: factor by which the closed-form step was corrected, from a nearby simulation.
        rank: rank of the plan among the estimates of this point.
        estimated: closed-form numbers that a simulation replaced.
        notes: remarks about the simulation.
    """

    point: PlanPoint
    how: How
    numbers: Mapping[str, Amount]
    reasons: tuple[Reason, ...] = ()
    steps: Mapping[str, tuple[TrainingStep, ...]] = field(default_factory=dict)
    wholes: Mapping[str, TrainingTotal] = field(default_factory=dict)
    work: Mapping[str, tuple[WorkAmount, ...]] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    plans: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    searched: Counter[str] = field(default_factory=Counter)
    axes: tuple[str, ...] = ()
    estimated: Mapping[str, Amount] = field(default_factory=dict)
    prices: tuple[PricedItem, ...] = ()
    items: tuple[CostItem, ...] = ()
    use: OptionUse | None = None
    ratio: float = 1.0
    rank: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether no violated constraint is known."""
        return not self.reasons

    def value(self, key: str) -> float | None:
        """Return the value of a number; None if it is unknown."""
        amount = self.numbers.get(key)
        return None if amount is None else amount.value


def option_key(workload: str, name: str) -> str:
    """Return the key of a number of a workload.

    >>> option_key("tune", "step"), option_key("", "step")
    ('tune.step', 'step')
    """
    return f"{workload}.{name}" if workload else name
