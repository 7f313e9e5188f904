"""A normalisation of each row of an array: mean 0 and variance 1, then scaled and shifted.

    layernorm: {device: gpu, shape: [4096, 1024], dtype: fp16}

    flop = 8 x elements: mean, variance, normalise, scale, shift
    traffic = (passes + 1) x elements x bytes per element

Runs on the queue `compute` of its device.  A kernel that holds a row near its multiprocessor reads it once; longer rows
are read a second time (`passes`).  Scale and shift, one number for each column, are taken to stay in a cache.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Work
from hwsim.ops.op import ArrayOp, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES, precise

FLOP_EACH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layernorm(ArrayOp):
    """One array in, one out, a row at a time."""

    kind: ClassVar[str] = "layernorm"

    passes: int = field("times the array is read", default=1, minimum=1)
    kernels: int = field("kernels of a gpu it takes, one after another", default=1, minimum=1)

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        array = count * BYTES[self.dtype]
        times, elements, width = self.passes + 1, precise(count, "1"), f"{BYTES[self.dtype]:g} B"
        said = {
            "flop": f"{FLOP_EACH} x elements = {FLOP_EACH} x {elements}",
            "traffic": f"(passes + 1) x elements x {width} = {times} x {elements} x {width}",
        }
        work = Work(
            flop=FLOP_EACH * count,
            reads=self.passes * array,
            writes=array,
            dtype=self.dtype,
            kernels=self.kernels,
            call=self.called(),
        )
        return compute(scope, self, work, output=array, said=said)
