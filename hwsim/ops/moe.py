"""The feed-forward network of a mixture of experts on one device, its router left out.

    moe: {device: gpu0, tokens: 1024, hidden: 7168, inner: 2048, experts: 256, top_k: 8, weights: fp8}

    flop = 2 x tokens x top_k x (gates + 1) x hidden x inner        traffic = weights of the experts that have a token

Runs on the queue `compute` of its device. A GPU has kernels of its own for it (`experts:`). Tokens go to all experts alike, or
fall off as a power law with exponent `skew`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from hwsim.devices import Routed, Work
from hwsim.devices.gpu_experts import blocks_of, tokens_of
from hwsim.ops.op import ComputeOp, Placed, Scope, compute
from hwsim.records import dataclass
from hwsim.spec import field

Weights = Literal["bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-mxfp8"]
# What products of such weights are computed in, and bytes of a weight, with its part of a scale.
_FORMATS: dict[str, tuple[str, float]] = {
    "bf16": ("bf16", 2.0),
    "fp8": ("fp8", 1.0),
    "fp8-block": ("fp8", 1.0),
    "nvfp4": ("fp4", 0.5625),
    "mxfp4-mxfp8": ("fp8", 0.53),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moe(ComputeOp):
    """Experts of a layer for `tokens`, each with `top_k` of the `experts` that the device has."""

    kind: ClassVar[str] = "moe"

    tokens: int = field("that come in", minimum=1)
    hidden: int = field("width of a token", minimum=1)
    inner: int = field("width of an expert", minimum=1)
    experts: int = field("that the device has", minimum=1)
    top_k: int = field("experts that each token goes to", default=1, minimum=1)
    gated: bool = field("an expert has a gate (SwiGLU): three matrices in place of two", default=True)
    weights: Weights = field("number format of the weights", default="bf16")
    skew: float = field("exponent of the power law of tokens by expert; 0: all alike", default=0.0, minimum=0.0)
    kernel: str = field("whose kernel, a name of the gpu's `experts` before the format (flash, tensorrt)", default="flash")

    def lower(self, scope: Scope) -> Placed:
        by_expert = tokens_of(self.tokens, self.top_k, self.experts, self.skew)
        computed, width = _FORMATS[self.weights]
        call = Routed(
            tokens=self.tokens,
            pairs=float(sum(by_expert)),  # integers
            active=float(sum(one > 0 for one in by_expert)),
            blocks=blocks_of(by_expert),
            hidden=self.hidden,
            inner=self.inner,
            gates=2.0 if self.gated else 1.0,
            weight=width,
            kernel=f"{self.kernel} {self.weights}",
        )
        output = 2.0 * self.tokens * self.hidden
        size = call.active * (call.gates + 1) * self.hidden * self.inner * width
        work = Work(flop=call.flop, reads=size + output, writes=output, dtype=computed, mix="matmul", experts=call)
        sources = {"flop": f"2 x {self.tokens} x {self.top_k} x {call.gates + 1:g} x {self.hidden} x {self.inner}",
                   "traffic": f"weights of {call.active:g} experts, tokens and results"}  # fmt: skip
        return compute(scope, self, work, output=output, said=sources)
