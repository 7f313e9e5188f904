"""GEMMs: DeepBench, Vidur's profiles, LLMCompass, DeepGEMM and the best shapes of a search.

The `matmul:` constants of a part are fitted to every second GEMM by size, for each source, GPU and number format. "From its
datasheet" replaces all constants fitted to a GPU by medians of the other GPUs.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from hwsim.devices import Gpu, MatmulShape
from hwsim.devices.gpu_matmul import Tiling
from hwsim.devices.gpu_memory import Launch, SustainedBandwidth
from hwsim.origins import Case
from hwsim.units import BYTES
from published.parts import declared, part, table
from published.products import LOOP, Row, rows, seconds_of
from published.residual import Residual, misses, of_miss
from published.score import Miss, Score, held_out, scored

FITTED: Final[Mapping[str, tuple[str, ...]]] = declared("gemm")["fitted"]
GENERATIONS: Final[Mapping[str, str]] = declared("gemm")["generations"]
CLOCKS: Final[Mapping[str, tuple[float, float]]] = declared("gemm")["clocks"]
FEW: Final = 4  # groups with fewer rows are not split and not used for fitting
TINY: Final = 20e-6  # s: minimum time of a GEMM
SKINNY: Final = 128  # minimum rows or columns
SCALE: Final = 0.08  # larger errors have less weight in the fit: they indicate other kernels


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out sizes, of held-out GPUs, and of the GEMMs of LLMCompass."""
    found = list(residuals(data))
    held, sheets = misses(found, "known"), misses(found, "device", "generation")
    return (
        scored("GEMMs, held-out sizes", held, 0.08, "interpolated", why=reason),
        scored("GEMMs, held-out GPU, from its datasheet", sheets, 0.13, "cross-validated", why=reason),
        llmcompass(data),
    )


def reason(miss: Miss) -> str:
    """Return the cause of a large error, if the shape shows it."""
    if miss.error < 2 * SCALE:
        return ""
    m, n, k = (int(side) for side in re.findall(r"\d+", miss.row.split(":")[1])[:3])
    if k >= 100_000:
        return "split-k kernel; each library has its own rule for the number of splits"
    if min(m, n) > 128 and k & (k - 1) == 0 and miss.group.endswith(("MI25", "Edition")):
        return "rows a power of two apart map to one memory channel"
    return ""


def llmcompass(data: Path) -> Score:
    """Return the score of 20 GEMMs of LLMCompass on an A100, with the part as in the library."""
    gpu, found = part(Gpu, "a100-sxm-80gb"), []
    for line in table(data / "oracles" / "llmcompass_measured_matmul_A100.csv"):
        m, n, k = int(line["M"]), int(line["N"]), int(line["K"])
        loop = LOOP["PrincetonUniversity/LLMCompass"]
        row = Row("", "LLMCompass", "A100", "", "fp16", MatmulShape(m, n, k), 2, 2, float(line["ms"]) * 1e-3, "host", loop)
        found.append(Miss(f"LLMCompass: {m} x {n} x {k}", seconds_of(gpu, row), row.seconds, "LLMCompass"))
    return scored("GEMMs of LLMCompass on an A100", found, 0.06, metric="mean relative error", why=reason)


def held_rows(found: Sequence[Row]) -> list[Row]:
    """Return alternate sizes of every source, GPU and number format; small groups are excluded."""
    return held_out(found, lambda row: row.size, lambda row: (row.group, row.dtype, row.width), FEW)


# ---- residuals ----


def shape_regime(m: float, n: float, seconds: float) -> str:
    """Return the regime of a GEMM."""
    return "tiny" if seconds < TINY else "skinny" if min(m, n) <= SKINNY else "big"


