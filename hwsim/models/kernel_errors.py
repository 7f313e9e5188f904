"""Errors of kernel and exchange times of a model: how well the GPU's constants are known for each kind of work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from hwsim.devices import Gpu
from hwsim.devices.gpu_cases import case, gpu_label
from hwsim.models.architectures.slices import NARROW
from hwsim.models.framework import Framework
from hwsim.models.generations import generation
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels, launches
from hwsim.models.plan import DerivedPlan
from hwsim.models.stages import blocks_of
from hwsim.origins import Case, UncertaintySource
from hwsim.units import BYTES

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
EIGHT_BITS: Final = frozenset({"fp8", "int8", "fp4"})


def kernel_errors(seconds: Mapping[str, float], gpu: Gpu, dtype: str, links: Case | None = None) -> tuple[UncertaintySource, ...]:
    """Return an error for each kind of work on a GPU. A bubble has no error of its own, but that of all kinds together.

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


def step_errors(laid: DerivedPlan, framework: Framework, times: KernelTimes) -> tuple[str, tuple[str, ...]]:
    """Return (error regime of a transformer's step, its kind).

    The kind is the framework, dense or experts, the format, the GPU generation, and whether a dense model is so small that
    launching the kernels of a block takes longer than the kernels.
    """
    plan, family = laid.plan, "experts" if laid.routed else "dense"
    narrow = plan.dtype if plan.dtype in NARROW else f"{8 * BYTES[plan.dtype]:.0f}-bit"
    issue = 0.0 if laid.routed else framework.issue
    small = issue > 0 and any(
        issue * launches(block.forward) > math.fsum(map(times.seconds, kernels(block.forward)))
        for block in blocks_of(laid, framework)
    )
    kind = (framework.called, family, narrow, times.gpu.generation or generation(times.gpu), "small" if small else "large")
    if family == "experts":
        return "experts/step", kind
    if plan.dtype in NARROW or small:
        return "step/fp8" if plan.dtype in NARROW else "step/small", kind
    return "step/tp" if plan.tp * plan.pp > 1 else "step/sharded", kind
