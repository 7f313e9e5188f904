"""Errors of kernel and exchange times of a model: how well the GPU's constants are known for each kind of work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim.devices import Gpu
from hwsim.devices.gpu_cases import case, gpu_label
from hwsim.origins import Case, UncertaintySource

# kind of work -> (error regime, GPU key whose source determines the confidence)
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


def kernel_errors(seconds: Mapping[str, float], gpu: Gpu, dtype: str, links: Case | None = None) -> tuple[UncertaintySource, ...]:
    """Return an error for each kind of work on a GPU. A bubble has the error of all of them together, and none of its own.

    Args:
        seconds: time by kind of work (s).
        dtype: data type of the matmuls.
        links: confidence in the library that runs exchanges over PCIe; None over the kinds of links in the measured trainings.
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
        on = gpu_label(gpu, dtype) if number else "the links of a training"
        errors.append(UncertaintySource(regime, case(gpu, number, dtype) if number or links is None else links, on, spent))
    return tuple(errors)


def step_error_regime(dtype: str, split: int, *, transformer: bool, eager: bool = False, experts: bool = False) -> str:
    """Return the kind of step whose errors were measured: of CNNs, or of transformers by their features.

    Args:
        split: GPUs of one replica (tensor x pipeline parallelism).
        eager: eager mode, as in notebooks, instead of a vendor container.
        experts: transformer with experts, whose speed differs widely between versions of one framework.
    """
    if not transformer:
        return "step/eager" if eager else "step/cnn"
    if experts or dtype == "fp8":
        return "experts/step" if experts else "step/fp8"
    return "step/tp" if split > 1 else "step/sharded"
