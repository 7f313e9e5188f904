"""BERT encoders: tables of NVIDIA/FasterTransformer, including TensorFlow and TorchScript.

A row is one pass of a batch through BERT-base on a T4, V100, A10 or A100. The memory traffic and the launch time of each
program are fitted to alternate sizes. Rows that do not state the real sequence lengths ("effective" FasterTransformer) are
excluded.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hwsim.devices import Gpu, Work
from hwsim.models import Cluster, Framework, KernelTimes, MicrobatchSlice, Transformer, load_framework, load_transformer, one_pass
from published.parts import declared, part, table
from published.residual import Residual, of_miss
from published.score import Miss, Score, held_out, scored

PARTS: Final[Mapping[str, str]] = declared("bert")["parts"]
FORMATS: Final[Mapping[str, str]] = declared("bert")["formats"]
SCALE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """One forward pass."""

    id: str
    group: str
    framework: str
    part: str
    model: Transformer
    slice: MicrobatchSlice
    seconds: float
    said: str

    @property
    def size(self) -> float:
        return float(self.slice.rows * self.slice.tokens * self.model.parameters / self.slice.tensor)

    @property
    def cluster(self) -> Cluster:
        return Cluster(part(Gpu, self.part), 1, 1, {}, math.inf, math.inf)


def rows(data: Path) -> list[Row]:
    """Return the rows with stated sequence lengths."""
    return [row for said in table(data / "validation" / "09_infer.csv") if (row := _row(said)) is not None]


def _row(said: Mapping[str, str]) -> Row | None:
    if (
        "bert_guide" not in said["source"]
        or said["flag"]
        or not said["hidden"]
        or "EFF" in said["notes"]
        or not said["input_len"]
    ):
        return None
    software, notes, layers = said["software"], said["notes"], round(float(said["layers"]))
    if said["precision"] not in FORMATS or layers != 12:  # above the peak: its lengths differ, too
        return None
    dtype = FORMATS[said["precision"]] if "FP16" not in software else "fp16"
    framework = "fastertransformer"
    if software.startswith("TF"):
        framework = "tensorflow-bert"
    elif software.startswith("Torch"):
        framework = "torchscript-bert"
    elif dtype == "int8":
        framework += "-int8-v2" if "v2" in notes or said["precision"] == "int8-v2" else "-int8-v1"
    model = load_transformer("bert-base")
    batch, length, tp = (round(float(said[key] or 1)) for key in ("batch", "input_len", "tp"))
    whole, products = ("fp16", "int8") if dtype == "int8" else (dtype, "")
    part_of = MicrobatchSlice(batch, length, length, tp, dtype=whole, products=products, attention="plain")
    source = f"FasterTransformer, {said['hardware']}"
    text = f"{framework} {said['precision']}, batch {batch} of {length}, tp {tp}"
    return Row(said["id"], source, framework, PARTS[said["hardware"]], model, part_of, float(said["value"]), text)


@functools.cache
def _framework(name: str) -> Framework:
    return load_framework(name)


def seconds_of(row: Row) -> float:
    """Return the predicted time of a pass, in seconds."""
    use = _framework(row.framework)
    return one_pass(
        row.model, row.slice, row.cluster, use, KernelTimes(row.cluster.gpu, use, known=_KNOWN.setdefault(row.part, {}))
    ).seconds


_KNOWN: Final[dict[str, dict[Work, float]]] = {}  # cache: timed kernels by part


def held_rows(found: Iterable[Row]) -> list[Row]:
    """Return alternate sizes of every program, GPU and number format."""
    return held_out(found, lambda row: row.size, lambda row: (row.group, row.framework, row.slice.dtype))


def scores(data: Path) -> tuple[Score, ...]:
    """Return the score of the held-out sizes."""
    held = held_rows(rows(data))
    misses = [Miss(f"{row.id}: {row.said}", seconds_of(row), row.seconds, row.group) for row in held]
    return (
        scored("BERT encoder passes", misses, 0.14, "interpolated", why=reason),
    )  # fmt: skip


def residuals(data: Path) -> Iterator[Residual]:
    """Return residuals of the held-out sizes."""
    for row in held_rows(rows(data)):
        yield of_miss(
            Miss(f"{row.part}: {row.said}", seconds_of(row), row.seconds, row.group),
            "infer",
            "prefill",
            "known",
            unit="",
            work=row.said,
            device=row.part,
        )


def reason(miss: Miss) -> str:
    """Return the cause of a large error."""
    if miss.error < 2 * SCALE:
        return ""
    if "batch 1 " in miss.row:
        return "batch of 1: bound by kernel launches, whose time differs between programs"
    return ""
