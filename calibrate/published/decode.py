"""Attention kernels of the decode phase: paged caches of vLLM, TensorRT-LLM and SGLang on nine GPUs, plain and latent.

The tables of ai-dynamo/aiconfigurator are by batch, cached tokens, heads, and number format of the cache. Half of the shapes of
each kernel and GPU are used for fitting. If a GPU generation is held out, constants are fitted to all other generations; a
second comparison fits three constants to 60 shapes of the held-out GPU. TensorRT-LLM rows on A100 are excluded if they imply a
bandwidth above the memory's.

Two laws relate the generations. The rate at which a multiprocessor reads one strip, from memory or the last cache, is
proportional to its 16-bit FLOP/s, although all multiprocessors together read at memory bandwidth. Launch times are constant in
cycles. Within one generation, constants are carried over unchanged: printed clocks differ, but kernel times do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.devices import AttentionCall
from hwsim.devices.gpu_attention import WIDE, AttentionKernels, DecodeKernel
from hwsim.origins import Case
from published import kernels
from published.attention import EAGER, HOST, LEAST, WINDOW, rates_of
from published.residual import Residual
from published.score import Score

LATENT: Final = 288.0  # half of the 576 values of a latent vector, which serve as keys and values
SERVERS: Final = ("b200_sxm", "b300_sxm", "gb200", "gb300")
FEWEST: Final = 11  # rows of such a kernel per GPU; four GPUs are fitted together
OPERATIONS: Final = 2.0 * (576 + 512)
CONSTANTS: Final = (
    kernels.Constant("start", 9e-6, 1e-6, 2e-4),
    kernels.Constant("reading", 0.85, 0.05, 1.0),
    kernels.Constant("rate", 30e9, 1e9, 3e11),
    kernels.Constant("cached", 40e9, 2e9, 1e12),
    kernels.Constant("share", 0.4, 0.005, 1.0),
    kernels.Constant("filled", 1.0, 0.02, 60.0),
    kernels.Constant("joining", 2e-6, 1e-8, 6e-5),
    kernels.Constant("each", 3e-7, 1e-8, 3e-5),
)
LEFT: Final = ("flash", "flash kv8", "tensorrt", "tensorrt kv8")
OWN: Final = ("start", "reading", "each")
SPEED, CLOCK = 7.5e12, 1.9e9  # 16-bit FLOP/s and clock (Hz) of the reference multiprocessor of cross-generation constants
FAST: Final = 1.1  # minimum read rate of all multiprocessors over memory bandwidth: the slowest kernel of nine GPUs
Cut = tuple[int, int | None, bool]  # heads, widest, lone


def rows(data: Path) -> list[kernels.Group]:
    """Return the groups of both tables whose GPUs are in the library."""
    folder = data / "validation" / "serving"
    shape = ("batch_size", "step", "num_heads", "num_key_value_heads")
    found = kernels.groups(folder / "aic_generation_attention.csv", _key, _plain, shape)
    found += kernels.groups(folder / "aic_generation_mla.csv", _latent, _latents, ("batch_size", "step", "num_heads"))
    found = [group.of(group.seconds > HOST) if group.key in EAGER else group for group in found]
    found = [group.of(possible(group)) if group.system == "a100_sxm" and group.key == "tensorrt" else group for group in found]
    return [
        group for group in found
        if len(group) >= (FEWEST if group.key.endswith(" wide") else LEAST) and kernels.gpu_of(group.system) is not None
    ]  # fmt: skip


def _key(said: Mapping[str, str]) -> str:
    name = kernels.LIBRARY[said["source"].partition("/")[0]]
    width = " kv8" if said["kv_cache_dtype"] == "fp8" else ""
    return name + width + (" window" if 0 < float(said["window_size"] or 0) < WINDOW else "")


def _plain(said: Mapping[str, str]) -> Mapping[str, float]:
    return {
        "sequences": float(said["batch_size"]),
        "cached": float(said["step"]),
        "heads": float(said["num_heads"]),
        "kv_heads": float(said["num_key_value_heads"]),
        "head": float(said["head_dim"]),
        "window": float(said["window_size"] or 0),
        "kv_width": 1.0 if said["kv_cache_dtype"] == "fp8" else 2.0,
    }


def _latent(said: Mapping[str, str]) -> str:
    """Return the latent-attention groups; Blackwell servers have a separate kernel for tiles of at least 64 query heads."""
    width = " kv8" if said["kv_cache_dtype"] == "fp8" else ""
    wide = " wide" if said["system"] in SERVERS and float(said["num_heads"]) >= WIDE else ""
    return kernels.LIBRARY[said["source"].partition("/")[0]] + width + " latent" + wide


def _latents(said: Mapping[str, str]) -> Mapping[str, float]:
    size = {"sequences": float(said["batch_size"]), "cached": float(said["step"]), "heads": float(said["num_heads"])}
    width = 1.0 if said["kv_cache_dtype"] == "fp8" else 2.0
    return {**size, "kv_heads": 1.0, "head": LATENT, "kv_width": width, "latent": OPERATIONS}


def call_of(columns: Mapping[str, kernels.Array]) -> AttentionCall:
    """Return the kernel calls of a group with these columns."""
    numbers: dict[str, Any] = dict(columns)
    return AttentionCall(queries=1.0, warm=1.0, **numbers)


def possible(group: kernels.Group) -> Any:
    """Return whether a row's cache traffic does not exceed the memory bandwidth."""
    call = call_of(group.columns)
    size: Any = call.keys
    return size / group.seconds <= rates_of(group).bandwidth


