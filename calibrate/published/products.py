"""Published GEMMs as requests of the op `matmul`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from hwsim.devices import Gpu, MatmulShape, Work
from published.parts import declared, table

NAME: Final = "it"
PARTS: Final[Mapping[str, str]] = declared("products")["parts"]
FORMATS: Final[Mapping[str, tuple[str, float, float]]] = declared("products")["formats"]
LINEAR: Final = ("vidur", "DeepGEMM")  # sources whose second matrix is stored as n x k
# LLMCompass synchronizes after each GEMM in Python. Beyond a part's `launch.host` (of its lightest op, the softmax),
# its GEMMs take this additional time, seen for its smallest ones.
LOOP: Final[Mapping[str, float]] = {"PrincetonUniversity/LLMCompass": 13e-6}
# DeepBench calls the library repeatedly and reads the clock before and after: no GEMM takes less time than the host's
# call. Time in s, by source and hardware: the minimum of the fp16 rows, which take less time on the GPU.
CALLS: Final[Mapping[tuple[str, str], float]] = {("baidu-research/DeepBench", "NVIDIA V100-SXM2-16GB (DGX-1)"): 8e-6}


@dataclass(frozen=True, slots=True)
class Row:
    """One published GEMM."""

    id: str
    source: str
    hardware: str
    part: str
    dtype: str
    product: MatmulShape
    width: float
    out: float
    seconds: float
    start: Literal["stream", "host"]
    loop: float = 0.0  # s: overhead of the benchmark per GEMM
    call: float = 0.0  # s: host time per call, overlapped with earlier calls on the GPU

    @property
    def group(self) -> str:
        return f"{self.source}, {self.hardware}"

    @property
    def size(self) -> float:
        return float(self.product.m * self.product.n * self.product.k * self.product.batch)

    @property
    def work(self) -> Work:
        """Return the GEMM as a request of the op `matmul`."""
        m, n, k, batch = self.product.m, self.product.n, self.product.k, self.product.batch
        return Work(
            flop=2.0 * self.size,
            reads=(m * k + k * n) * batch * self.width,
            writes=m * n * batch * self.out,
            dtype=self.dtype,
            mix="matmul",
            product=self.product,
            start=self.start,
        )

    def name(self) -> str:
        shape = self.product
        batch = f" x {shape.batch}" if shape.batch > 1 else ""
        return f"{self.id}: {shape.m} x {shape.n} x {shape.k}{batch} {self.dtype}"


def rows(data: Path) -> list[Row]:
    """Return the unflagged rows."""
    return [_row(row) for row in table(data / "validation" / "01_gemm.csv") if not row["flag"]]


def _row(said: Mapping[str, str]) -> Row:
    source = re.sub(r"[:@].*", "", said["source"])
    m, n, k = int(said["m"]), int(said["n"]), int(said["k"])
    dtype, width, out = FORMATS[said["precision"]]
    if "DeepBench" in source:  # column-major, as in BLAS: C = A B there is C' = B' A' in row-major order
        m, n = n, m
        if dtype == "fp16":  # it pads every side to a multiple of 8 for the tensor cores
            m, n, k = (8 * math.ceil(side / 8) for side in (m, n, k))
    groups = re.search(r"groups=(\d+)", said["notes"])  # m is per group
    stored = said["trans_a"] == "T" or any(name in source for name in LINEAR)
    product = MatmulShape(m, n, k, int(groups[1]) if groups else 1, stored)
    flop = 2.0 * m * n * k * product.batch
    seconds = float(said["value"]) if said["metric"] == "time" else flop / float(said["value"])
    start: Literal["stream", "host"] = "host" if "LLMCompass" in source else "stream"  # it synchronizes after each GEMM
    hardware = said["hardware"]
    return Row(
        said["id"], source, hardware, PARTS[hardware], dtype, product, width, out, seconds, start,
        loop=LOOP.get(source, 0.0), call=CALLS.get((source, hardware), 0.0),
    )  # fmt: skip


def seconds_of(gpu: Gpu, row: Row) -> float:
    """Return the predicted time of a GEMM, as measured by the benchmark, in seconds."""
    rates = {capacity.name: capacity.rate for capacity in gpu.capacities(NAME)}
    return max(gpu.compute(NAME, row.work).demand.alone(rates), row.call) + row.loop
