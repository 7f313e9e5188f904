"""BabelStream on all devices together: GPUs and CPUs, each by its own model."""

from __future__ import annotations

from pathlib import Path

from published import cpu_bandwidth, gpu_bandwidth
from published.score import Score, group_median, worst_of


def scores(data: Path) -> tuple[Score, ...]:
    """The half that nothing was fitted to, and all rows from datasheets with the efficiency of the other devices."""
    held, unseen = (
        gpus + cpus for gpus, cpus in zip(gpu_bandwidth.stream_misses(data), cpu_bandwidth.stream_misses(data), strict=True)
    )
    return (
        Score(
            name="BabelStream on GPUs and CPUs",
            metric="group median",
            value=group_median(held)[0],
            bound=0.06,
            rows=len(held),
            half="held out",
            worst=worst_of(held),
            notes=f"90th percentile {group_median(held)[1]:.1%}.",
        ),
        Score(
            name="BabelStream on GPUs and CPUs, from datasheets",
            metric="group median",
            value=group_median(unseen)[0],
            bound=0.11,
            rows=len(unseen),
            half="not fitted",
            worst=worst_of(unseen),
            notes=f"90th percentile {group_median(unseen)[1]:.1%}.",
        ),
    )


def fit(data: Path) -> None:
    """As of both kinds of device."""
    gpu_bandwidth.fit(data)
    cpu_bandwidth.fit(data)