def cuts(group: kernels.Group) -> tuple[Cut, ...]:
    """Return the possible splits of strips: those stated in the library's source, or else all candidates.

    FlashAttention 2 does not split a strip with its own head. Before Blackwell, TensorRT-LLM processes at most 32 query heads
    together.
    """
    if group.key.startswith("tensorrt"):
        widest = None if kernels.GENERATION[group.system] == "blackwell" else 32
        return tuple((heads, widest, True) for heads in (8, 16, 32, 64))
    if kernels.KIND[kernels.GENERATION[group.system]] == "threads" and "kv8" not in group.key:
        return ((16, None, False), (64, None, False))
    return tuple((heads, None, True) for heads in (8, 16, 32, 64))


def kernel_of(cut: Cut, found: Mapping[str, float]) -> DecodeKernel:
    """Return a kernel with these constants."""
    heads, widest, lone = cut
    known: dict[str, Any] = dict(found)
    return DecodeKernel(heads=heads, widest=widest, lone=lone, **known)


def predict(group: kernels.Group, kernel: DecodeKernel) -> kernels.Array:
    """Return the time of each row, in seconds."""
    return np.asarray(kernel.parts(call_of(group.columns), rates_of(group)).seconds)


def by_law(group: kernels.Group, kernel: DecodeKernel) -> kernels.Array:
    """Return the times of rows by a kernel fitted to other generations."""
    return predict(group, on(kernel, *unit(group)))


def unit(group: kernels.Group) -> tuple[float, float, float]:
    """Return a multiprocessor relative to the reference multiprocessor: in FLOP/s and in cycles; and its bandwidth in B/s."""
    gpu = kernels.gpu_of(group.system)
    assert gpu is not None
    assert gpu.sms is not None
    assert gpu.clock is not None
    return gpu.flop["bf16"] / gpu.sms / SPEED, gpu.clock / CLOCK, gpu.memory.bandwidth / gpu.sms


def on(kernel: DecodeKernel, speed: Any, clock: Any, memory: Any) -> DecodeKernel:
    """Return a kernel of several generations on a GPU with these multiprocessors; accepts numbers or arrays."""
    rate: Any = np.maximum(kernel.rate * speed, FAST * memory)
    return replace(kernel, rate=rate, cached=kernel.cached * speed, start=kernel.start / clock)


