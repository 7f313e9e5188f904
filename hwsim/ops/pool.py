"""Max or average pooling of images.

    pool: {device: gpu, planes: 8192, size: [112, 112], kernel: 3, result: [56, 56]}
    pool: {device: gpu, planes: 8192, size: [112, 112], kernel: 3, result: [56, 56], pass: backward}

    flop = results x window        traffic = images and results once; for max also the index, 8 B per result

The backward pass fills an array of the images' size with zeros and sums each of its elements over the windows that contain it.
The op runs on the queue `compute` of its device.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from hwsim.devices import Work
from hwsim.ops.op import ComputeOp, Dtype, LoweredOp, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOp(ComputeOp):
    """A pooling of `planes` images of one channel, with windows of `kernel`."""

    kind: ClassVar[str] = "pool"

    planes: int = field("number of planes: images x channels", minimum=1)
    size: tuple[int, ...] = field("height and width of an image in pixels", one_or_many=True, minimum=1, example="[112, 112]")
    result: tuple[int, ...] = field("height and width of the result in pixels", one_or_many=True, minimum=1, example="[56, 56]")
    kernel: tuple[int, ...] = field(
        "height and width of a window in pixels (default: no overlap)",
        default=(),
        one_or_many=True,
        minimum=1,
        example="3",
    )
    by: Literal["max", "average"] = field("pooling operation", default="max")
    passes: Literal["forward", "backward"] = field("result (forward), or gradient of the images", key="pass", default="forward")
    dtype: Dtype = field("data type of the elements", default="fp32")

    def lower(self, scope: Scope) -> LoweredOp:
        width, into, out = BYTES[self.dtype], float(self.planes), float(self.planes)
        into, out = into * _area(self.size), out * _area(self.result)
        window = _area(self.kernel) if self.kernel else into / out
        indices = 8.0 * out if self.by == "max" else 0.0
        if self.passes == "forward":
            reads, writes = into * width, out * width + indices
        else:
            reads, writes = out * width + indices, 2 * into * width
        flop = out * window if self.passes == "forward" else into + out * window
        work = Work(flop=flop, reads=reads, writes=writes, dtype=self.dtype)
        return compute(scope, self, work, output=(out if self.passes == "forward" else into) * width)


def _area(sides: tuple[int, ...]) -> float:
    return float(math.prod(sides) if len(sides) > 1 else sides[0] ** 2)
