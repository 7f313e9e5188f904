"""Latency of GPU caches and memories: one thread that follows pointers (gpu-latency)."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

from hwsim.devices import Accesses, Gpu
from hwsim.devices.gpu_access import latency
from hwsim.devices.gpu_memory import Ramp
from published.gpu_benches import GENERATIONS, Point, latencies, middle
from published.parts import part
from published.residual import Residual, left_out, of_miss
from published.score import Miss, Score, scored

COUNT = 1e6


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of the published rows and of whole curves."""
    points = [point for point in latencies(data) if not point.fitted]
    rows = [_miss(point) for point in points if point.published]
    curves = [_miss(point) for point in points if not point.published]
    return (
        scored("latency of dependent reads by working set", rows, 0.04, "interpolated", why=_why),
        scored(
            "latency of dependent reads, whole curves of five GPUs",
            curves,
            0.04,
            "interpolated",
            metric="mean relative error",
            why=_why,
        ),
    )


@functools.cache
def as_others(name: str, others: tuple[str, ...]) -> Gpu:
    """Return the part with the other GPUs' latencies: L1 in cycles, L2 and memory in seconds.

    L2 and memory have their own clocks: over four generations, their latencies differ by 2 and 10 % in seconds, but by a third
    in cycles of the multiprocessors.
    """
    gpu = part(Gpu, name)
    known = [part(Gpu, other) for other in others]
    second = middle(peer.l2.latency for peer in known if peer.l2)
    far = middle((peer.l2.far or 0.0) for peer in known if peer.l2) or second
    miss = middle(peer.l2.miss for peer in known if peer.l2)
    first = middle(peer.l1.latency * (peer.clock or 0.0) for peer in known if peer.l1)
    l1 = gpu.l1 and replace(gpu.l1, latency=(first or 0.0) / (gpu.clock or 1.0), chase=Ramp(0.95, 1.3))
    l2 = gpu.l2 and replace(
        gpu.l2,
        latency=second or 0.0,
        far=0.0 if gpu.l2.near is None else (far or 0.0),
        miss=miss or 0.0,
        chase=Ramp(0.95, 1.5),
        near_chase=Ramp(0.95, 1.5),
    )
    return replace(gpu, l1=l1, l2=l2)


def residuals(data: Path) -> list[Residual]:
    """Return interpolated residuals, and those with a GPU (from its generation) or a generation (from its vendor) held out."""
    found = []
    for point in latencies(data):
        work = f"a chain in {point.size:.0f} B"
        if not point.fitted:
            found.append(of_miss(_miss(point), "latency", "gpu", "known", unit=point.part, work=work, device=point.part))
        for case, unit, others in left_out(point.part, GENERATIONS):
            if any(l2.miss > 0 for other in others if (l2 := part(Gpu, other).l2) is not None):
                miss = point.miss(latency(as_others(point.part, others).hierarchy, point.size))
                found.append(of_miss(miss, "latency", "gpu", case, unit=unit, work=work, device=point.part))
    return found


def _miss(point: Point) -> Miss:
    """Return a prediction by the public model: a million dependent reads."""
    gpu = part(Gpu, point.part)
    cost = gpu.access("it", Accesses(count=COUNT, size=8, pattern="dependent", working_set=point.size))
    return point.miss(cost.demand.body({capacity.name: capacity.rate for capacity in gpu.capacities("it")}) / COUNT)


def _why(miss: Miss) -> str:
    return "MI210: page tables beyond 128 MB are not modelled" if "mi210" in miss.row else ""
