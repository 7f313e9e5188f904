"""A convolution of a batch of images, or its gradients.

    convolution: {device: gpu, batch: 128, channels: [64, 128], size: [56, 56], kernel: 3, stride: 2, padding: 1}
    convolution: {device: gpu, batch: 128, channels: [64, 128], size: [56, 56], kernel: 3, padding: 1, pass: backward}

    flop = 2 x batch x pixels x channels out x channels in / groups x window        traffic = images, results and weights once

Pass `input` computes the gradient of the images (and a transposed convolution), `weights` the gradient of the weights, `backward`
both. Each of the two gradients takes as many operations as `forward`. The op runs on the queue `compute` of its device. On a GPU,
the library selects the fastest algorithm: implicit GEMM, Winograd, or direct convolution. On a CPU it is a GEMM.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from hwsim.devices import Gpu, Work
from hwsim.devices.convolution import ConvolutionPass as Geometry
from hwsim.devices.convolution import Pass
from hwsim.ops.kernel_sequence import KernelStep, check_isa, compute_sequence
from hwsim.ops.op import CannotPlace, ComputeOp, Dtype, LoweredOp, Scope, with_input_sources
from hwsim.records import dataclass
from hwsim.spec import field
from hwsim.units import BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionOp(ComputeOp):
    """A convolution of `batch` images from `channels[0]` to `channels[1]` channels, with windows of `kernel`."""

    kind: ClassVar[str] = "convolution"

    batch: int = field("number of images", minimum=1)
    channels: tuple[int, int] = field("number of input channels and of output channels", minimum=1, example="[64, 128]")
    size: tuple[int, ...] = field("height and width of the images in pixels", one_or_many=True, minimum=1, example="[56, 56]")
    kernel: tuple[int, ...] = field("height and width of the window in pixels", one_or_many=True, minimum=1, example="[3, 3]")
    stride: int = field("distance between two windows in pixels", default=1, minimum=1)
    padding: tuple[int, ...] = field("zero pixels added on each side (height, width)", default=(0,), one_or_many=True, minimum=0)
    result: tuple[int, ...] = field(
        "height and width of the results (default: from `kernel`, `stride` and `padding`)",
        default=(),
        one_or_many=True,
        minimum=1,
    )
    groups: int = field("number of groups of channels that are convolved separately", default=1, minimum=1)
    dtype: Dtype = field("data type of the elements", default="fp32")
    passes: Literal["forward", "input", "weights", "backward"] = field(
        "results (forward), or the gradient of the images (input), of the weights, or of both (backward)",
        key="pass",
        default="forward",
    )
    bias: bool = field("whether a gradient pass also sums the gradient of a bias", default=False)

    def shapes(self) -> tuple[Geometry, ...]:
        """Return the geometry of each pass.

        Raises:
            CannotPlace: `groups` does not divide the channels, or the window is larger than the padded image.
        """
        into, out = self.channels
        if into % self.groups or out % self.groups:
            raise CannotPlace(f"`groups: {self.groups}` does not divide the channels [{into}, {out}]")
        (high, wide), (up, left) = self._pair(self.kernel, "kernel"), self._pair(self.padding, "padding")
        sides = self._pair(self.size, "size")
        made = self._pair(self.result, "result") if self.result else (
            (sides[0] + 2 * up - high) // self.stride + 1,
            (sides[1] + 2 * left - wide) // self.stride + 1,
        )  # fmt: skip
        if min(made) < 1:
            raise CannotPlace(f"a window of {high} x {wide} exceeds an image of {sides[0]} x {sides[1]} pixels", "add `padding`")
        kinds: tuple[Pass, ...] = ("input", "weights") if self.passes == "backward" else (self.passes,)
        return tuple(
            Geometry(
                images=self.batch,
                channels_in=into,
                channels_out=out,
                high=made[0],
                wide=made[1],
                kernel=(high, wide),
                stride=self.stride,
                size_in=math.prod(sides),
                groups=self.groups,
                what=kind,
            )
            for kind in kinds
        )

    def lower(self, scope: Scope) -> LoweredOp:
        shapes = self.shapes()
        device, model = scope.computing(self.device)
        width = BYTES[self.dtype]
        output = math.fsum(shape.traffic(width)[1] for shape in shapes)
        summed = shapes[0].pixels * shapes[0].channels_out * width if self.bias else 0.0
        check_isa(self, device, model)
        if isinstance(model, Gpu):
            return self._on_gpu(scope, device, model, shapes, output, summed)
        steps = [KernelStep(shape.what, shape.work(self.dtype)) for shape in shapes]
        if summed:
            steps.append(KernelStep("bias", Work(flop=summed / width, reads=summed, dtype=self.dtype, mix="reduce")))
        return compute_sequence(scope, self, steps, output)

    def _on_gpu(
        self, scope: Scope, device: str, gpu: Gpu, shapes: tuple[Geometry, ...], output: float, summed: float
    ) -> LoweredOp:
        from hwsim.devices.gpu_convolution import convolution_cost

        more = (Work(reads=summed, dtype=self.dtype, working_set=summed),) if summed else ()
        cost = convolution_cost(device, gpu, shapes, self.dtype, scope.starts, more)
        first = shapes[0]
        into = f"{first.channels_in}{f' / {self.groups}' if self.groups > 1 else ''}"
        count = f"2 x {self.batch} x {first.high} x {first.wide} pixels x {self.channels[1]} x {into} x {first.window}"
        return LoweredOp(device, self.queue or "compute", with_input_sources(cost, {"flop": count}), output=output)

    @staticmethod
    def _pair(given: tuple[int, ...], key: str) -> tuple[int, int]:
        if len(given) not in (1, 2):
            raise CannotPlace(f"expected one or two numbers as `{key}`, got {len(given)}")
        return given[0], given[-1]
