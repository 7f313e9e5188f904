"""LLM inference kernels: profiles of Vidur and LLMServingSim.

A row is one kernel, or a part of a layer, on one GPU: GEMMs, norms, rotary embeddings, activations, embeddings, and attention
in prefill and decode. The number of kernels per op of a framework, and its memory traffic relative to fused kernels, are fitted
to alternate sizes. GPUs without measured GEMMs have their `matmul:` and `attention:` fitted to the same half.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hwsim.devices import Gpu
from hwsim.models import Framework, Kernel, KernelTimes, MicrobatchSlice, Transformer, embedding, forward, load_framework, output
from hwsim.models.architectures.slices import product
from hwsim.models.framework import Style
from hwsim.origins import Case
from published import bare, gemm
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, held_out, scored

PARTS: Final[Mapping[str, str]] = declared("inference")["parts"]
OPS: Final[Mapping[str, str]] = declared("inference")["ops"]
SCALE: Final = 0.08
TINY: Final = 10e-6  # s: minimum time of a kernel without a GEMM
MIDDLE: Final = ("moved", "flop", "start", "walk")  # of a framework style


@dataclass(frozen=True, slots=True)
class Row:
    """One profiled kernel."""

    id: str
    group: str
    what: str
    framework: str
    part: str
    kernel: Kernel
    seconds: float
    said: str

    @property
    def size(self) -> float:
        return self.kernel.work.flop + self.kernel.work.traffic

    @property
    def op(self) -> str:
        """Kind of kernel, as in `ops:` of a framework."""
        return "attention" if self.what in ("decode", "prefill") else self.what

    def name(self) -> str:
        return f"{self.id}: {self.said}"


def rows(data: Path) -> list[Row]:
    """Return the unflagged profiles of single kernels, without MoE."""
    found = []
    for said in table(data / "validation" / "09_infer.csv"):
        profiled = "LLMServingSim:profiler" in said["source"] or "vidur" in said["source"]
        if profiled and not said["flag"] and said["hidden"]:
            found.append(_row(said))
    return found


def _whole(said: Mapping[str, str], key: str, default: int = 0) -> int:
    return round(float(said[key])) if said[key] else default


def _row(said: Mapping[str, str]) -> Row:
    hidden, heads = _whole(said, "hidden"), _whole(said, "heads")
    gated = "phi" not in said["model"].lower()
    model = Transformer(
        layers=_whole(said, "layers", 1),
        hidden=hidden,
        heads=heads,
        kv_heads=_whole(said, "kv_heads", heads),
        ffn=_whole(said, "ffn"),
        gated=gated,
        vocab=_whole(said, "vocab", 32000),
        positions="rotary",
        norm="rmsnorm",
        bias=False,
    )
    what, tp, tokens = said["kernel_or_phase"], _whole(said, "tp", 1), _whole(said, "tokens", 1)
    batch = _whole(said, "batch", 1)
    if what == "attention decode":
        slice_ = MicrobatchSlice(batch, 1, _whole(said, "input_len"), tp)
    elif what == "attention prefill":
        slice_ = MicrobatchSlice(batch, tokens, tokens + _whole(said, "input_len"), tp)
    else:
        slice_ = MicrobatchSlice(1, tokens, tokens, tp)
    source = said["source"]
    framework = "sarathi-serve" if "vidur" in source else "transformers" if "/v0/" in source else "vllm"
    short = re.sub(r"[:@].*", "", source) + (" v0" if framework == "transformers" else "")
    kind = OPS.get(what, "product")
    group = f"{short}, {said['hardware']}"
    text = f"{said['model']} {what}, {tokens} tokens, tp {tp}"
    if what.startswith("attention"):
        text += f", batch {batch}, {_whole(said, 'input_len')} before"
    return Row(said["id"], group, kind if not what.startswith("attention") else what.removeprefix("attention "), framework,
               PARTS[said["hardware"]], _kernel(model, slice_, what), float(said["value"]), text)  # fmt: skip


def _kernel(model: Transformer, part: MicrobatchSlice, what: str) -> Kernel:
    """Return the library's kernel of that name."""
    h, t, f, rows = model.hidden, part.tensor, model.of_ffn, part.rows
    shapes = {
        "q_proj": (model.queries // t, h),
        "k_proj": (max(model.of_head, model.keys // t), h),
        "v_proj": (max(model.of_head, model.keys // t), h),
        "qkv_proj": ((model.queries + 2 * model.keys) // t, h),
        "o_proj": (h, model.queries // t),
        "gate_proj": (f // t, h),
        "up_proj": (f // t, h),
        "gate_up_proj": (2 * f // t, h),
        "down_proj": (h, f // t),
        "lm_head": (model.vocab // t, h),
    }
    if what in shapes:
        columns, depth = shapes[what]
        return product(what, rows, columns, depth, part)
    wanted = OPS[what]
    if wanted == "embedding":
        return embedding(model, part)[0]
    return next(kernel for kernel in (*forward(model, part), *output(model, part)) if kernel.name == wanted)


@functools.cache
def _framework(name: str) -> Framework:
    return load_framework(name)


def seconds_of(row: Row, gpu: Gpu | None = None, framework: Framework | None = None) -> float:
    """Return the predicted time of a kernel, in seconds."""
    return KernelTimes(gpu or part(Gpu, row.part), framework or _framework(row.framework)).seconds(row.kernel)


def held_rows(found: Iterable[Row]) -> list[Row]:
    """Return alternate sizes of every source, GPU and kind of kernel."""
    return held_out(found, lambda row: row.size, lambda row: (row.group, row.what))


def missed(found: Iterable[Row]) -> list[Miss]:
    """Return each row with its prediction."""
    return [Miss(row.name(), seconds_of(row), row.seconds, row.group) for row in found]


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of both profilers, and of prefill and decode attention."""
    held = held_rows(rows(data))
    layers = [row for row in held if row.what not in ("decode", "prefill")]
    return (
        _score("inference kernels, Vidur", [row for row in layers if row.framework == "sarathi-serve"], 0.10),
        _score("inference kernels, LLMServingSim", [row for row in layers if row.framework != "sarathi-serve"], 0.10),
        _score("prefill attention kernels", [row for row in held if row.what == "prefill"], 0.10),
        _score("decode attention kernels", [row for row in held if row.what == "decode"], 0.10),
    )


def _score(name: str, found: Sequence[Row], bound: float) -> Score:
    misses = missed(found)
    return scored(name, misses, bound, "interpolated", why=reason)


def reason(miss: Miss) -> str:
    """Return the cause of a large error."""
    product = "proj" in miss.row or "lm_head" in miss.row
    small = miss.measured < 1e-5 and miss.error >= 2 * SCALE and not product
    return "a few microseconds: bound by launch latency, which differs between runs" if small else ""


# ---- residuals ----


def residuals(data: Path) -> Iterator[Residual]:
    """Return interpolated residuals, and every row with its GPU, or its framework's ops, held out."""
    found = rows(data)
    frameworks = {name: _as_others(name, {row.framework for row in found}) for name in {row.framework for row in found}}
    gpus = {
        name: replace(gemm.from_datasheet(name), attention=bare.gpu(name, "generation").attention)
        for name in {row.part for row in found}
    }
    for row in held_rows(found):
        yield _residual(row, "known", "", seconds_of(row))
    for row in found:
        case: Case = "generation" if row.op == "attention" else "device"  # attention kernels are then those of the vendor
        yield _residual(row, case, row.part, seconds_of(row, gpus[row.part]))
        if row.what != "product":
            yield _residual(row, "source", row.framework, seconds_of(row, framework=frameworks[row.framework]))


def _as_others(name: str, names: Iterable[str]) -> Framework:
    """Return the framework with the median ops of the other frameworks."""
    own, ops = _framework(name), {}
    for op in own.ops:
        others = [_framework(other).ops.get(op) for other in sorted(names) if other != name]
        near = [other for other in others if other is not None and other.kernels]  # fused ops have no time of their own
        middle = {key: statistics.median(getattr(style, key) for style in near) for key in MIDDLE} if near else {}
        ops[op] = Style(kernels=statistics.median_low([style.kernels for style in near]), **middle) if near else Style()
    return replace(own, ops=ops)


def _residual(row: Row, case: Case, unit: str, seconds: float) -> Residual:
    alone, shape = seconds_of(row), row.kernel.work.product
    if row.what == "product":
        topic, regime = "product", gemm.shape_regime(shape.m, shape.n, alone) if shape else "big"
    elif row.op == "attention":
        topic, regime = "attention", "decode" if row.what == "decode" else "prefill"
    else:
        topic, regime = "elementwise", "tiny" if alone < TINY else "big"
    return of_miss(
        Miss(row.name(), seconds, row.seconds, row.group),
        topic,
        regime,
        case,
        unit=unit,
        work=f"{row.framework} {row.said}",
        device=row.part,
    )
