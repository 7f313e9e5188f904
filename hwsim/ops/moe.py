"""The feed-forward network of a mixture-of-experts layer on one device, without the router.

    moe: {device: gpu0, tokens: 1024, hidden: 7168, inner: 2048, experts: 256, top_k: 8, weights: fp8}

    flop = 2 x tokens x top_k x (gates + 1) x hidden x inner        traffic = weights of the experts that have a token

The op runs on the queue `compute` of its device. A GPU has models of MoE kernels (`experts:`). The tokens per expert are equal,
or follow a power law with exponent `skew`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.devices import Work
from hwsim.devices.gpu_attention import LIBRARIES
from hwsim.devices.gpu_experts import FORMATS, experts_call
from hwsim.ops.op import CannotPlace, ComputeOp, LoweredOp, Scope, check_library_name, compute
from hwsim.records import dataclass
from hwsim.spec import field

Weights = Literal["bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-mxfp8"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe(ComputeOp):
    """A layer in which each of `tokens` tokens is processed by `top_k` of the device's `experts`."""

    kind: ClassVar[str] = "moe"

    tokens: int = field("number of input tokens", minimum=1)
    hidden: int = field("hidden size of the model", minimum=1)
    inner: int = field("intermediate size of an expert", minimum=1)
    experts: int = field("number of experts on this device", minimum=1)
    top_k: int = field("number of experts per token", default=1, minimum=1)
    gated: bool = field("whether an expert has a gate (SwiGLU): three matrices instead of two", default=True)
    weights: Weights = field("data type of the weights", default="bf16")
    skew: float = field("exponent of the power law of tokens per expert; 0: equal numbers", default=0.0, minimum=0.0)
    kernel: str = field(
        "library of the kernel, a name in the gpu's `experts` without the data type (default: flash if listed, else another)",
        default="",
        example="tensorrt",
    )

    def lower(self, scope: Scope) -> LoweredOp:
        if self.top_k > self.experts:
            message = f"`top_k: {self.top_k}` exceeds `experts: {self.experts}`"
            raise CannotPlace(message, "`top_k` counts only experts on this device")
        check_library_name(scope, self.device, "experts", "kernel", self.kernel)
        computed, width = FORMATS[self.weights]
        call = experts_call(
            self.tokens,
            self.top_k,
            self.experts,
            self.hidden,
            self.inner,
            2 if self.gated else 1,
            f"{self.kernel or LIBRARIES[0]} {self.weights}",
            weight=width,
            skew=self.skew,
        )
        output = 2.0 * self.tokens * self.hidden
        size = call.active * (call.gates + 1) * self.hidden * self.inner * width
        work = Work(flop=call.flop, reads=size + output, writes=output, dtype=computed, mix="matmul", experts=call)
        sources = {"flop": f"2 x {self.tokens} x {self.top_k} x {call.gates + 1:g} x {self.hidden} x {self.inner}",
                   "traffic": f"weights of {call.active:g} experts, tokens and results"}  # fmt: skip
        return compute(scope, self, work, output=output, said=sources)
