"""Operations and groups of collectives: the words that libraries, algorithms and ops share."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, Literal, get_args

from hwsim.records import dataclass
from hwsim.spec.mistakes import Hinted

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
MOST_SENDS: Final = 2_000_000  # of a collective that are written out one by one


class CannotCollect(Hinted):
    """An algorithm does not do this operation, or not among these ranks; `hint` says what would do."""


@dataclass(frozen=True, slots=True)
class Group:
    """Number of ranks, and of ranks in each node, consecutively.

    Rank 0 is the root of broadcast, reduce, gather and scatter: another root is another order of the ranks.

    >>> Group(8, (4, 4)).starts
    (0, 4)
    """

    ranks: int
    nodes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.ranks < 1 or any(size < 1 for size in self.nodes):
            raise CannotCollect("a collective needs at least one rank, and a node at least one")
        if self.nodes and sum(self.nodes) != self.ranks:  # integers
            raise CannotCollect(f"nodes of {sum(self.nodes)} ranks in all, but {self.ranks} ranks")  # integers

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ranks of each node; all in one if nothing is said."""
        return self.nodes or (self.ranks,)

    @property
    def starts(self) -> tuple[int, ...]:
        """First rank of each node."""
        return (0, *accumulate(self.sizes[:-1]))
