"""Errors of the seconds of a model's kernels and exchanges: how well the GPU's constants for each kind of work are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim.demand import Case, Doubt, case_of
from hwsim.devices import Gpu
from hwsim.devices.gpu_matmul import tiles_like
from hwsim.devices.roofline import peak_of, source_of
from hwsim.formats import precise

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


def doubts(seconds: Mapping[str, float], gpu: Gpu, dtype: str) -> tuple[Doubt, ...]:
    """An error for each kind of work on a GPU; a bubble is as unsure as all of them together, and has none of its own.

    Args:
        seconds: by kind of work.
        dtype: number format of the products.
    """
    tiles = gpu.tiles(dtype)  # chips of one size that were fitted apart do not miss together
    reached = "" if tiles is None else f" at {precise(tiles.efficiency, '%')}"
    peak = precise(peak_of(gpu.flop, dtype, "gpu")[1], "FLOP/s")
    errors = []
    for kind, spent in seconds.items():
        if spent <= 0 or kind not in REGIMES:
            continue
        regime, number = REGIMES[kind]
        if dtype in EIGHT_BITS and regime.startswith("product/"):
            regime = regime.replace("product", "product8")
        on = f"a GPU of {peak} {dtype}{reached}" if number else "the links of a training"
        errors.append(Doubt(regime, case(gpu, number, dtype), on, spent))
    return tuple(errors)


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


def _less(one: Case, other: Case) -> Case:
    """The case of the two that is known less well; what states itself is known."""
    return one if one in ("known", "outside") else other


def of_steps(dtype: str, split: int, *, transformer: bool) -> str:
    """The kind of step whose errors were measured: of networks of convolutions, or of transformers by how they are split.

    Args:
        split: GPUs that hold one replica, by tensor and pipeline parallelism.
    """
    if not transformer:
        return "step/cnn"
    if dtype == "fp8":
        return "step/fp8"
    return "step/tp" if split > 1 else "step/sharded"
