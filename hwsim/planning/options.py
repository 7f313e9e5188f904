"""Options: points of a plan with their numbers, first in closed form, then simulated, and the reasons why they are no answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from hwsim.costs.amount import Amount
from hwsim.planning.reasons import Reason
from hwsim.planning.variants import Point
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.costs.cost import CostItem
    from hwsim.costs.pricing import PricedItem
    from hwsim.models import Step
    from hwsim.planning.trainings import Whole
    from hwsim.results.interval import Interval
    from hwsim.results.work import Work

How = Literal["machine", "estimate", "simulation"]


@dataclass(frozen=True, slots=True)
class Option:
    """A point with what is known of it.

    Args:
        how: what its numbers come from; of a machine alone nothing is known of its runs.
        numbers: by the key of their quantity, in SI units, each with the range that it is known in.
        reasons: constraints that it breaks.
        steps: by workload, of trainings: the step in closed form, then steps of other plans that are nearly as fast; wholes.
        work: amounts of work of the run of each workload. intervals: how sure its time is.
        plans: parallel plans in words, by workload; settings: the same as settings.
        tried: parallel plans that were looked at; left: axes of plans that were not (`hwsim.models.search.left_at_one`).
        prices: that its cost comes from, the dearest first; options that have them alike share their errors.
        items: what its cost adds up from.
        ratio: by which the closed form was corrected, as a simulation next to it was slower; rank: place of its plan by estimate.
        estimated: numbers in closed form, where a simulation has replaced them.
        notes: what a reader has to know of its simulation.
    """

    point: Point
    how: How
    numbers: Mapping[str, Amount]
    reasons: tuple[Reason, ...] = ()
    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    wholes: Mapping[str, Whole] = field(default_factory=dict)
    work: Mapping[str, tuple[Work, ...]] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    plans: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    tried: int = 0
    left: Mapping[str, bool] = field(default_factory=dict)
    estimated: Mapping[str, Amount] = field(default_factory=dict)
    prices: tuple[PricedItem, ...] = ()
    items: tuple[CostItem, ...] = ()
    ratio: float = 1.0
    rank: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether no constraint is broken as far as is known."""
        return not self.reasons

    def value(self, key: str) -> float | None:
        """A number, None if it is not known."""
        amount = self.numbers.get(key)
        return None if amount is None else amount.value


def keyed(workload: str, name: str) -> str:
    """The key of a number of a workload.

    >>> keyed("tune", "step"), keyed("", "step")
    ('tune.step', 'step')
    """
    return f"{workload}.{name}" if workload else name
