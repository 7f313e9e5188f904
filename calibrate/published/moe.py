"""MoE kernels: grouped GEMMs of vLLM and TensorRT-LLM on nine GPUs, by number format.

Tables of ai-dynamo/aiconfigurator. Half of the shapes of each kernel and GPU are used for fitting. The benchmark draws tokens
at random, uniformly or by a power law; here each expert has its quantile, and with experts on several GPUs, the busiest GPU is
timed. If a GPU generation is held out, constants are fitted to all other generations that run the same kernel: one name in vLLM
and TensorRT-LLM may stand for Triton, CUTLASS or a closed kernel. Kernels of a single generation are skipped.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.devices.gpu_attention import KernelRates
from hwsim.devices.gpu_experts import TILES, ExpertKernels, blocks_of, tokens_of
from hwsim.devices.work import ExpertsCall
from hwsim.origins import Case
from published import kernels
from published.residual import Residual
from published.score import Score

LEAST: Final = 60
FORMATS: Final[Mapping[str, tuple[str, str, float]]] = {  # format in the table: name, compute format, bytes of a weight
    "bfloat16": ("bf16", "bf16", 2.0),
    "fp8": ("fp8", "fp8", 1.0),
    "fp8_block": ("fp8-block", "fp8", 1.0),
    "nvfp4": ("nvfp4", "fp4", 0.5625),
    "int4_wo": ("int4-weights", "bf16", 0.5),
    "w4a16_mxfp4": ("mxfp4-weights", "bf16", 0.53),
    "w4a8_mxfp4_mxfp8": ("mxfp4-mxfp8", "fp8", 0.53),
}
CONSTANTS: Final = (
    kernels.Constant("start", 3e-5, 3e-6, 3e-4),
    kernels.Constant("efficiency", 0.7, 0.05, 1.0),
    kernels.Constant("reading", 0.8, 0.1, 1.0),
    kernels.Constant("edge", 15.0, 0.1, 200.0),
    kernels.Constant("prologue", 150.0, 5.0, 2500.0),
    kernels.Constant("lost", 0.5, 0.01, 3.0),
    kernels.Constant("passing", 20e9, 3e8, 3e11),
    kernels.Constant("tokens", 20e9, 3e8, 3e11),
    kernels.Constant("rate", 60e9, 3e9, 4e11),
)
OWN: Final = ("start", "efficiency", "reading")
# FlashInfer's kernel with one scale per matrix. Servers tune it at start; the table's collector (vllm/collect_moe.py)
# does not, and the untuned kernel reads weights at a sixth of memory bandwidth on these GPUs.
UNTUNED: Final = "vllm_modeloptfp8moe_flashinfer_cutlass"
HOPPER: Final = ("h100_sxm", "h200_sxm")
SOURCES: Final = ("marlin", "triton", "flashinfer_cutlass", "flashinfer_trtllm", "cutlass")  # values of `kernel_source`


def rows(data: Path, *, by_source: bool = False) -> list[kernels.Group]:
    """Return the groups of the table whose GPUs are in the library. by_source: separate kernels by implementation, "flash fp8
    @triton".
    """
    shape = ("num_tokens", "hidden_size", "inter_size", "moe_tp_size", "moe_ep_size")
    path = data / "validation" / "serving" / "aic_moe.csv"
    found = kernels.groups(path, _key_and_source if by_source else _key, _columns, shape)
    least = kernels.FEW if by_source else LEAST
    return [group for group in found if len(group) >= least and kernels.gpu_of(group.system) is not None]


def _key(said: Mapping[str, str]) -> str:
    untuned = said["system"] in HOPPER and said["kernel_source"].startswith(UNTUNED)
    return f"{'untuned' if untuned else kernels.LIBRARY[said['source'].partition('/')[0]]} {FORMATS[said['moe_dtype']][0]}"


def _key_and_source(said: Mapping[str, str]) -> str:
    source = next((name for name in SOURCES if name in said["kernel_source"]), said["kernel_source"])
    return f"{_key(said)} @{source}"


def named(group: kernels.Group) -> kernels.Group:
    """Return the group under the name of its kernel only."""
    return replace(group, key=group.key.partition(" @")[0])


def _columns(said: Mapping[str, str]) -> Mapping[str, float]:
    tokens, top_k, experts, ranks = (round(float(said[key])) for key in ("num_tokens", "topk", "num_experts", "moe_ep_size"))
    law = said["distribution"]
    skew = 0.0 if law == "balanced" else float(law.rpartition("_")[2])
    pairs, active, blocks = drawn(tokens, top_k, experts, skew, ranks)
    numbers = {
        "tokens": float(tokens),
        "pairs": pairs,
        "active": active,
        "hidden": float(said["hidden_size"]),
        "inner": float(said["inter_size"]) / float(said["moe_tp_size"]),
        "gates": 1.0 if "nongated" in said["kernel_source"] else 2.0,
        "weight": FORMATS[said["moe_dtype"]][2],
    }
    return numbers | {f"of {rows}": count for rows, count in zip(TILES, blocks, strict=True)}


@functools.lru_cache(maxsize=4096)
def drawn(tokens: int, top_k: int, experts: int, skew: float, ranks: int) -> tuple[float, float, tuple[float, ...]]:
    """Return for the busiest GPU: token-expert pairs, active experts, and blocks for each tile height of `TILES`."""
    each = busiest(tokens_of(tokens, top_k, experts, skew), ranks)
    return float(sum(each)), float(sum(one > 0 for one in each)), blocks_of(each)


def busiest(tokens: tuple[int, ...], ranks: int) -> tuple[int, ...]:
    """Return the experts of the GPU with the most tokens if experts are assigned at random.

    >>> busiest((0, 1, 2, 3), 1)
    (0, 1, 2, 3)
    """
    if ranks <= 1:
        return tokens
    dealt = np.random.default_rng(0).permutation(np.array(tokens))[: len(tokens) // ranks * ranks].reshape(ranks, -1)
    return tuple(int(count) for count in dealt[dealt.sum(axis=1).argmax()])


def call_of(columns: Mapping[str, kernels.Array]) -> ExpertsCall:
    """Return the kernel calls of a group with these columns."""
    numbers: dict[str, Any] = {name: column for name, column in columns.items() if not name.startswith("of ")}
    blocks: Any = tuple(columns[f"of {rows}"] for rows in TILES)
    return ExpertsCall(blocks=blocks, **numbers)


def rates_of(group: kernels.Group) -> KernelRates:
    """Return the rates of the GPU in the kernel's number format."""
    gpu = kernels.gpu_of(group.system)
    assert gpu is not None
    name = group.key.partition(" ")[2]
    return gpu.attending(next(computed for called, computed, _ in FORMATS.values() if called == name))


