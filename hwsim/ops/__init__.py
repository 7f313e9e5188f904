"""Every kind of op hwsim knows.  A new kind is a new file here and its name in the union and the table."""

from __future__ import annotations

from typing import Final

from hwsim.ops.access import Access
from hwsim.ops.allgather import Allgather
from hwsim.ops.allreduce import Allreduce
from hwsim.ops.alltoall import Alltoall
from hwsim.ops.asnumpy import Asnumpy
from hwsim.ops.broadcast import Broadcast
from hwsim.ops.busy import Busy
from hwsim.ops.collective import Collective
from hwsim.ops.compute import Compute
from hwsim.ops.copy import Copy
from hwsim.ops.elementwise import Elementwise
from hwsim.ops.exchange import ExchangeOp, Part
from hwsim.ops.gather import Gather
from hwsim.ops.increment import Increment
from hwsim.ops.item import Item
from hwsim.ops.layernorm import Layernorm
from hwsim.ops.matmul import Matmul
from hwsim.ops.op import CannotPlace, ComputeOp, FetchOp, Home, Op, Placed, Pointwise, Scope, stated
from hwsim.ops.print import Print
from hwsim.ops.random import Random
from hwsim.ops.read import Read
from hwsim.ops.reduce import Reduce
from hwsim.ops.reduce_scatter import ReduceScatter
from hwsim.ops.scatter import Scatter
from hwsim.ops.send import Send
from hwsim.ops.softmax import Softmax
from hwsim.ops.write import Write

AnyOp = (
    Access
    | Allgather
    | Allreduce
    | Alltoall
    | Asnumpy
    | Broadcast
    | Busy
    | Collective
    | Compute
    | Copy
    | Elementwise
    | Gather
    | Increment
    | Item
    | Layernorm
    | Matmul
    | Print
    | Random
    | Read
    | Reduce
    | ReduceScatter
    | Scatter
    | Send
    | Softmax
    | Write
)

OPS: Final[dict[str, type[AnyOp]]] = {
    "access": Access,
    "allgather": Allgather,
    "allreduce": Allreduce,
    "alltoall": Alltoall,
    "asnumpy": Asnumpy,
    "broadcast": Broadcast,
    "busy": Busy,
    "collective": Collective,
    "compute": Compute,
    "copy": Copy,
    "elementwise": Elementwise,
    "gather": Gather,
    "increment": Increment,
    "item": Item,
    "layernorm": Layernorm,
    "matmul": Matmul,
    "print": Print,
    "random": Random,
    "read": Read,
    "reduce": Reduce,
    "reduce-scatter": ReduceScatter,
    "scatter": Scatter,
    "send": Send,
    "softmax": Softmax,
    "write": Write,
}

__all__ = [
    "OPS",
    "AnyOp",
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
