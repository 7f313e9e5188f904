"""Kinds of ops: the keys of each kind, the device and queue that run it, and its demand on a machine.

To add a kind, write a module with its class and add a line to `OPS`.
"""

from __future__ import annotations

from typing import Final

from hwsim.ops.exchange import ExchangeOp
from hwsim.ops.fetch import FetchOp
from hwsim.ops.op import CannotPlace, ComputeOp, LoweredOp, Op, Pointwise, Scope, ValueLocation, stated_sizes
from hwsim.spec.kinds import KindTable

OPS: Final = KindTable[type[Op]](
    {
        "access": "hwsim.ops.access:AccessOp",
        "allgather": "hwsim.ops.collective:Allgather",
        "allreduce": "hwsim.ops.collective:Allreduce",
        "alltoall": "hwsim.ops.collective:Alltoall",
        "asnumpy": "hwsim.ops.fetch:Asnumpy",
        "attention": "hwsim.ops.attention:AttentionOp",
        "broadcast": "hwsim.ops.collective:Broadcast",
        "busy": "hwsim.ops.busy:BusyOp",
        "collective": "hwsim.ops.collective:AnyCollectiveOp",
        "compute": "hwsim.ops.compute:Compute",
        "convolution": "hwsim.ops.convolution:ConvolutionOp",
        "copy": "hwsim.ops.transfer:Copy",
        "elementwise": "hwsim.ops.arrays:Elementwise",
        "embedding": "hwsim.ops.embedding:EmbeddingOp",
        "gather": "hwsim.ops.collective:Gather",
        "increment": "hwsim.ops.increment:Increment",
        "item": "hwsim.ops.fetch:ItemOp",
        "layernorm": "hwsim.ops.arrays:Layernorm",
        "matmul": "hwsim.ops.matmul:Matmul",
        "moe": "hwsim.ops.moe:Moe",
        "norm": "hwsim.ops.norm:Norm",
        "pool": "hwsim.ops.pool:PoolOp",
        "print": "hwsim.ops.fetch:Print",
        "random": "hwsim.ops.arrays:RandomOp",
        "read": "hwsim.ops.disk:ReadOp",
        "reduce": "hwsim.ops.arrays:Reduce",
        "reduce-scatter": "hwsim.ops.collective:ReduceScatter",
        "rnn": "hwsim.ops.rnn:Rnn",
        "scatter": "hwsim.ops.collective:Scatter",
        "send": "hwsim.ops.transfer:SendOp",
        "softmax": "hwsim.ops.arrays:Softmax",
        "write": "hwsim.ops.disk:Write",
    }
)

__all__ = [
    "OPS",
    "CannotPlace",
    "ComputeOp",
    "ExchangeOp",
    "FetchOp",
    "LoweredOp",
    "Op",
    "Pointwise",
    "Scope",
    "ValueLocation",
    "stated_sizes",
]  # fmt: skip
