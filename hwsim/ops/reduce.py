"""A sum, mean, maximum or norm over an array: read once, one operation per element.

    reduce: {device: gpu, count: 1e6}

    flop = elements        traffic = elements x bytes per element

Runs on the queue `compute` of its device.  The result is taken to be much smaller than the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hwsim.devices import Work, precise
from hwsim.ops.op import WIDTH, ArrayOp, Placed, Scope, compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(ArrayOp):
    """An array in, little out."""

    kind: ClassVar[str] = "reduce"

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        width = WIDTH[self.dtype]
        said = {"flop": "elements", "traffic": f"elements x {width:g} B = {precise(count, '1')} x {width:g} B"}
        work = Work(flop=count, reads=count * width, dtype=self.dtype, mix="reduce")
        return compute(scope, self, work, output=width, said=said)
