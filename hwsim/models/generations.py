"""Kernel speed in a training, relative to the same kernel in a benchmark, by GPU generation.

During a training, a GPU is warm and runs at its power limit, and the cache holds data of the previous kernels. Matmuls reach
`products` of their benchmark speed. Attention kernels are written for one generation, and reach a much lower share of the peak on
the next one.

The data types of the matrix units determine a GPU's generation if the file does not state it.

**Source**: fitted to published training throughput, half of the rows of each source: see `calibrate/published/llm_training.py`.
**Error**: see `docs/validation/models.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hwsim.devices import Gpu
from hwsim.devices.power_curves import loaded_watts
from hwsim.records import dataclass

Name = Literal["volta", "ampere", "hopper", "blackwell"]


@dataclass(frozen=True, slots=True)
class Generation:
    """Speeds of a generation in a training, relative to benchmarks.

    Args:
        products: speed of matmuls, relative to a benchmark.
        flash: share of the peak that fused attention reaches forward.
        flash_backward: share of the same peak that fused attention reaches backward.
        plain: speed of the batched matmuls of plain attention, relative to a benchmark.
        power: power limit (W) at which the numbers apply.
    """

    products: float
    flash: float
    flash_backward: float
    plain: float
    power: float


GENERATIONS: Final[Mapping[Name, Generation]] = {
    "volta": Generation(0.874, 0.622, 0.53, 0.727, 300.0),
    "ampere": Generation(0.804, 0.622, 0.53, 0.727, 400.0),
    "hopper": Generation(0.744, 0.608, 0.518, 0.727, 700.0),
    "blackwell": Generation(0.744, 0.608, 0.518, 0.727, 1000.0),
}
LARGEST: Final[Mapping[Name, float]] = {
    "volta": 125e12,
    "ampere": 312e12,
    "hopper": 989.4e12,
    "blackwell": 2.25e15,
}  # FLOP/s in fp16
THROTTLED: Final = 0.588  # exponent of speed as a power of the power limit


def generation(gpu: Gpu) -> Name:
    """Return the generation that a GPU states, or else the one that its data types imply.

    >>> from hwsim.devices.roofline import LocalMemory
    >>> generation(Gpu(flop={"fp32": 1e12, "fp16": 1e14}, memory=LocalMemory(1e12)))
    'volta'
    """
    for name in GENERATIONS:
        if name == gpu.generation:
            return name
    if "fp4" in gpu.flop:
        return "blackwell"
    if "fp8" in gpu.flop:
        return "hopper"
    return "ampere" if "bf16" in gpu.flop else "volta"


def throttle(gpu: Gpu, name: Name, exponent: float = THROTTLED) -> float:
    """Return the speed left by a lower power limit on the largest chip of a generation; 1 for smaller chips."""
    limit, full = gpu.rated or loaded_watts(gpu.power), GENERATIONS[name].power
    peak = gpu.flop.get("fp16", 0.0)
    if limit is None or limit >= full or peak < 0.95 * LARGEST[name]:
        return 1.0
    return float((limit / full) ** exponent)
