"""Every kind of op hwsim knows. A new kind is a new file and its line in the table."""

from __future__ import annotations

from typing import Final

from hwsim.kinds import Kinds
from hwsim.ops.exchange import ExchangeOp, Part
from hwsim.ops.fetch import FetchOp
from hwsim.ops.op import CannotPlace, ComputeOp, Home, Op, Placed, Pointwise, Scope, stated

OPS: Final = Kinds[Op](
    "hwsim.ops",
    {
        "access": "access:Access",
        "allgather": "collective:Allgather",
        "allreduce": "collective:Allreduce",
        "alltoall": "collective:Alltoall",
        "asnumpy": "fetch:Asnumpy",
        "broadcast": "collective:Broadcast",
        "busy": "busy:Busy",
        "collective": "collective:Collective",
        "compute": "compute:Compute",
        "copy": "transfer:Copy",
        "elementwise": "arrays:Elementwise",
        "gather": "collective:Gather",
        "increment": "increment:Increment",
        "item": "fetch:Item",
        "layernorm": "arrays:Layernorm",
        "matmul": "matmul:Matmul",
        "print": "fetch:Print",
        "random": "arrays:Random",
        "read": "disk:Read",
        "reduce": "arrays:Reduce",
        "reduce-scatter": "collective:ReduceScatter",
        "scatter": "collective:Scatter",
        "send": "transfer:Send",
        "softmax": "arrays:Softmax",
        "write": "disk:Write",
    },
)

__all__ = [
    "OPS",
    "CannotPlace",
    "ComputeOp",
    "ExchangeOp",
    "FetchOp",
    "Home",
    "Op",
    "Part",
    "Placed",
    "Pointwise",
    "Scope",
    "stated",
]
