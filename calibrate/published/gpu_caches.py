"""Bandwidth of GPU caches by working set: gpu-cache, gpu-l2-cache and the other programs of gpu-benches."""

from __future__ import annotations

import functools
import statistics
from dataclasses import replace
from pathlib import Path

from hwsim.devices import Gpu
from hwsim.devices.gpu_memory import Ramp
from hwsim.origins import Case
from published.gpu_benches import GENERATIONS, Point, bandwidths, rate
from published.parts import part
from published.residual import Residual, left_out, of_miss
from published.score import Miss, Score, scored

CACHES = ("l2", "together")


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of published cache rows, of all gpu-benches rows, and of whole L2 curves."""
    points = bandwidths(data)
    held = [_miss(point) for point in points if point.published and not point.fitted]
    caches = [_miss(point) for point in points if point.published and not point.fitted and point.curve in CACHES]
    ramps = [_miss(point) for point in points if not point.published and point.curve == "l2" and not point.fitted]
    return (
        scored("cache bandwidth (gpu-cache, gpu-l2-cache)", caches, 0.08, "interpolated", why=_why),
        scored("bandwidth of caches, of streams by threads, and of small kernels", held, 0.08, "interpolated", why=_why),
        scored(
            "bandwidth by working set, from L2 cache to memory, four GPUs",
            ramps,
            0.05,
            "interpolated",
            metric="mean relative error",
            why=_why,
        ),
    )


@functools.cache
def as_others(name: str, others: tuple[str, ...]) -> Gpu | None:
    """Return the part with the other GPUs' L2 bandwidth per clock and multiprocessor; None if they have none."""
    gpu = part(Gpu, name)
    known = [per for other in others if (per := _per_multiprocessor(part(Gpu, other)))]
    if not known or gpu.l2 is None:
        return None
    bandwidth = statistics.median(known) * (gpu.clock or 1.0) * (gpu.sms or 1)
    return replace(gpu, l2=replace(gpu.l2, bandwidth=bandwidth, ramp=Ramp(0.75, 1.35)))


def _per_multiprocessor(gpu: Gpu) -> float:
    """Return the L2 bandwidth of a multiprocessor in bytes per clock; 0 if unknown."""
    known = gpu.l2.bandwidth if gpu.l2 is not None else None
    return (known or 0.0) / ((gpu.clock or 1.0) * (gpu.sms or 1))


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and the L2 with a GPU (from its generation) or a generation (from its vendor) held out."""
    found = []
    for point in bandwidths(data):
        if point.curve not in CACHES:
            continue
        work = f"{point.curve} of {point.size:.0f} B"
        if not point.fitted:
            found.append(_residual(_miss(point), "known", point.part, work, point.part))
        for case, unit, others in left_out(point.part, GENERATIONS) if point.curve == "l2" else ():
            gpu = as_others(point.part, others)
            if gpu is not None:
                found.append(_residual(point.miss(rate(point, gpu)), case, unit, work, point.part))
    return found


def _residual(miss: Miss, case: Case, unit: str, work: str, device: str) -> Residual:
    return of_miss(miss, "cache", "gpu", case, unit=unit, work=work, device=device, rate=True)


def _miss(point: Point) -> Miss:
    return point.miss(rate(point, part(Gpu, point.part)))


def _why(miss: Miss) -> str:
    if "mi100" in miss.row.lower() or "MI100" in miss.group:
        return "MI100: bandwidth varies by a factor of two between neighbouring sizes"
    if "mi210" in miss.row:
        return "MI210: several work-groups read the same block at once, and L2 sends it only once"
    return ""
