"""How well the decisive numbers of a GPU are known, by kind of work."""

from __future__ import annotations

from typing import Final

from hwsim.devices.gpu import Gpu
from hwsim.devices.gpu_attention import LIBRARIES, AttentionKernels
from hwsim.devices.gpu_experts import kernel_name_of
from hwsim.devices.gpu_matmul import tiles_like
from hwsim.devices.roofline import peak_of, source_of
from hwsim.formats import precise
from hwsim.origins import Case, case_of

ORDER: Final[tuple[Case, ...]] = ("stated", "known", "source", "device", "generation", "outside")  # most certain first


def gpu_label(gpu: Gpu, dtype: str) -> str:
    """Return the description of the GPU that its matmul errors are stored under: peak and achieved share."""
    tiles = gpu.tiles(dtype)  # separately fitted GPUs of one size have independent errors
    share = "" if tiles is None else f" at {precise(tiles.efficiency, '%')}"
    return f"a GPU of {precise(peak_of(gpu.flop, dtype, 'gpu')[1], 'FLOP/s')} {dtype}{share}"


def case(gpu: Gpu, number: str, dtype: str) -> Case:
    """Return the case of a number of the GPU; a number that it does not have, and links, count as fitted."""
    if number == "attention" and gpu.attention is None:  # derived from its matmuls and the tiles of other GPUs
        return _less_certain(case(gpu, "matmul", dtype), "generation")
    guess: Case = "generation" if number == "matmul" else "device"
    path = number
    if number == "matmul":
        key = tiles_like(peak_of(gpu.flop, dtype, "gpu")[0], gpu.matmul)
        path = "efficiency.matmul" if key is None else f"matmul.{key}.efficiency"
    return case_of(source_of(gpu.sources, path), guess) or "known"


def serving_case(gpu: Gpu, dtype: str, experts: str = "") -> Case:
    """Return the case of a served model: the least certain of its matmuls, its experts and its decode attention.

    experts: kernel of its experts; "" if there are none.
    """
    products = max(case(gpu, "matmul", dtype), _experts_case(gpu, experts), key=ORDER.index)
    if not isinstance(gpu.attention, AttentionKernels):  # none, or a stated share of the peak
        return case(gpu, "attention", dtype) if gpu.attention is None else products
    name = next((library for library in LIBRARIES if library in gpu.attention.decode), "")
    answers = case_of(source_of(gpu.sources, f"attention.decode.{name}.rate"), "generation") or "known"
    return max(products, answers, key=ORDER.index)


def _experts_case(gpu: Gpu, kernel: str) -> Case:
    name = kernel_name_of(kernel, gpu.experts) if kernel else ""
    if not name:
        return "generation" if kernel else "known"
    return case_of(source_of(gpu.sources, f"experts.{name}.efficiency"), "generation") or "known"


def _less_certain(first: Case, second: Case) -> Case:
    """Return the less certain of two cases; "known" and "outside" of the first case take precedence."""
    return first if first in ("known", "outside") else second
