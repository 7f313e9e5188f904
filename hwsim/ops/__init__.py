"""Kinds of ops: the keys of each kind, the device and queue that run it, and its demand on a machine.

To add a kind, write a module with its class and add a line to `OPS`.
"""

from __future__ import annotations

from typing import Final

from hwsim.ops.exchange import ExchangeOp, Part
from hwsim.ops.fetch import FetchOp
from hwsim.ops.op import CannotPlace, ComputeOp, Home, Op, Placed, Pointwise, Scope, stated
from hwsim.spec.kinds import Kinds

OPS: Final = Kinds[type[Op]](
    {
        "access": "hwsim.ops.access:Access",
        "allgather": "hwsim.ops.collective:Allgather",
        "allreduce": "hwsim.ops.collective:Allreduce",
        "alltoall": "hwsim.ops.collective:Alltoall",
        "asnumpy": "hwsim.ops.fetch:Asnumpy",
        "attention": "hwsim.ops.attention:Attention",
        "broadcast": "hwsim.ops.collective:Broadcast",
        "busy": "hwsim.ops.busy:Busy",
        "collective": "hwsim.ops.collective:Collective",
        "compute": "hwsim.ops.compute:Compute",
        "convolution": "hwsim.ops.convolution:Convolution",
        "copy": "hwsim.ops.transfer:Copy",
        "elementwise": "hwsim.ops.arrays:Elementwise",
        "embedding": "hwsim.ops.embedding:Embedding",
        "gather": "hwsim.ops.collective:Gather",
        "increment": "hwsim.ops.increment:Increment",
        "item": "hwsim.ops.fetch:Item",
        "layernorm": "hwsim.ops.arrays:Layernorm",
        "matmul": "hwsim.ops.matmul:Matmul",
        "moe": "hwsim.ops.moe:Moe",
        "norm": "hwsim.ops.norm:Norm",
        "pool": "hwsim.ops.pool:Pool",
        "print": "hwsim.ops.fetch:Print",
        "random": "hwsim.ops.arrays:Random",
        "read": "hwsim.ops.disk:Read",
        "reduce": "hwsim.ops.arrays:Reduce",
        "reduce-scatter": "hwsim.ops.collective:ReduceScatter",
        "rnn": "hwsim.ops.rnn:Rnn",
        "scatter": "hwsim.ops.collective:Scatter",
        "send": "hwsim.ops.transfer:Send",
        "softmax": "hwsim.ops.arrays:Softmax",
        "write": "hwsim.ops.disk:Write",
    }
)

__all__ = [
    "OPS", "CannotPlace", "ComputeOp", "ExchangeOp", "FetchOp", "Home", "Op", "Part", "Placed", "Pointwise", "Scope", "stated",
]  # fmt: skip
