"""An operation on each element, such as y = x + 1 or relu: nearly always bound by memory.

    elementwise: {device: gpu, shape: [1000, 1000], inputs: 2}

    flop = elements x flop_each        traffic = (inputs + 1) x elements x bytes per element

Runs on the queue `compute` of its device.  Every input is read and the result written once.
On a cpu with measured `kernels` it takes what its `function` takes there: where none is said, an addition of two arrays, or of
an array and a number.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

from hwsim.devices import Work
from hwsim.ops.op import ArrayOp, Dtype, Placed, Pointwise, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES, precise

USUAL: Final = {0: ("fill", ""), 1: ("add", "scalar"), 2: ("add", "")}  # arrays read: the function meant if none is said


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(ArrayOp):
    """`inputs` arrays in, one out."""

    kind: ClassVar[str] = "elementwise"

    inputs: int = field("arrays of this size that are read", default=1, minimum=0)
    flop_each: float = field("operations per element", default=1.0, minimum=0)
    result: Dtype | None = field("type of the result's elements (default: that of the operands)", default=None)

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        each = Pointwise(count, self.dtype, self.inputs, self.flop_each * count)
        elements, width = precise(count, "1"), f"{BYTES[self.dtype]:g} B"
        said = {
            "flop": f"elements x flop_each = {elements} x {self.flop_each:g}",
            "traffic": f"(inputs + 1) x elements x {width} = {self.inputs + 1} x {elements} x {width}",
        }
        usual, form = USUAL.get(self.inputs, ("", "")) if math.isclose(self.flop_each, 1.0) else ("", "")
        call = self.called(self.inputs, usual, form, self.result or "")
        output = count * BYTES[self.result or self.dtype]
        work = Work(flop=each.flop, reads=self.inputs * each.array, writes=output, dtype=self.dtype, call=call)
        return compute(scope, self, work, output=output, pointwise=each, said=said)
