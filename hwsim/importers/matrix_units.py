"""Number formats that a framework computes fp32 in: TF32 of matrix units, for convolutions, products, or neither.

PyTorch lets convolutions of fp32 run in TF32 where a GPU has it (`torch.backends.cudnn.allow_tf32`), and since 1.12 products do
not (`torch.backends.cuda.matmul.allow_tf32`). Names of kernels tell what a recorded run did, if its GPU could.

**Source**: PyTorch, "CUDA semantics", section "TensorFloat-32 on Ampere (and later) devices".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hwsim.importers.recording import Recording
from hwsim.records import dataclass

_COULD: Final = re.compile(r"ampere|sm8\d|sm9\d|sm10\d|cutlass_80|hopper|blackwell|tf32|s1688")
_TENSOR: Final = re.compile(r"tf32|s1688(?!.*(?:f16|bf16|h1688))")
_CONVOLVES: Final = re.compile(r"fprop|dgrad|wgrad|cudnn|nchw|nhwc|conv")


@dataclass(frozen=True, slots=True)
class Formats:
    """Whether fp32 is computed in TF32, where a GPU can."""

    convolutions: bool = True
    products: bool = False

    def applied(self, statement: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """The statement in the format that it is computed in."""
        kind, keys = next(iter(statement.items()))
        if keys.get("dtype") != "fp32":
            return statement
        if (kind == "convolution" and self.convolutions) or (kind in ("matmul", "rnn") and self.products):
            return {kind: {**keys, "dtype": "tf32"}}
        return statement


def formats_of(recording: Recording) -> Formats:
    """By the names of kernels, if the recorded GPU could choose; else as PyTorch does by default."""
    names = {name for rank in recording.ranks for name in rank.names}
    if not any(_COULD.search(name) for name in names):
        return Formats()
    tensor = [name for name in names if _TENSOR.search(name)]
    convolving = [name for name in tensor if _CONVOLVES.search(name)]
    others = [name for name in tensor if name not in convolving and "gemm" in name]
    return Formats(bool(convolving) or not any("conv" in name for name in names), bool(others))
