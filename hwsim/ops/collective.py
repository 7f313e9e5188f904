"""The collectives as ops; `bytes` of each are what nccl-tests count.

    allgather: {among: gpu*, bytes: 160 MB}
    allreduce: {among: gpu*, bytes: 160 MB, algorithm: ring}
    alltoall: {among: gpu*, bytes: 64 MB, algorithm: pairwise}
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

from typing import ClassVar

from hwsim.machine.libraries.operations import Operation
from hwsim.ops.exchange import ExchangeOp, RootedOp
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
Alltoall = _op(
    ExchangeOp,
    "alltoall",
    "all-to-all",
    "Every member sends each other one its own part, as experts of a mixture do with tokens.",
)
Broadcast = _op(RootedOp, "broadcast", "broadcast", "Copy the root's data to all ranks.")
Gather = _op(RootedOp, "gather", "gather", "The parts of all come to the root.")
ReduceScatter = _op(ExchangeOp, "reduce-scatter", "reduce-scatter", "Every member ends with its part of the sum.")
Scatter = _op(RootedOp, "scatter", "scatter", "The root sends each member its part.")


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
