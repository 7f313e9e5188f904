"""Base class of algorithms: a plan, and derived data that an algorithm may compute faster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hwsim.communication.plan import CollectivePlan, Operation, RankGroup
from hwsim.communication.rounds import Round, rounds_of
from hwsim.spec.mistakes import Problem

Presets = Mapping[str, Mapping[str, Any]]


class Algorithm(ABC):
    """A collective algorithm, a frozen dataclass whose fields are its keys in a workload.

    Args:
        kind: name of the algorithm in a workload.
        operations: supported collectives.
        presets: keys for each name that a workload may use alone; None: the name of the kind, without keys.
    """

    __slots__ = ()

    kind: ClassVar[str]
    operations: ClassVar[tuple[Operation, ...]]
    presets: ClassVar[Presets | None] = None

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting beyond the bounds of the fields."""
        yield from ()

    @abstractmethod
    def plan(self, operation: Operation, group: RankGroup) -> CollectivePlan:
        """Return the sends, chunk by chunk; `execute.prove` verifies them."""

    def rounds(self, operation: Operation, group: RankGroup) -> tuple[Round, ...]:
        """Return the plan as equal steps and shares of the bytes."""
        return rounds_of(self.plan(operation, group))

    def weighted(self, operation: Operation, group: RankGroup, weights: Sequence[float]) -> tuple[Round, ...]:
        """Return the rounds with these relative parts of the ranks."""
        return rounds_of(self.plan(operation, group), weights)

    def repeated_steps(self, operation: Operation, group: RankGroup) -> tuple[Round, ...] | None:  # noqa: ARG002
        """Return the rounds if each consists of equal steps of the plan, without filling a pipeline; else None.

        In such a plan, every send waits for the previous steps of both ends, so chunks need not be tracked.
        """
        return None

    def in_flight(self, group: RankGroup) -> int:  # noqa: ARG002
        """Return the pieces that are pipelined through the rounds; 1 if the rounds are consecutive."""
        return 1
