"""A user-defined plan: steps of sends, executed on integers before they are timed.

    operation: all-reduce
    ranks: 2
    chunks: 1
    steps:
      - [{from: 0, to: 1, chunk: 0, reduce: true}]
      - [{from: 1, to: 0, chunk: 0}]

Sends of one step are simultaneous. With `reduce`, the receiver adds the chunk to its own; without it, the chunk replaces its own.
Source: the workload's author.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hwsim.communication.algorithms.algorithm import Algorithm, Presets
from hwsim.communication.execute import WrongCollectivePlan, prove
from hwsim.communication.plan import CannotCollect, CollectivePlan, Operation, PlanSend, RankGroup
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem


@dataclass(frozen=True, slots=True)
class UserPlanSend:
    """A send of one step."""

    source: int = field("sending rank", key="from", minimum=0)
    target: int = field("receiving rank", key="to", minimum=0)
    chunk: int = field("index of the first chunk sent", minimum=0)
    count: int = field("number of chunks sent", default=1, minimum=1)
    reduce: bool = field("the receiver adds the chunk to its own; false: it replaces its own", default=False)


@dataclass(frozen=True, slots=True)
class UserPlan(Algorithm):
    """A user-defined plan for one operation and one number of ranks."""

    kind: ClassVar[str] = "written"
    presets: ClassVar[Presets | None] = {}

    operation: Operation = field("collective that the plan performs")
    ranks: int = field("number of ranks", minimum=1)
    chunks: int = field("number of equal chunks of the buffer; an all-to-all has ranks x ranks chunks", minimum=1)
    steps: tuple[tuple[UserPlanSend, ...], ...] = field("sends of each step, which start simultaneously")

    @property
    def operations(self) -> tuple[Operation, ...]:  # type: ignore[override]
        """The operation of the plan."""
        return (self.operation,)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) if the plan does not complete its operation."""
        try:
            prove(self._plan())
        except WrongCollectivePlan as error:
            yield "steps", str(error), f"after the last step, {self.operation} must be complete on every rank"

    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the plan.

        Raises:
            CannotCollect: another operation or number of ranks.
        """
        if (operation, group.ranks) != (self.operation, self.ranks):
            raise CannotCollect(
                f"expected a plan for {operation} among {group.ranks} ranks, got one for {self.operation} among {self.ranks}"
            )
        return self._plan()

    def _plan(self) -> CollectivePlan:
        sends = [
            PlanSend(step, send.source, send.target, send.chunk, send.count, send.reduce)
            for step, together in enumerate(self.steps)
            for send in together
        ]
        return CollectivePlan(self.operation, self.ranks, self.chunks, tuple(sends))
