"""Convolutions of the libraries on a generation of GPUs: their speed over the same matrix products.

Kernels of convolutions compute addresses, and fit their tiles to images rather than to matrices: they reach `part` of the
speed of a product of the same shape on the same GPU. The vector units compute convolutions with few channels to a group at
`direct` of their peak. Transformed convolutions reach `transformed` of the speed of their products.

The part tells the generation: multiprocessors of 192 units (Kepler), and the number formats its matrix units have.

**Source**: Chetlur et al., arXiv:1410.0759; NVIDIA, "Convolutional Layers User's Guide", DU-09794-001, section 2.1 (matrix
units read channels innermost, other orders are copied; quoted from memory). The numbers are fitted to published throughput,
half of the rows: `calibrate/published/cnn_training.py`, and `cnn_inference.py` for Turing; Hopper is taken as Ampere, a guess.
**Error**: see `docs/validation/models.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from hwsim.devices.gpu import Gpu
from hwsim.devices.roofline import CannotCompute, peak_of
from hwsim.records import dataclass

Units = Literal["kepler", "vector", "vector-turing", "volta", "turing", "tf32", "ampere", "hopper"]


@dataclass(frozen=True, slots=True)
class Convolving:
    """Parts of a speed.

    Args:
        part: over the same product on the same GPU; may be more than 1.
        transformed: as `part`, for transformed convolutions.
        direct: over the vector peak.
        reordered: images are stored channel by channel, and copied for each product to the order that matrix units read.
    """

    part: float
    transformed: float
    direct: float
    reordered: bool = False


CONVOLVING: Final[Mapping[Units, Convolving]] = {
    "kepler": Convolving(0.24, 0.81, 0.2),
    "vector": Convolving(0.85, 0.82, 0.26),
    "vector-turing": Convolving(1.3, 1.3, 0.26),
    "volta": Convolving(0.79, 0.79, 0.06),
    "turing": Convolving(0.9, 0.9, 0.06),
    "tf32": Convolving(0.9, 0.9, 0.145, reordered=True),
    "ampere": Convolving(1.0, 1.0, 0.087),
    "hopper": Convolving(1.0, 1.0, 0.087),
}


def units_of(gpu: Gpu, dtype: str) -> Units:
    """Which units compute a format.

    >>> from hwsim.devices.roofline import LocalMemory
    >>> units_of(Gpu(flop={"fp32": 1e12, "fp16": 8e12}, memory=LocalMemory(1e12)), "fp16")
    'volta'
    """
    used, peak = peak_of(gpu.flop, dtype, "gpu")
    if used == "tf32":
        return "tf32"
    plain = gpu.flop.get("fp32", peak)
    if used in ("fp64", "fp32") or peak < 3 * plain:  # twice as fast: pairs in a word, no matrix units
        per_multiprocessor = plain / (2 * gpu.sms * gpu.clock) if gpu.sms and gpu.clock else 0.0
        if per_multiprocessor > 150:
            return "kepler"
        return "vector-turing" if "int4" in gpu.flop and "bf16" not in gpu.flop else "vector"
    if "fp8" in gpu.flop:
        return "hopper"
    if "bf16" in gpu.flop:
        return "ampere"
    return "turing" if "int4" in gpu.flop else "volta"


def matrix_units(gpu: Gpu, dtype: str) -> bool:
    """Whether units that only multiply matrices compute the format.

    Raises:
        CannotCompute: nothing does.
    """
    if not gpu.flop:
        raise CannotCompute("the GPU has no peak", "add `flop: {fp32: 15.7 TFLOP/s}`")
    return units_of(gpu, dtype) not in ("kepler", "vector", "vector-turing")
