"""Names of collective operations and groups of ranks, shared by libraries, algorithms and ops."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, Literal, get_args

from hwsim.records import dataclass
from hwsim.spec.mistakes import HintedError

Operation = Literal[
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "barrier",
    "send",
]
OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)
MAX_SENDS: Final = 2_000_000  # maximum sends of a collective that is simulated send by send


class CannotCollect(HintedError):
    """An error for an operation that an algorithm does not support, or not among these ranks; `hint` names an alternative."""


@dataclass(frozen=True, slots=True)
class RankGroup:
    """A group of ranks; `nodes` are the numbers of consecutive ranks in each node.

    Rank 0 is the root of broadcast, reduce, gather and scatter; for another root, the caller reorders the ranks.

    >>> RankGroup(8, (4, 4)).starts
    (0, 4)
    """

    ranks: int
    nodes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.ranks < 1 or any(size < 1 for size in self.nodes):
            raise CannotCollect("expected at least one rank, and at least one rank per node")
        if self.nodes and sum(self.nodes) != self.ranks:  # integers
            raise CannotCollect(f"the nodes have {sum(self.nodes)} ranks in total, the group {self.ranks}")  # integers

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of ranks in each node; by default one node with all ranks."""
        return self.nodes or (self.ranks,)

    @property
    def starts(self) -> tuple[int, ...]:
        """Index of the first rank of each node."""
        return (0, *accumulate(self.sizes[:-1]))
