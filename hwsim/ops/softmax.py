"""A softmax along the last axis of an array: each row made positive with the sum one.

    softmax: {device: gpu, shape: [4096, 1024], dtype: fp16}

    flop = 5 x elements: maximum, subtract, exponential, sum, divide
    traffic = (passes + 1) x elements x bytes per element

Runs on the queue `compute` of its device.  A kernel that holds a row in its registers reads it once; longer rows are
gone over twice or more (`passes`: PyTorch's kernel does so beyond 1024 elements).  Without such a kernel it is five ops, each of
which reads and writes the array: `kernels: 5, passes: 5, results: 5`.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Work
from hwsim.ops.op import ArrayOp, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES, precise

FLOP_EACH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax(ArrayOp):
    """One array in, one out, a row at a time."""

    kind: ClassVar[str] = "softmax"

    passes: int = field("times the array is read", default=1, minimum=1)
    results: int = field("times an array of this size is written", default=1, minimum=1)
    kernels: int = field("kernels of a gpu it takes, one after another", default=1, minimum=1)

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        array = count * BYTES[self.dtype]
        times, elements, width = self.passes + self.results, precise(count, "1"), f"{BYTES[self.dtype]:g} B"
        said = {
            "flop": f"{FLOP_EACH} x elements = {FLOP_EACH} x {elements}",
            "traffic": f"{times} x elements x {width} = {times} x {elements} x {width}",
        }
        work = Work(
            flop=FLOP_EACH * count,
            reads=self.passes * array,
            writes=self.results * array,
            dtype=self.dtype,
            kernels=self.kernels,
            call=self.called(),
        )
        return compute(scope, self, work, output=array, said=said)
