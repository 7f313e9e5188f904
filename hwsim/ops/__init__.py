"""Every kind of op hwsim knows.  A new kind is a new file here and its name in the union and the table."""

from __future__ import annotations

from typing import Final

from hwsim.ops.asnumpy import Asnumpy
from hwsim.ops.busy import Busy
from hwsim.ops.compute import Compute
from hwsim.ops.copy import Copy
from hwsim.ops.elementwise import Elementwise
from hwsim.ops.item import Item
from hwsim.ops.matmul import Matmul
from hwsim.ops.op import CannotPlace, FetchOp, Home, Op, Placed, Pointwise, Scope, stated
from hwsim.ops.print import Print
from hwsim.ops.random import Random
from hwsim.ops.read import Read
from hwsim.ops.reduce import Reduce
from hwsim.ops.send import Send
from hwsim.ops.write import Write

AnyOp = Asnumpy | Busy | Compute | Copy | Elementwise | Item | Matmul | Print | Random | Read | Reduce | Send | Write

OPS: Final[dict[str, type[AnyOp]]] = {
    "asnumpy": Asnumpy,
    "busy": Busy,
    "compute": Compute,
    "copy": Copy,
    "elementwise": Elementwise,
    "item": Item,
    "matmul": Matmul,
    "print": Print,
    "random": Random,
    "read": Read,
    "reduce": Reduce,
    "send": Send,
    "write": Write,
}

__all__ = ["OPS", "AnyOp", "CannotPlace", "FetchOp", "Home", "Op", "Placed", "Pointwise", "Scope", "stated"]