def fit_kernel(
    parts: Sequence[kernels.Group],
    known: DecodeKernel | None = None,
    names: Iterable[str] | None = None,
    rounds: int = 3,
    each: int = 60,
    *,
    law: bool = False,
) -> DecodeKernel:
    """Fit one kernel to several groups. known: fixed constants; names: constants to fit; law: over several generations."""
    columns, rates = kernels.together(parts, rates_of)
    units = [unit(part) if law else (1.0, 1.0, 0.0) for part in parts]
    own = [np.repeat(column, [len(part) for part in parts]) for column in zip(*units, strict=True)]
    call = call_of(columns)
    measured = np.concatenate([group.seconds for group in parts])
    start = {} if known is None else {constant.name: float(getattr(known, constant.name)) for constant in CONSTANTS}
    free = [constant for constant in kernels.near(CONSTANTS, start) if names is None or constant.name in names]

    def seconds(cut: Cut, found: Mapping[str, float]) -> kernels.Array:
        return np.asarray(on(kernel_of(cut, {**start, **found}), *own).parts(call, rates).seconds)

    every = [(known.heads, known.widest, known.lone)] if known else dict.fromkeys(cut for part in parts for cut in cuts(part))
    cut, found = kernels.best_of(every, seconds, measured, free, rounds, each)
    return kernel_of(cut, {**start, **found})


def shipped(group: kernels.Group) -> DecodeKernel | None:
    """Return the kernel as in the library."""
    gpu = kernels.gpu_of(group.system)
    known = gpu.attention if gpu is not None else None
    return known.decode.get(group.key) if isinstance(known, AttentionKernels) and gpu is not None else None


def left_out(
    found: Sequence[kernels.Group], case: Case, own: bool = False, fits: dict[tuple[str, str], DecodeKernel] | None = None
) -> list[tuple[kernels.Group, kernels.Array]]:
    """Return (rows, predictions by a fit without their device or generation).

    own: also fit three constants to the held-out GPU; fits: fits of an earlier call.
    """
    law = case == "generation"

    def fit(parts: Sequence[kernels.Group], known: DecodeKernel | None) -> DecodeKernel:
        return fit_kernel(parts, known, None if known is None else OWN, rounds=2, each=40, law=law)

    groups_of = [group for key in LEFT for group in found if group.key == key]
    said, others = (by_law, kernels.other_than) if law else (predict, kernels.fed_alike)
    return kernels.left_out_of(groups_of, case, fit, said, others, own=own, fits=fits)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of interpolated rows (plain and latent), and with a GPU or a GPU generation held out."""
    found = rows(data)
    known = kernels.held(found, shipped, predict)
    fits: dict[tuple[str, str], DecodeKernel] = {}
    return (
        kernels.score("decode kernels", [pair for pair in known if "latent" not in pair[0].key], 0.10),
        kernels.score("decode kernels, latent attention (MLA)", [pair for pair in known if "latent" in pair[0].key], 0.10,
              reached=0.14),
        kernels.score("decode kernels, held-out GPU generation", left_out(found, "generation", fits=fits), 0.18,
                      "cross-validated", reached=0.22),
        kernels.score("decode kernels, held-out GPU", left_out(found, "device"), 0.18, "cross-validated"),
        kernels.score("decode kernels, held-out GPU generation, three constants from 60 of its rows",
              left_out(found, "generation", own=True, fits=fits), 0.11,
              "cross-validated", reached=0.12),
    )  # fmt: skip


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with the device or the generation held out; rows are sampled evenly."""
    found = rows(data)
    return kernels.residuals_of("attention", kernels.held(found, shipped, predict), lambda case: left_out(found, case), _regime)


def _regime(group: kernels.Group, _: int) -> str:
    return "mla" if "latent" in group.key else "decode"
