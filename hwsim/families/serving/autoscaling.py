"""Autoscaling in views: a line of the summary, an entry of the JSON document and a plot."""

from __future__ import annotations

from typing import Any

from hwsim.families.serving.results.autoscaling import AutoscalingStatistics
from hwsim.formats import format_count, format_quantity, format_share
from hwsim.views.kit.document import select_attributes


def count(scaling: AutoscalingStatistics) -> str:
    """Return the range of the number of replicas."""
    return " to ".join(map(str, dict.fromkeys((scaling.min_replicas, scaling.max_replicas))))


def line(scaling: AutoscalingStatistics) -> str:
    """Return replicas, GPU-hours paid for, and the requests that waited for a replica."""
    changes = f"{scaling.starts} started, {scaling.stops} stopped"
    replicas = f"{scaling.replicas_mean:.3g} on average, at most {scaling.replicas_peak}; {changes}"
    saved = f"{format_share(scaling.saved_share)} less than with {scaling.max_replicas} always on"
    paid = f"{format_count(scaling.gpu_hours)} GPU-hours, {saved}"
    if not scaling.waits:
        return f"{replicas}; {paid}"
    mean, longest = (format_quantity(seconds, "s") for seconds in (scaling.wait_s / scaling.waits, scaling.max_wait_s))
    waited = f"{scaling.waits:,} request{'s' if scaling.waits > 1 else ''} waited for a replica"
    return f"{replicas}; {paid}; {waited}, {mean} on average, at most {longest}"


def as_dict(scaling: AutoscalingStatistics) -> dict[str, Any]:
    """Return the entry of the JSON document; keys end in their unit."""
    plain = "min_replicas max_replicas replicas_mean replicas_peak gpus span_s starts stops paid_s saved_share starting_s waits"
    return {
        **select_attributes(scaling, *plain.split(), "wait_s", "max_wait_s"),
        "gpu_hours": scaling.gpu_hours,
        "changes": [change._asdict() for change in scaling.changes],
        "lifetimes": [life._asdict() for life in scaling.lifetimes],
    }


def steps(axes: Any, scaling: AutoscalingStatistics, colours: tuple[str, str]) -> None:
    """Plot the replicas that are paid for, and the ready replicas, over time."""
    times = [*(change.at_s for change in scaling.changes), scaling.span_s]
    for name, colour, dash in (("paid", colours[0], "-"), ("ready", colours[1], "--")):
        values = [getattr(change, name) for change in scaling.changes]
        label = "paid for" if name == "paid" else "ready"
        axes.step(times, [*values, values[-1]], where="post", color=colour, linestyle=dash, label=label)
    axes.set_ylabel("replicas")
    axes.set_xlabel("time (s)")
    axes.set_ylim(0, scaling.max_replicas + 0.5)
    axes.set_yticks(range(0, scaling.max_replicas + 1, max(1, scaling.max_replicas // 4)))
