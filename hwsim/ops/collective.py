"""Collectives as ops; `bytes` has the meaning of the message size in nccl-tests.

    allgather: {among: gpu*, bytes: 160 MB}
    allreduce: {among: gpu*, bytes: 160 MB, algorithm: ring}
    alltoall: {among: gpu*, bytes: 64 MB, algorithm: pairwise}
    alltoall: {among: gpu0..2, bytes: 64 MB, matrix: [[1, 1, 4], [1, 1, 4], [1, 1, 4]]}     # all ranks send most to the third
    broadcast: {among: gpu*, bytes: 160 MB, root: gpu0}
    gather: {among: gpu*, bytes: 160 MB, root: gpu0, algorithm: direct}
    reduce-scatter: {among: gpu*, bytes: 160 MB}
    scatter: {among: gpu*, bytes: 160 MB, root: gpu0, algorithm: direct}
    collective: {operation: reduce, among: gpu*, bytes: 1 GB, root: gpu0}

| op | bytes |
|---|---|
| allreduce | array of one rank |
| allgather, reduce-scatter, gather, scatter | all parts together |
| alltoall | array that one rank sends |
| broadcast | array of the root |
| collective | as for the op of the same operation; for reduce, the array of one rank |

With `overlaps: backward`, where `backward` is an op in pieces, the gradients of each piece are exchanged when the piece ends.
`collective` is any collective, selected by `operation`; only it offers reduce and barrier.
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


Allgather = _op(ExchangeOp, "allgather", "all-gather", "Every rank receives the parts of all ranks.")
Allreduce = _op(ExchangeOp, "allreduce", "all-reduce", "Every rank receives the sum of the arrays of all ranks.")
Broadcast = _op(RootedOp, "broadcast", "broadcast", "Copy the root's data to all ranks.")
Gather = _op(RootedOp, "gather", "gather", "The root receives the parts of all ranks.")
ReduceScatter = _op(ExchangeOp, "reduce-scatter", "reduce-scatter", "Every rank receives its part of the sum.")
Scatter = _op(RootedOp, "scatter", "scatter", "The root sends each rank its part.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alltoall(ExchangeOp):
    """Every rank sends a different part to every other rank, as expert parallelism does with tokens."""

    kind: ClassVar[str] = "alltoall"
    does: ClassVar[Operation] = "all-to-all"

    matrix: tuple[tuple[float, ...], ...] = field(
        "relative sizes of the parts: a row per sender with a number per receiver; `bytes` is the average row",
        default=(),
        minimum=0,
        example="[[0, 3], [1, 0]]",
    )

    @property
    def weights(self) -> tuple[float, ...]:
        return tuple(part for row in self.matrix for part in row) or self.skew

    def ordered(self, members: Sequence[str]) -> Sequence[str]:
        """Return the members; raise CannotPlace unless the matrix has a row and a column per member."""
        if self.matrix and self.skew:
            raise CannotPlace("expected either `matrix` or `skew`, got both", "`skew` states what each rank sends in total")
        if self.matrix and {len(self.matrix), *map(len, self.matrix)} != {len(members)}:
            wrong = next((row for row in self.matrix if len(row) != len(members)), self.matrix[0])
            message = (
                f"`matrix` has {len(self.matrix)} rows, one of {len(wrong)} numbers: expected {len(members)} x {len(members)}"
            )
            raise CannotPlace(message, "write a row per sender, with a number per receiver")
        if self.matrix and not any(map(any, self.matrix)):
            raise CannotPlace("the matrix is all zeros: expected at least one positive number")
        return members


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyCollectiveOp(RootedOp):
    """A collective of any `operation`."""

    kind: ClassVar[str] = "collective"
    does: ClassVar[Operation] = "all-reduce"

    named: Operation = field("collective operation", key="operation")

    @property
    def operation(self) -> Operation:
        """Collective operation."""
        return self.named
