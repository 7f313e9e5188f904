"""Speed of kernels in a training on a generation of GPUs, over their speed alone in a benchmark.

A GPU that trains is warm and at its power limit, and its products follow kernels that leave other bytes in its cache:
they take `products` of the speed that the same shapes reach alone. Attention kernels are written for a generation; what
they reach of the peak is far from it where they were written for the one before.

The number formats of its matrix units tell a GPU's generation.

**Source**: fitted to published training throughput, half of the rows of each source: see `calibrate/published/llm_training.py`.
**Error**: see `docs/validation/models.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hwsim.devices import Gpu
from hwsim.devices.owning import loaded_watts
from hwsim.records import dataclass

Name = Literal["volta", "ampere", "hopper", "blackwell"]


@dataclass(frozen=True, slots=True)
class Generation:
    """Parts of what a kernel reaches alone: a product (`products`), fused attention (`flash`); backward over the same peak.

    plain: part of a product's speed alone that the batched products of plain attention reach.
    power: watts of the card that the numbers hold for.
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
THROTTLED: Final = 0.588  # speed goes with this power of what a card may draw


def generation(gpu: Gpu) -> Name:
    """The generation that a GPU states, else the one that its number formats tell.

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
    """Part of the speed that a lower power limit leaves the largest chip of its generation; 1 for smaller chips."""
    limit, full = gpu.rated or loaded_watts(gpu.power), GENERATIONS[name].power
    peak = gpu.flop.get("fp16", 0.0)
    if limit is None or limit >= full or peak < 0.95 * LARGEST[name]:
        return 1.0
    return float((limit / full) ** exponent)
