"""A normalization of an array: statistics per channel, row or group, by which the array is scaled.

    norm: {device: gpu, shape: [128, 64, 112, 112], of: batch}
    norm: {device: gpu, shape: [8192, 4096], of: rms, dtype: bf16, pass: backward}

| of | forward | backward |
|---|---|---|
| batch | reads twice (statistics, then the result), writes once | reads two arrays twice, writes one |
| group | as batch | as batch |
| layer, rms | reads once (a row stays on chip), writes once | reads two arrays, and again for scale and shift; writes one |

`inference` uses learnt statistics: one pass over the array. The op runs on the queue `compute` of its device.

**Source**: Ioffe and Szegedy, arXiv:1502.03167, algorithms 1 and 2; Ba et al., arXiv:1607.06450.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, Literal

from hwsim.devices import Work
from hwsim.ops.op import ComputeOp, Dtype, LoweredOp, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES

# (arrays read, arrays written): forward, backward
MOVED: Final = {"batch": ((2, 1), (4, 1)), "group": ((2, 1), (4, 1)), "layer": ((1, 1), (4, 1)), "rms": ((1, 1), (4, 1))}
FLOP_EACH: Final = {"forward": 8.0, "backward": 12.0, "inference": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm(ComputeOp):
    """A normalization of one array."""

    kind: ClassVar[str] = "norm"

    shape: tuple[float, ...] = field("lengths of the array's axes", one_or_many=True, minimum=1, example="[128, 64, 112, 112]")
    of: Literal["batch", "layer", "rms", "group"] = field(
        "kind of normalization: statistics per channel (batch), per row (layer, rms), or per group", default="batch"
    )
    passes: Literal["forward", "backward", "inference"] = field(
        "forward: the statistics are those of the array; inference: they are learnt constants; backward: the gradient",
        key="pass",
        default="forward",
    )
    dtype: Dtype = field("data type of the elements", default="fp32")

    def lower(self, scope: Scope) -> LoweredOp:
        count = math.prod(self.shape)
        array = count * BYTES[self.dtype]
        reads, writes = (1, 1) if self.passes == "inference" else MOVED[self.of][self.passes == "backward"]
        again = 2 * array if reads > 1 and self.working_set is None else self.working_set
        work = Work(flop=FLOP_EACH[self.passes] * count, reads=reads * array, writes=writes * array, dtype=self.dtype,
                    working_set=again)  # fmt: skip
        sources = {
            "flop": f"{FLOP_EACH[self.passes]:g} x elements",
            "traffic": f"{reads + writes} x elements x {BYTES[self.dtype]:g} B",
        }
        return compute(scope, self, work, output=array, said=sources)
