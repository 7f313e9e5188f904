"""Attention kernels of the prefill phase: kernels of vLLM, TensorRT-LLM and SGLang on nine GPUs.

The tables of ai-dynamo/aiconfigurator contain FlashAttention 2 and 3 and the kernels of FlashInfer and TensorRT-LLM, by head
size and length, in 16 bits, in 8 bits, and with an 8-bit cache; also latent attention and image encoders. Half of the shapes of
each kernel and GPU are used for fitting. If a GPU generation is held out, its constants are fitted to GPUs whose matrix units
get operands in the same way, with the law of head sizes; a second comparison fits three constants to 60 shapes of the held-out
GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.devices import AttentionCall, Gpu
from hwsim.devices.gpu_attention import AttentionKernels, KernelRates, PrefillKernel
from hwsim.origins import Case
from published import kernels
from published.residual import Residual
from published.score import Score

LONG: Final = 2048
WINDOW: Final = 1024  # sliding windows below this length skip keys
EAGER: Final = ("flash latent", "flash kv8 latent")  # launched one by one by the host: times below `HOST` are host times
HOST: Final = 4e-4
LEAST: Final = 30  # minimum rows of a group
CONSTANTS: Final = (
    kernels.Constant("start", 8e-6, 5e-7, 1e-4),
    kernels.Constant("prologue", 150.0, 1.0, 3000.0),
    kernels.Constant("lost", 0.5, 0.005, 6.0),
    kernels.Constant("queries", 1.0, 0.01, 6.0),
    kernels.Constant("keys", 2.0, 0.01, 20.0),
    kernels.Constant("alone", 0.8, 0.3, 1.5),
    kernels.Constant("passing", 50e9, 5e9, 1e12),
)
LAW: Final = (kernels.Constant("efficiency", 0.75, 0.1, 1.2), kernels.Constant("exponentials", 0.8, 0.05, 10.0))
LEFT: Final = ("flash", "flash kv8", "tensorrt", "tensorrt kv8", "tensorrt fp8")  # kernels of several generations
OWN: Final = ("start", "efficiency", "passing")
TRIED: Final = ((64, False), (128, False), (256, False), (128, True))


def rows(data: Path) -> list[kernels.Group]:
    """Return the groups of all tables whose GPUs are in the library."""
    folder = data / "validation" / "serving"
    shape = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim")
    found = kernels.groups(folder / "aic_context_attention.csv", _key, _plain, shape)
    found += kernels.groups(
        folder / "aic_encoder_attention.csv", _encoder, _encoded, ("batch_size", "isl", "num_heads", "head_dim")
    )
    found += kernels.groups(folder / "aic_context_mla.csv", _latent, _latents, ("batch_size", "isl", "num_heads"))
    found = [group.of(group.seconds > HOST) if group.key in EAGER else group for group in found]
    return [group for group in found if len(group) >= LEAST and kernels.gpu_of(group.system) is not None]


def _key(said: Mapping[str, str]) -> str:
    name = kernels.LIBRARY[said["source"].partition("/")[0]]
    width = " fp8" if said["attn_dtype"] == "fp8" else " kv8" if said["kv_cache_dtype"] == "fp8" else ""
    return name + width + (" window" if 0 < float(said["window_size"] or 0) < WINDOW else "")


def _plain(said: Mapping[str, str]) -> Mapping[str, float]:
    return {
        "sequences": float(said["batch_size"]),
        "queries": float(said["isl"]),
        "heads": float(said["num_heads"]),
        "kv_heads": float(said["num_key_value_heads"]),
        "head": float(said["head_dim"]),
        "window": float(said["window_size"] or 0),
        "kv_width": 1.0 if said["kv_cache_dtype"] == "fp8" else 2.0,
    }


def _encoder(said: Mapping[str, str]) -> str:
    return kernels.LIBRARY[said["source"].partition("/")[0]] + " encoder"


def _encoded(said: Mapping[str, str]) -> Mapping[str, float]:
    heads = float(said["num_heads"])
    size = {"sequences": float(said["batch_size"]), "queries": float(said["isl"]), "heads": heads, "kv_heads": heads}
    return {**size, "head": float(said["head_dim"]), "causal": 0.0, "written": 0.0}


def _latent(said: Mapping[str, str]) -> str:
    width = " fp8" if said["mla_dtype"] == "fp8" else " kv8" if said["kv_cache_dtype"] == "fp8" else ""
    return kernels.LIBRARY[said["source"].partition("/")[0]] + width + " latent"


def _latents(said: Mapping[str, str]) -> Mapping[str, float]:
    """Return one row per head, with 160 columns: the average of keys (192 wide) and values (128 wide)."""
    heads = float(said["num_heads"])
    size = {"sequences": float(said["batch_size"]), "queries": float(said["isl"]), "heads": heads, "kv_heads": heads}
    return {**size, "head": 160.0, "kv_width": 1.0 if said["kv_cache_dtype"] == "fp8" else 2.0}


def call_of(columns: Mapping[str, kernels.Array]) -> AttentionCall:
    """Return the kernel calls of a group with these columns."""
    numbers: dict[str, Any] = dict(columns)
    return AttentionCall(cached=0.0 * numbers["queries"], warm=1.0, **numbers)


def rates_of(group: kernels.Group, gpu: Gpu | None = None) -> KernelRates:
    """Return the rates of the GPU in the kernel's number format."""
    gpu = gpu or kernels.gpu_of(group.system)
    assert gpu is not None
    return gpu.attending(computes(group) or "bf16")


