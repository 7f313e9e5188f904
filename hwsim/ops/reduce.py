"""A sum, mean, maximum or norm over an array: read once, one operation per element.

    reduce: {device: gpu, count: 1e6}

    flop = elements        traffic = elements x bytes per element

Runs on the queue `compute` of its device.  The result is taken to be much smaller than the input.
On a cpu with measured `kernels` it is a `sum` of all elements unless `function` and `form` (rows, columns) say otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Work, reduce_call
from hwsim.ops.op import ArrayOp, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.units import BYTES, precise


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(ArrayOp):
    """An array in, little out."""

    kind: ClassVar[str] = "reduce"

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        width = BYTES[self.dtype]
        said = {"flop": "elements", "traffic": f"elements x {width:g} B = {precise(count, '1')} x {width:g} B"}
        call = reduce_call(
            self.function or "sum",
            dtype=self.dtype,
            count=count,
            form=self.form,
            rows=self.rows,
            into=self.into,
            since=self.ages(1),
            cores=self.cores,
        )
        work = Work(flop=count, reads=count * width, dtype=self.dtype, mix="reduce", call=self.as_called(call))
        return compute(scope, self, work, output=width, said=said)
