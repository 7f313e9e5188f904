"""Cases of the numbers of a GPU that decide the time of a kind of work: how well each is known."""

from __future__ import annotations

from typing import Final

from hwsim.devices.gpu import Gpu
from hwsim.devices.gpu_attention import LIBRARIES, Attention
from hwsim.devices.gpu_experts import named
from hwsim.devices.gpu_matmul import tiles_like
from hwsim.devices.roofline import peak_of, source_of
from hwsim.formats import precise
from hwsim.origins import Case, case_of

ORDER: Final[tuple[Case, ...]] = ("stated", "known", "source", "device", "generation", "outside")  # the best known first


def called(gpu: Gpu, dtype: str) -> str:
    """The GPU in words, as errors of its products know it: by its peak, and by what its products reach of it."""
    tiles = gpu.tiles(dtype)  # chips of one size that were fitted apart do not miss together
    reached = "" if tiles is None else f" at {precise(tiles.efficiency, '%')}"
    return f"a GPU of {precise(peak_of(gpu.flop, dtype, 'gpu')[1], 'FLOP/s')} {dtype}{reached}"


def case(gpu: Gpu, number: str, dtype: str) -> Case:
    """The case of a number of the GPU; a number that it does not have, and links, count as fitted."""
    if number == "attention" and gpu.attention is None:  # its products with the tiles of others
        return _less(case(gpu, "matmul", dtype), "generation")
    guess: Case = "generation" if number == "matmul" else "device"
    path = number
    if number == "matmul":
        key = tiles_like(peak_of(gpu.flop, dtype, "gpu")[0], gpu.matmul)
        path = "efficiency.matmul" if key is None else f"matmul.{key}.efficiency"
    return case_of(source_of(gpu.sources, path), guess) or "known"


def of_served(gpu: Gpu, dtype: str, experts: str = "") -> Case:
    """The case of a served model: of its products, its experts or the attention of its answers, whichever is known least well.

    experts: the kernel of its experts, "" without.
    """
    products = max(case(gpu, "matmul", dtype), _of_experts(gpu, experts), key=ORDER.index)
    if not isinstance(gpu.attention, Attention):  # none, or a stated part of the peak
        return case(gpu, "attention", dtype) if gpu.attention is None else products
    name = next((library for library in LIBRARIES if library in gpu.attention.decode), "")
    answers = case_of(source_of(gpu.sources, f"attention.decode.{name}.rate"), "generation") or "known"
    return max(products, answers, key=ORDER.index)


def _of_experts(gpu: Gpu, kernel: str) -> Case:
    name = named(kernel, gpu.experts) if kernel else ""
    if not name:
        return "generation" if kernel else "known"
    return case_of(source_of(gpu.sources, f"experts.{name}.efficiency"), "generation") or "known"


def _less(one: Case, other: Case) -> Case:
    """The case of the two that is known less well; what states itself is known."""
    return one if one in ("known", "outside") else other