def residuals(data: Path) -> Iterator[Residual]:
    """Return interpolated residuals, and every row with the GPU (or its generation) held out."""
    found = rows(data)
    sheet = {name: from_datasheet(name) for name in {row.part for row in found}}
    for row in held_rows(found):
        yield _residual(row, "known", part(Gpu, row.part))
    for row in found:
        twins = any(other != row.part and GENERATIONS.get(other) == GENERATIONS.get(row.part, row.part) for other in FITTED)
        yield _residual(row, "device" if twins else "generation", sheet[row.part])


def _residual(row: Row, case: Case, gpu: Gpu) -> Residual:
    shape = row.product
    return of_miss(
        Miss(row.name(), seconds_of(gpu, row), row.seconds, row.group),
        "product8" if row.dtype in ("fp8", "int8") else "product",
        shape_regime(shape.m, shape.n, seconds_of(part(Gpu, row.part), row)),
        case,
        unit=row.part,
        work=f"{row.source} {row.name().partition(': ')[2]}",
        device=row.part,
    )


# ---- from the datasheet ----


def sustained_clock(name: str) -> float:
    """Return the clock under a power limit: the geometric mean of the promised clock and the peak's clock."""
    base, peak = CLOCKS.get(name, (1.0, 1.0))
    return math.sqrt(base / peak)


def from_datasheet(name: str) -> Gpu:
    """Return a part whose fitted constants are medians of other GPUs, preferably of its generation."""
    gpu = part(Gpu, name)
    others = {peer: part(Gpu, peer) for peer in FITTED if peer != name}
    tilings = {}
    for key in ("fp32", "fp16"):
        found = [(peer, tiling) for peer, other in others.items() for tiling in _alike(peer, other, key)]
        near = [tiling for peer, tiling in found if GENERATIONS.get(peer) == GENERATIONS.get(name, name)]
        median = _median(near or [tiling for _, tiling in found])
        median = replace(median, efficiency=min(1.0, median.efficiency * sustained_clock(name)))
        if key in gpu.flop:
            tilings[key] = replace(median, loads=_per_tile(gpu, key, median))
    launches = [other.launch for other in others.values() if isinstance(other.launch, Launch)]
    launch = Launch(
        statistics.median([launch.stream for launch in launches] or [0.0]),
        graph=statistics.median([launch.graph for launch in launches if launch.graph is not None] or [0.0]),
        host=statistics.median([launch.host for launch in launches if launch.host is not None] or [0.0]),
    )
    measured = [other.sustained for other in others.values()]
    sustained = SustainedBandwidth(
        *(statistics.median([getattr(speed, key.name) for speed in measured]) for key in fields(SustainedBandwidth))
    )
    return replace(gpu, matmul=tilings, launch=launch, sustained=sustained)


def _alike(name: str, gpu: Gpu, key: str) -> list[Tiling]:
    """Return other GPUs' tiles for matrix-unit formats (key fp16) or for other formats, at the peak's clock."""
    formats = [dtype for dtype in FITTED[name] if (dtype == "fp32") == (key == "fp32")]
    found = [replace(gpu.matmul[dtype], loads=_per_tile(gpu, dtype, gpu.matmul[dtype])) for dtype in formats]
    return [replace(tiling, efficiency=min(1.0, tiling.efficiency / sustained_clock(name))) for tiling in found]


def _per_tile(gpu: Gpu, dtype: str, tiling: Tiling) -> float | None:
    """Convert `loads` to and from the tile side at which loading takes as long as computing, which GPUs have in common."""
    if tiling.loads is None or gpu.sms is None:
        return None
    return BYTES[dtype] * tiling.efficiency * gpu.flop[dtype] / gpu.sms / tiling.loads


APART: Final = ("alignment", "rows", "memory", "cast")  # not used for fitting


def _median(tilings: Sequence[Tiling]) -> Tiling:
    """Return the median of each constant."""
    whole = ("smallest", "largest", "splits")
    found: dict[str, Any] = {}
    for name in (field.name for field in fields(Tiling) if field.name not in APART):
        values = [getattr(tiling, name) for tiling in tilings]
        found[name] = statistics.median_low(values) if name in whole else statistics.median(values)
    return replace(tilings[0], **found)
