"""CNN inference on one GPU: NVIDIA/DeepLearningExamples in PyTorch and TensorFlow.

Convolution constants are those fitted to training, except for Turing, whose rows are in these tables. Framework constants are
fitted to alternate batch sizes of each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from hwsim.models.inference import batch_pass
from published.cnn_rows import GPUS, NETWORKS, last_of, network_of
from published.cnn_training import kernels_of
from published.parts import table
from published.residual import Residual, of_miss
from published.score import Half, Miss, Score, held_out, scored

# Tables under one heading, in their order (NVIDIA/DeepLearningExamples, README of each network):
# (mixed precision, compiled by XLA).
TABLES: Final[Mapping[int, tuple[tuple[bool, bool], ...]]] = {
    3: ((False, False), (True, False), (True, True)),
    4: ((False, False), (False, True), (True, False), (True, True)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measured throughput."""

    id: str
    group: str
    network: str
    gpu: str
    software: str
    dtype: str
    batch: int
    images: float

    @property
    def curve(self) -> tuple[str, str, str, str]:
        return self.group, self.network, self.dtype, self.software

    def said(self) -> str:
        """Return a description of the row."""
        return f"{self.id}: {self.network} {self.dtype}, {self.batch}, {self.software}"


@cache
def rows(data: Path) -> tuple[Row, ...]:
    """Return the rows of networks that are in the library."""
    headed: dict[str, list[list[dict[str, str]]]] = {}
    for row in table(data / "validation" / "09_infer.csv"):
        if row["flag"] or "Classification" not in row["source"] or not last_of(NETWORKS, row["model"]):
            continue
        tables = headed.setdefault(f"{row['source']} {row['hardware']} {row['precision']}", [])
        if row["batch"] == "1" or not tables:
            tables.append([])
        tables[-1].append(row)
    return tuple(_row(row, *kind) for tables in headed.values() for rows, kind in zip(tables, _kinds(tables), strict=True)
                 for row in rows)  # fmt: skip


def _kinds(tables: Sequence[Sequence[Mapping[str, str]]]) -> Sequence[tuple[bool, bool]]:
    return TABLES.get(len(tables)) or [(sheet[0]["precision"] == "fp16", False) for sheet in tables]


def _row(each: Mapping[str, str], mixed: bool, compiled: bool) -> Row:
    hardware = each["hardware"]
    plain = "tf32" if "A100" in hardware else "fp32"
    return Row(
        id=each["id"].rpartition("-")[2],
        group=f"{each['source'].partition('@')[0]} {hardware}",
        network=last_of(NETWORKS, each["model"]),
        gpu=last_of(GPUS, hardware),
        software="pytorch-ngc" if "PyTorch" in each["source"] else "tensorflow-xla" if compiled else "tensorflow-ngc",
        dtype="fp16" if mixed else plain,
        batch=int(each["batch"]),
        images=float(each["value"]),
    )


def predicted(row: Row) -> float:
    """Return the predicted throughput, in images/s."""
    return row.batch / batch_pass(network_of(row.network), row.batch, row.dtype, *kernels_of(row.gpu, row.software)).seconds


def held_rows(found: Sequence[Row]) -> list[Row]:
    """Return alternate batch sizes of each table."""
    return held_out(found, lambda row: row.batch, lambda row: row.curve)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out batch sizes, and of all."""
    found = rows(data)
    held = held_rows(found)
    return (
        _score("images/s, held-out batch sizes", held, "interpolated", 0.153),
        _score(
            "images/s, held-out batch sizes, without TensorFlow's SE-ResNeXt on T4",
            [row for row in held if not slow(row)],
            "interpolated",
        ),
        _score("images/s, all batch sizes", found, "partly fitted", 0.151),
    )


def slow(row: Row) -> bool:
    """Return whether a row has TensorFlow's grouped convolutions on a T4, which take 1.5 to 2.7 times as long as PyTorch's."""
    return row.gpu == "t4" and "next" in row.network and row.software.startswith("tensorflow")


def reason(row: Row) -> str:
    """Return the cause of a large error."""
    if slow(row):
        return "grouped convolutions without a kernel model; PyTorch is 1.5 to 2.7 times faster on the same GPU"
    if row.batch <= 4:
        return "host-bound; each framework has one launch time for all kernels"
    if row.software == "tensorflow-xla" and row.batch <= 8:
        return "host-bound"
    return ""


def residuals(data: Path) -> Iterator[Residual]:
    """Return residuals of the held-out batch sizes."""
    for row in held_rows(rows(data)):
        work = row.said().partition(": ")[2]
        yield of_miss(
            Miss(f"{row.gpu}: {work}", row.batch / predicted(row), row.batch / row.images, row.group),
            "infer",
            "cnn",
            "known",
            unit="",
            work=work,
            device=row.gpu,
        )


def _score(name: str, found: Sequence[Row], half: Half, reached: float | None = None) -> Score:
    misses = [Miss(row.said(), predicted(row), row.images, row.group) for row in found]
    known = {row.said(): row for row in found}
    return scored(name, misses, 0.14, half, why=lambda miss: reason(known[miss.row]), reached=reached)
