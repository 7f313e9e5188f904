"""Convolutions of the libraries by GPU generation: their speed relative to the same matmuls.

Convolution kernels compute addresses, and their tiles fit images rather than matrices. They reach `part` of the speed of a matmul
of the same shape on the same GPU. The vector units compute convolutions with few channels per group at `direct` of their
peak. Winograd convolutions reach `transformed` of the speed of their matmuls.

The generation follows from the GPU's numbers: SMs with 192 units (Kepler), and the number formats of the matrix units.

**Source**: Chetlur et al., arXiv:1410.0759; NVIDIA, "Convolutional Layers User's Guide", DU-09794-001, section 2.1 (matrix
units read NHWC, other layouts are copied; quoted from memory). The numbers are fitted to published throughput, half
of the rows: `calibrate/published/cnn_training.py`, and `cnn_inference.py` for Turing; Hopper is assumed to equal Ampere.
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
class ConvolutionSpeeds:
    """The speeds of convolution kernels on a GPU generation.

    Args:
        part: speed relative to the same matmul on the same GPU; may exceed 1.
        transformed: as `part`, for Winograd convolutions.
        direct: speed relative to the vector peak.
        reordered: whether images are stored as NCHW and copied to NHWC, the layout of the matrix units, for each matmul.
    """

    part: float
    transformed: float
    direct: float
    reordered: bool = False


CONVOLUTION_SPEEDS: Final[Mapping[Units, ConvolutionSpeeds]] = {
    "kepler": ConvolutionSpeeds(0.24, 0.81, 0.2),
    "vector": ConvolutionSpeeds(0.85, 0.82, 0.26),
    "vector-turing": ConvolutionSpeeds(1.3, 1.3, 0.26),
    "volta": ConvolutionSpeeds(0.79, 0.79, 0.06),
    "turing": ConvolutionSpeeds(0.9, 0.9, 0.06),
    "tf32": ConvolutionSpeeds(0.9, 0.9, 0.145, reordered=True),
    "ampere": ConvolutionSpeeds(1.0, 1.0, 0.087),
    "hopper": ConvolutionSpeeds(1.0, 1.0, 0.087),
}


def units_of(gpu: Gpu, dtype: str) -> Units:
    """Return the kind of units that compute a number format.

    >>> from hwsim.devices.roofline import LocalMemory
    >>> units_of(Gpu(flop={"fp32": 1e12, "fp16": 8e12}, memory=LocalMemory(1e12)), "fp16")
    'volta'
    """
    compute_dtype, peak = peak_of(gpu.flop, dtype, "gpu")
    if compute_dtype == "tf32":
        return "tf32"
    plain = gpu.flop.get("fp32", peak)
    if compute_dtype in ("fp64", "fp32") or peak < 3 * plain:  # a factor of two: packed pairs on the vector units
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
    """Return whether units that only multiply matrices compute the number format.

    Raises:
        CannotCompute: the GPU has no peak.
    """
    if not gpu.flop:
        raise CannotCompute("the GPU has no peak", "add `flop: {fp32: 15.7 TFLOP/s}`")
    return units_of(gpu, dtype) not in ("kepler", "vector", "vector-turing")
