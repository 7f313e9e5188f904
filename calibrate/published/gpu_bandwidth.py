"""Bandwidth of GPU memory: BabelStream by access mix, and gpu-stream by number of threads."""

from __future__ import annotations

import functools
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Final

from hwsim.devices import Gpu
from hwsim.devices.gpu_memory import SustainedBandwidth, ThreadStream
from hwsim.origins import Case
from published.gpu_benches import STREAMS, Point, bandwidths, rate
from published.parts import declared, part, table
from published.residual import Residual, left_out, of_miss
from published.score import Miss, Score, scored

DEVICES: Final = declared("gpu_bandwidth")["devices"]
MIX: Final = {"copy": (1, 1), "mul": (1, 1), "add": (2, 1), "triad": (2, 1), "dot": (2, 0)}  # arrays read and written
ARRAY: Final = 268.4e6  # B of an array if the result does not state it


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of BabelStream with a part's own constants and with the GPU held out, and of gpu-stream."""
    held, unseen = stream_misses(data)
    curves = [point.miss(rate(point, part(Gpu, point.part))) for point in _curves(data) if not point.fitted]
    return (
        scored("BabelStream on GPUs", held, 0.06, "interpolated"),
        scored(
            "BabelStream on GPUs, held-out GPU: datasheet bandwidth x median efficiency of the vendor's other GPUs",
            unseen,
            0.11,
            "cross-validated",
        ),
        scored(
            "memory bandwidth by number of threads, five GPUs, six kernels",
            curves,
            0.05,
            "interpolated",
            metric="mean relative error",
            why=_why,
        ),
    )


def stream_misses(data: Path) -> tuple[list[Miss], list[Miss]]:
    """Return held-out BabelStream rows with a part's own constants, and all rows with the GPU held out."""
    rows = _babelstream(data)
    held = [_miss(row, part(Gpu, DEVICES[row["hardware"]])) for row in rows[1::2]]
    return held, [_miss(row, _as_the_others(DEVICES[row["hardware"]])) for row in rows]


GENERATIONS: Final = declared("gpu_bandwidth")["generations"]


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with a GPU (from its generation) or a generation (from its vendor) held out."""
    rows = _babelstream(data)
    found = []
    for index, row in enumerate(rows):
        name = DEVICES[row["hardware"]]
        work = f"{row['pattern']} of a long array"
        if index % 2:
            found.append(_residual(_miss(row, part(Gpu, name)), "known", name, work, name))
        for case, unit, others in left_out(name, GENERATIONS):
            found.append(_residual(_miss(row, _as_the_others(name, others)), case, unit, work, name))
    for point in _curves(data):
        if not point.fitted:
            miss = point.miss(rate(point, part(Gpu, point.part)))
            found.append(_residual(miss, "known", point.part, f"{point.curve} of {point.size:.0f} threads", point.part))
    return found


def _residual(miss: Miss, case: Case, unit: str, work: str, device: str) -> Residual:
    return of_miss(miss, "stream", "gpu", case, unit=unit, work=work, device=device, rate=True)


def _why(miss: Miss) -> str:
    if "pt " in miss.row:
        return "stencil: L1 does not keep all the data that neighbouring threads read"
    return ""


def _curves(data: Path) -> list[Point]:
    return [point for point in bandwidths(data) if point.curve in STREAMS and not point.published]


def _babelstream(data: Path) -> list[dict[str, str]]:
    """Return the unflagged rows of GPUs; every second one may be used for fitting."""
    rows = table(data / "validation" / "02_membw.csv")
    return [row for row in rows if row["hardware"] in DEVICES and "UoB-HPC" in row["source"] and not row["flag"]]


def _miss(row: dict[str, str], gpu: Gpu) -> Miss:
    array = float(row["working_set_bytes"] or ARRAY)
    reads, writes = MIX[row["pattern"]]
    cost = gpu.stream("it", ThreadStream(reads=reads * array, writes=writes * array))
    seconds = cost.demand.alone({capacity.name: capacity.rate for capacity in gpu.capacities("it")})
    group = f"{row['source'].split(':')[0]} {row['hardware']}"
    return Miss(f"{row['id']} {row['pattern']}", (reads + writes) * array / seconds, float(row["value"]), group)


@functools.cache
def _as_the_others(name: str, among: tuple[str, ...] = ()) -> Gpu:
    """Return the part with the median efficiency of its vendor's other GPUs, or of all others, for any access mix."""
    known = [generation for generation in GENERATIONS if generation != name]
    others = among or [gpu for gpu in known if GENERATIONS[gpu][1] == GENERATIONS[name][1]] or known
    common = statistics.median(part(Gpu, other).sustained.part(2.0, 1.0) for other in others)
    return replace(part(Gpu, name), sustained=SustainedBandwidth(common, common, common))
