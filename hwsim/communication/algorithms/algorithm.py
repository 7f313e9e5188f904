"""The parent of every algorithm: it gives a plan, and what follows from the plan unless the algorithm knows a shorter way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from hwsim.communication.plan import Group, Operation, Plan
from hwsim.communication.rounds import Round, rounds_of
from hwsim.spec.mistakes import Problem

Presets = Mapping[str, Mapping[str, Any]]


class Algorithm(ABC):
    """An algorithm is a frozen dataclass; its fields are the keys that a workload may give.

    Args:
        kind: name of the algorithm in a workload, and of its file.
        operations: collectives that it does.
        presets: keys behind each name that a workload may give alone; None: the name of the kind, with no keys.
    """

    __slots__ = ()

    kind: ClassVar[str]
    operations: ClassVar[tuple[Operation, ...]]
    presets: ClassVar[Presets | None] = None

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of keys that cannot be; none beyond the bounds of the fields."""
        yield from ()

    @abstractmethod
    def plan(self, operation: Operation, group: Group) -> Plan:
        """The sends, chunk by chunk; `execute.prove` shows that they are right."""

    def rounds(self, operation: Operation, group: Group) -> tuple[Round, ...]:
        """The plan as equal steps and shares of the bytes."""
        return rounds_of(self.plan(operation, group))

    def weighted(self, operation: Operation, group: Group, weights: Sequence[float]) -> tuple[Round, ...]:
        """The rounds with the ranks' parts in these proportions."""
        return rounds_of(self.plan(operation, group), weights)

    def repeated_steps(self, operation: Operation, group: Group) -> tuple[Round, ...] | None:  # noqa: ARG002
        """The rounds if each is as many equal steps of the plan, without a pipeline that fills and empties; else None.

        In such a plan every send waits for what both its ends did in their steps before. So the chunks need not be followed.
        """
        return None

    def in_flight(self, group: Group) -> int:  # noqa: ARG002
        """Pieces that pass through the rounds one behind the other; 1 if the rounds follow one another."""
        return 1
