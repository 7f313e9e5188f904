"""The collectives as ops; `bytes` of each are what nccl-tests count.

    allgather: {among: gpu*, bytes: 160 MB}
    allreduce: {among: gpu*, bytes: 160 MB, algorithm: ring}
    alltoall: {among: gpu*, bytes: 64 MB, algorithm: pairwise}
    alltoall: {among: gpu0..2, bytes: 64 MB, matrix: [[1, 1, 4], [1, 1, 4], [1, 1, 4]]}     # all have most for the third
    broadcast: {among: gpu*, bytes: 160 MB, root: gpu0}
    gather: {among: gpu*, bytes: 160 MB, root: gpu0, algorithm: direct}
    reduce-scatter: {among: gpu*, bytes: 160 MB}
    scatter: {among: gpu*, bytes: 160 MB, root: gpu0, algorithm: direct}
    collective: {operation: reduce, among: gpu*, bytes: 1 GB, root: gpu0}

| op | bytes |
|---|---|
| allreduce | the array that each member has |
| allgather, reduce-scatter, gather, scatter | all parts together |
| alltoall | what one member holds before it |
| broadcast | what the root has |
| collective | as the op of its operation; of a reduction, what each member has |

With `overlaps: backward`, an op in pieces, the gradients of each piece are exchanged as soon as the piece has ended. `collective`
is any of them by its operation: also the reduction to one device, and the barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp, RootedOp
from hwsim.ops.op import CannotPlace
from hwsim.records import dataclass
from hwsim.spec import field


def _op(parent: type[ExchangeOp], kind: str, operation: Operation, meaning: str) -> type[ExchangeOp]:
    members = {"__module__": __name__, "__doc__": meaning, "kind": kind, "does": operation}
    op: type[ExchangeOp] = dataclass(frozen=True, slots=True, kw_only=True)(
        type(kind.title().replace("-", ""), (parent,), members)
    )
    return op


Allgather = _op(ExchangeOp, "allgather", "all-gather", "Every member ends with the parts of all.")
Allreduce = _op(ExchangeOp, "allreduce", "all-reduce", "Every member ends with the sum of what all have.")
Broadcast = _op(RootedOp, "broadcast", "broadcast", "Copy the root's data to all ranks.")
Gather = _op(RootedOp, "gather", "gather", "The parts of all come to the root.")
ReduceScatter = _op(ExchangeOp, "reduce-scatter", "reduce-scatter", "Every member ends with its part of the sum.")
Scatter = _op(RootedOp, "scatter", "scatter", "The root sends each member its part.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alltoall(ExchangeOp):
    """Every member sends each other one its own part, as experts of a mixture do with tokens."""

    kind: ClassVar[str] = "alltoall"
    does: ClassVar[Operation] = "all-to-all"

    matrix: tuple[tuple[float, ...], ...] = field(
        "the parts in proportion, a row for each sender with a number for each receiver; `bytes` are the mean of the rows",
        default=(),
        minimum=0,
        example="[[0, 3], [1, 0]]",
    )

    @property
    def weights(self) -> tuple[float, ...]:
        return tuple(each for row in self.matrix for each in row) or self.skew

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        """The members; raises CannotPlace for a matrix that does not have a row and a column for each."""
        if self.matrix and self.skew:
            raise CannotPlace("an all-to-all has a `matrix` or a `skew`, not both", "`skew` is what each rank sends")
        if self.matrix and {len(self.matrix), *map(len, self.matrix)} != {len(members)}:
            wrong = next((row for row in self.matrix if len(row) != len(members)), self.matrix[0])
            message = f"the matrix has {len(self.matrix)} rows, one of {len(wrong)} numbers, for {len(members)} members"
            raise CannotPlace(message, "a row for each sender, with a number for each receiver")
        if self.matrix and not any(map(any, self.matrix)):
            raise CannotPlace("the matrix is all zeros", "a number for each pair that exchanges anything")
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(RootedOp):
    """`operation` among devices."""

    kind: ClassVar[str] = "collective"
    does: ClassVar[Operation] = "all-reduce"

    named: Operation = field("what it does", key="operation")

    @property
    def operation(self) -> Operation:
        """The operation it does."""
        return self.named
