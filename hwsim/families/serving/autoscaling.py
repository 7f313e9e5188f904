"""Autoscaling in views: a line of the summary, an entry of the JSON document and a plot."""

from __future__ import annotations

from typing import Any

from hwsim.families.serving.results.autoscaling import AutoscalingStatistics
from hwsim.formats import format_count, format_quantity, format_share
from hwsim.views.kit.document import select_attributes


def count(scaling: AutoscalingStatistics) -> str:
    """Return the range of the number of replicas."""
    return f"{scaling.most}" if scaling.least == scaling.most else f"{scaling.least} to {scaling.most}"


def line(scaling: AutoscalingStatistics) -> str:
    """Return replicas, GPU-hours paid for, and the requests that waited for a replica."""
    changes = f"{scaling.starts} started, {scaling.stops} stopped"
    replicas = f"{scaling.mean:.3g} on average, at most {scaling.peak}; {changes}"
    saved = f"{format_share(scaling.saved)} less than with {scaling.most} always on"
    paid = f"{format_count(scaling.gpu_hours)} GPU-hours, {saved}"
    if not scaling.waited:
        return f"{replicas}; {paid}"
    mean, longest = (format_quantity(seconds, "s") for seconds in (scaling.waited_s / scaling.waited, scaling.longest_s))
    waited = f"{scaling.waited:,} request{'s' if scaling.waited > 1 else ''} waited for a replica"
    return f"{replicas}; {paid}; {waited}, {mean} on average, at most {longest}"


def as_dict(scaling: AutoscalingStatistics) -> dict[str, Any]:
    """Return the entry of the JSON document; keys end in their unit."""
    plain = "least most gpus span_s starts stops peak paid_s starting_s waited waited_s longest_s"
    return {
        **select_attributes(scaling, *plain.split(), copies_mean="mean", saved_share="saved"),
        "gpu_hours": scaling.gpu_hours,
        "changes": [change._asdict() for change in scaling.changes],
        "lives": [life._asdict() for life in scaling.lives],
    }


def steps(axes: Any, scaling: AutoscalingStatistics, colours: tuple[str, str]) -> None:
    """Plot the replicas that are paid for, and the ready replicas, over time."""
    times = [*(change.at_s for change in scaling.changes), scaling.span_s]
    for name, colour, dash in (("on", colours[0], "-"), ("ready", colours[1], "--")):
        values = [getattr(change, name) for change in scaling.changes]
        label = "paid for" if name == "on" else "ready"
        axes.step(times, [*values, values[-1]], where="post", color=colour, linestyle=dash, label=label)
    axes.set_ylabel("replicas")
    axes.set_xlabel("time (s)")
    axes.set_ylim(0, scaling.most + 0.5)
    axes.set_yticks(range(0, scaling.most + 1, max(1, scaling.most // 4)))