def predict(group: kernels.Group, kernel: ExpertKernels) -> kernels.Array:
    """Return the time of each row, in seconds."""
    return np.asarray(kernel.seconds(call_of(group.columns), rates_of(group)))


def fit_kernel(
    parts: Sequence[kernels.Group],
    known: ExpertKernels | None = None,
    names: Iterable[str] | None = None,
    rounds: int = 3,
    each: int = 50,
) -> ExpertKernels:
    """Fit one kernel to several groups. known: fixed constants; names: constants to fit."""
    start: dict[str, Any] = {} if known is None else {one.name: float(getattr(known, one.name)) for one in CONSTANTS}
    free = [constant for constant in kernels.near(CONSTANTS, start) if names is None or constant.name in names]

    columns, rates = kernels.together(parts, rates_of)
    call = call_of(columns)

    def seconds(found: Mapping[str, float]) -> kernels.Array:
        return np.asarray(ExpertKernels(**{**start, **found}).seconds(call, rates))

    found, _ = kernels.fitted(seconds, np.concatenate([part.seconds for part in parts]), free, rounds, each)
    return ExpertKernels(**{**start, **found})


def shipped(group: kernels.Group) -> ExpertKernels | None:
    """Return the kernel as in the library."""
    gpu = kernels.gpu_of(group.system)
    return None if gpu is None else gpu.experts.get(group.key)


def left_out(
    found: Sequence[kernels.Group], case: Case, own: bool = False, fits: dict[tuple[str, str], ExpertKernels] | None = None
) -> list[tuple[kernels.Group, kernels.Array]]:
    """Return (rows, predictions by a fit without their device or generation).

    own: also fit three constants to the held-out GPU; fits: fits of an earlier call.
    """

    def fit(parts: Sequence[kernels.Group], known: ExpertKernels | None) -> ExpertKernels:
        return fit_kernel(list(map(named, parts)), known, None if known is None else OWN, rounds=2, each=40)

    said = kernels.left_out_of(
        sorted(found, key=lambda group: group.key), case, fit, _predict, kernels.other_than, own=own, fits=fits
    )
    return [(named(group), seconds) for group, seconds in said]


def _predict(group: kernels.Group, kernel: ExpertKernels) -> kernels.Array:
    return predict(named(group), kernel)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of interpolated rows, and with a GPU or a GPU generation held out."""
    found, apart = rows(data), rows(data, by_source=True)
    fits: dict[tuple[str, str], ExpertKernels] = {}
    return (
        kernels.score("MoE kernels", kernels.held(found, shipped, predict), 0.13),
        kernels.score("MoE kernels, held-out GPU generation", left_out(apart, "generation", fits=fits), 0.18, "cross-validated",
              reached=0.3),
        kernels.score("MoE kernels, held-out GPU", left_out(apart, "device"), 0.18, "cross-validated"),
        kernels.score("MoE kernels, held-out GPU generation, three constants from 60 of its rows",
              left_out(apart, "generation", own=True, fits=fits), 0.18,
              "cross-validated"),
    )  # fmt: skip


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with the device or the generation held out; rows are sampled evenly."""
    found, apart = rows(data), rows(data, by_source=True)
    return kernels.residuals_of("moe", kernels.held(found, shipped, predict), lambda case: left_out(apart, case), _regime)


def _regime(group: kernels.Group, at: int) -> str:
    return "few" if group.columns["pairs"][at] < 64 * max(1.0, group.columns["active"][at]) else "many"
