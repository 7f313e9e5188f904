"""BabelStream on all devices: GPUs and CPUs, each with its own model."""

from __future__ import annotations

from pathlib import Path

from published import cpu_bandwidth, gpu_bandwidth
from published.score import Score, scored


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of held-out rows, and of held-out devices with the efficiency of the other devices."""
    held, unseen = (
        gpus + cpus for gpus, cpus in zip(gpu_bandwidth.stream_misses(data), cpu_bandwidth.stream_misses(data), strict=True)
    )
    return (
        scored("BabelStream on GPUs and CPUs", held, 0.06, "interpolated"),
        scored("BabelStream on GPUs and CPUs, held-out device, from its datasheet", unseen, 0.11, "cross-validated"),
    )