def computes(group: kernels.Group) -> str:
    """Return the number format of a kernel's matmuls if it differs from that of q: some kernels with an 8-bit cache convert q
    too.

    TensorRT-LLM with an 8-bit cache takes as long as in 8 bits throughout on Hopper and Blackwell. FlashInfer on Blackwell
    exceeds the 16-bit peak.
    """
    if " fp8" in group.key or group.key.endswith(" kv8 latent wide"):
        return "fp8"
    generation, library = kernels.GENERATION[group.system], group.key.partition(" ")[0]
    eight = " kv8" in group.key and kernels.KIND[generation] == "shared" and (library == "tensorrt" or generation == "blackwell")
    return "fp8" if eight and " latent" not in group.key else ""


def kernel_of(rows: int, packed: bool, found: Mapping[str, float], shares: Mapping[float, float] | None = None) -> PrefillKernel:
    """Return a kernel with these constants."""
    known: dict[str, Any] = {name: value for name, value in found.items() if not name.startswith("share")}
    table = {f"{head:g}": share for head, share in (shares or {}).items()}
    return PrefillKernel(rows=rows, packed=packed, share=table, **known)


def predict(group: kernels.Group, kernel: PrefillKernel) -> kernels.Array:
    """Return the time of each row, in seconds."""
    call, rates = call_of(group.columns), rates_of(group)
    heads = group.columns["head"]
    share: Any = np.zeros(len(group))
    for head in set(heads.tolist()):
        share[heads == head] = kernel.reached(head, rates)
    return np.asarray(kernel.parts(call, rates, share).seconds)


def fit_pooled(
    parts: Sequence[kernels.Group],
    known: PrefillKernel | None = None,
    names: Iterable[str] | None = None,
    rounds: int = 3,
    each: int = 60,
) -> PrefillKernel:
    """Fit one kernel to several GPUs with the law of head sizes. known: fixed constants; names: constants to fit."""
    columns, rates = kernels.together(parts, rates_of)
    call = call_of(columns)
    measured = np.concatenate([group.seconds for group in parts])
    start = {} if known is None else {term.name: float(getattr(known, term.name)) for term in (*CONSTANTS, *LAW)}
    constants = kernels.near((*CONSTANTS, *LAW), start)
    free = [constant for constant in constants if names is None or constant.name in names]

    def seconds(cut: tuple[int, bool], found: Mapping[str, float]) -> kernels.Array:
        kernel = kernel_of(*cut, {**start, **found})
        return np.asarray(kernel.parts(call, rates, kernel.law(call.head, rates)).seconds)

    cuts = TRIED if known is None else ((known.rows, known.packed),)
    cut, found = kernels.best_of(cuts, seconds, measured, free, rounds, each)
    return kernel_of(*cut, {**start, **found})


def shipped(group: kernels.Group) -> PrefillKernel | None:
    """Return the kernel as in the library."""
    gpu = kernels.gpu_of(group.system)
    known = gpu.attention if gpu is not None else None
    return known.prefill.get(group.key) if isinstance(known, AttentionKernels) and gpu is not None else None


# ---- cross-validation ----


def left_out(
    found: Sequence[kernels.Group], case: Case, own: bool = False, fits: dict[tuple[str, str], PrefillKernel] | None = None
) -> list[tuple[kernels.Group, kernels.Array]]:
    """Return (rows, predictions by a fit without their device or generation).

    Only GPUs whose matrix units get operands in the same way are used. If none remains in the generation (or at all), the rows
    are skipped. own: also fit three constants to the held-out GPU; fits: fits of an earlier call.
    """

    def fit(parts: Sequence[kernels.Group], known: PrefillKernel | None) -> PrefillKernel:
        return fit_pooled(parts, known, None if known is None else OWN, rounds=2, each=40)

    groups_of = [group for key in LEFT for group in found if group.key == key]
    return kernels.left_out_of(groups_of, case, fit, by_law, kernels.fed_alike, own=own, fits=fits)


def by_law(group: kernels.Group, kernel: PrefillKernel) -> kernels.Array:
    """Return the times of rows by a kernel fitted to several GPUs: its efficiency follows the law of head sizes."""
    call, rates = call_of(group.columns), rates_of(group)
    share: Any = kernel.law(call.head, rates)
    return np.asarray(kernel.parts(call, rates, share).seconds)


# ---- scores and residuals ----


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of interpolated rows, and with a GPU or GPU generation held out."""
    found = rows(data)
    known = kernels.held(found, shipped, predict)
    plain = [(group, said) for group, said in known if not group.key.endswith(("latent", "encoder"))]
    others = [(group, said) for group, said in known if group.key.endswith(("latent", "encoder"))]
    long = [(group.of(group.columns["queries"] >= LONG), said[group.columns["queries"] >= LONG]) for group, said in plain]
    fits: dict[tuple[str, str], PrefillKernel] = {}
    return (
        kernels.score("prefill kernels, prompts from 2,048 tokens", [pair for pair in long if len(pair[0])], 0.06),
        kernels.score("prefill kernels, prompts of any length", plain, 0.09),
        kernels.score("prefill kernels, latent attention (MLA) and encoders", others, 0.09),
        kernels.score("prefill kernels, held-out GPU generation", left_out(found, "generation", fits=fits), 0.18,
                      "cross-validated"),
        kernels.score("prefill kernels, held-out GPU", left_out(found, "device"), 0.18, "cross-validated"),
        kernels.score("prefill kernels, held-out GPU generation, three constants from 60 of its rows",
              left_out(found, "generation", own=True, fits=fits), 0.11,
              "cross-validated", reached=0.118),
    )  # fmt: skip


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with the device or the generation held out; rows are sampled evenly."""
    found = rows(data)
    return kernels.residuals_of("attention", kernels.held(found, shipped, predict), lambda case: left_out(found, case), _regime)


def _regime(group: kernels.Group, at: int) -> str:
    return "prefill" if group.columns["queries"][at] >= LONG else "short"
