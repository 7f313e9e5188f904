"""Random numbers: an array filled by the device's generator.

    random: {device: cpu, shape: [1000, 1000]}

    flop = elements (one number each, at the device's efficiency for `random`)
    traffic = elements x bytes per element

Runs on the queue `compute` of its device.  On a cpu with measured `kernels` it is `normal` unless `function` says otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.devices import Work
from hwsim.ops.op import ArrayOp, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.units import BYTES, precise


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(ArrayOp):
    """An array of random numbers."""

    kind: ClassVar[str] = "random"

    def lower(self, scope: Scope) -> Placed:
        count = self.elements()
        size = count * BYTES[self.dtype]
        said = {
            "numbers": "elements",
            "traffic": f"elements x {BYTES[self.dtype]:g} B = {precise(count, '1')} x {BYTES[self.dtype]:g} B",
        }
        call = self.called(0, "normal")
        work = Work(flop=count, writes=size, dtype=self.dtype, mix="random", call=call)
        return compute(scope, self, work, output=size, said=said)
