"""Errors of the seconds of a model's kernels and exchanges: how well the GPU's constants for each kind of work are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim.devices import Gpu
from hwsim.devices.gpu_doubts import called, case
from hwsim.origins import Case, Doubt

# kind of work -> regime of its errors, and the number of the GPU that tells how well it is known
REGIMES: Final[Mapping[str, tuple[str, str]]] = {
    "convolution": ("conv/*", "matmul"),
    "matmul": ("product/big", "matmul"),
    "output": ("product/big", "matmul"),
    "attention": ("attention/prefill", "attention"),
    "elementwise": ("elementwise/big", "sustained.copy"),
    "cast": ("elementwise/big", "sustained.copy"),
    "accumulate": ("elementwise/big", "sustained.copy"),
    "optimizer": ("elementwise/big", "sustained.copy"),
    "host": ("launch/host", "launch.stream"),
    **dict.fromkeys(("tp", "cp", "ep", "pp", "dp", "gradients"), ("nccl/large", "")),
}
EIGHT_BITS: Final = frozenset({"fp8", "int8"})


def doubts(seconds: Mapping[str, float], gpu: Gpu, dtype: str, links: Case | None = None) -> tuple[Doubt, ...]:
    """An error for each kind of work on a GPU; a bubble is as unsure as all of them together, and has none of its own.

    Args:
        seconds: by kind of work.
        dtype: number format of the products.
        links: how well the library is known that moves exchanges over PCIe; None over links as trainings were measured on.
    """
    errors = []
    for kind, spent in seconds.items():
        if spent <= 0 or kind not in REGIMES:
            continue
        regime, number = REGIMES[kind]
        if dtype in EIGHT_BITS and regime.startswith("product/"):
            regime = regime.replace("product", "product8")
        if links is not None and not number:
            regime = "pcie/large"
        on = called(gpu, dtype) if number else "the links of a training"
        errors.append(Doubt(regime, case(gpu, number, dtype) if number or links is None else links, on, spent))
    return tuple(errors)


def of_steps(dtype: str, split: int, *, transformer: bool, eager: bool = False, experts: bool = False) -> str:
    """The kind of step whose errors were measured: of networks of convolutions, or of transformers by what they are of.

    Args:
        split: GPUs that hold one replica, by tensor and pipeline parallelism.
        eager: by a framework as notebooks use it, not as a container's.
        experts: of a transformer with experts, which versions of one framework run in very different ways.
    """
    if not transformer:
        return "step/eager" if eager else "step/cnn"
    if experts or dtype == "fp8":
        return "experts/step" if experts else "step/fp8"
    return "step/tp" if split > 1 else "step/sharded"
