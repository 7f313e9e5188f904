"""The figure of a service: latency of requests, queue, KV cache and latency breakdown over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from hwsim.families.serving.autoscaling import steps
from hwsim.families.serving.parts import NAMES, WORDS
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.formats import format_quantity
from hwsim.results.result import Result
from hwsim.views.kit.figure import (
    COLOURS,
    INK,
    PAPER,
    figure_bytes,
    legend_above,
    line_names,
    open_axes,
    push_apart,
    run_caption,
    time_scale,
    write_title,
)

HATCHES: Final = ("", "//", "..")


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Yield the bytes of the figure.

    For each service it shows TTFT over arrival time and its distribution, queue and KV cache over time, and latency breakdowns.

    Raises:
        ValueError: The suffix is not .png, .svg or .pdf, or the run has no service.
    """
    if not result.serving:
        raise ValueError("the run serves no model: expected a workload with `infer`")
    count = len(result.serving)
    rows = 3 + max(len(service.scalings) for service in result.serving)
    with figure_bytes(suffix, height=(10.2 + 2.4 * (rows - 3)) * count) as (figure, buffer):
        heights = [4.0, *[2.4] * (rows - 1)]
        grid = figure.add_gridspec(rows * count, 1, height_ratios=heights * count)
        for number, service in enumerate(result.serving):
            above = grid[rows * number].subgridspec(1, 2, width_ratios=[3, 2])
            left = figure.add_subplot(above[0])
            _plot_requests(left, service)
            _plot_distribution(figure.add_subplot(above[1]), service)
            if count > 1:
                left.set_title(service.name or result.workload)
            _plot_course(figure.add_subplot(grid[rows * number + 1]), service)
            _plot_breakdowns(figure.add_subplot(grid[rows * number + 2]), service)
            for index, scaling in enumerate(service.scalings):
                copies = figure.add_subplot(grid[rows * number + 3 + index])
                steps(copies, scaling, (COLOURS[0], COLOURS[5]))
                if len(service.scalings) > 1:
                    copies.set_ylabel("decode replicas" if index else "prefill replicas")
                legend_above(copies, list(copies.lines))
        more = f"{result.serving[0].requests:,} requests"
        write_title(figure, _title(result.serving[0]), run_caption(result.workload, result.machine, result.settings, more))
    return (buffer.getvalue(),)


def _title(service: ServiceStatistics) -> str:
    """Return the title: the 95th percentile of TTFT and latency."""
    latency = f"end-to-end latency {format_quantity(service.latency.p95, 's')}"
    if service.first_token is None:
        return f"p95 {latency}"
    return f"p95 TTFT {format_quantity(service.first_token.p95, 's')}, p95 {latency}"


def _first_latency(service: ServiceStatistics) -> tuple[str, list[float], float | None]:
    """Return (name, seconds of every request, limit in the file) of TTFT, or of the latency of a model without output."""
    if service.first_token is None:
        return "end-to-end latency", [row.end_s - row.arrival_s for row in service.rows], service.goal.latency
    return "TTFT", [row.first_token_s - row.arrival_s for row in service.rows], service.goal.ttft


def _plot_requests(axes: Any, service: ServiceStatistics) -> None:
    """Plot every request by arrival (pale), the moving median and 95th percentile (lines), and the limit."""
    name, seconds, limit = _first_latency(service)
    order = np.argsort([row.arrival_s for row in service.rows], kind="stable")
    arrivals = np.array([row.arrival_s for row in service.rows])[order]
    scale, unit = time_scale(float(np.median(seconds)))
    times = np.array(seconds)[order] / scale
    axes.plot(arrivals, times, "o", color=COLOURS[0], alpha=0.3, markersize=4, markeredgewidth=0)
    ends = []
    for percent, colour, dash, text in ((50, COLOURS[0], "-", "p50"), (95, COLOURS[5], "--", "p95")):
        reach = max(1, len(times) // 24)
        moving = [float(np.percentile(times[max(0, index - reach) : index + reach + 1], percent)) for index in range(len(times))]
        axes.plot(arrivals, moving, linestyle=dash, color=colour)
        ends.append((moving[-1], text, colour))
    top = float(np.percentile(times, 99)) * 1.25
    if limit is not None:
        axes.axhline(limit / scale, color=INK, linestyle=":", linewidth=1.4)
        axes.annotate(
            f"limit {format_quantity(limit, 's')}",
            (0.0, limit / scale),
            (4, 3),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=11,
        )
        top = max(top, limit / scale * 1.15)
    axes.set_ylim(0, top)
    above = int((times > top).sum())
    axes.set_ylabel(f"{name} ({unit})")
    axes.set_xlabel("arrival (s)" + (f"; {above} point{'s' if above > 1 else ''} above" if above else ""))
    open_axes(axes, "y")
    figure = axes.get_figure()
    figure.draw_without_rendering()
    push_apart(axes, line_names(axes, ends, 4))


def _plot_distribution(axes: Any, service: ServiceStatistics) -> None:
    """Plot the cumulative distribution of TTFT, or of the latency."""
    name, seconds, _ = _first_latency(service)
    ordered = np.sort(seconds)
    scale, unit = time_scale(float(np.median(ordered)))
    axes.plot(ordered / scale, 100.0 * np.arange(1, len(ordered) + 1) / len(ordered), color=COLOURS[0])
    for percent, down in ((50, -4), (95, -26), (99, -12)):
        value = float(np.percentile(ordered, percent)) / scale
        axes.plot([value], [percent], marker="o", color=INK)
        axes.annotate(
            f"p{percent} {format_quantity(value * scale, 's')}",
            (value, percent),
            (8, down),
            textcoords="offset points",
            fontsize=11,
        )
    axes.set_xlim(0, float(np.percentile(ordered, 99)) / scale * 1.9)
    axes.set_ylim(0, 104)
    axes.set_xlabel(f"{name} ({unit})")
    axes.set_ylabel("share of requests (%)")
    open_axes(axes, "y")


def _plot_course(axes: Any, service: ServiceStatistics) -> None:
    """Plot queued and running requests, and the KV cache, over time."""
    states = service.time_series
    times = [state.at_s for state in states]
    axes.step(times, [state.queued for state in states], where="post", color=COLOURS[5], label="queued", linestyle="--")
    axes.step(times, [state.running for state in states], where="post", color=COLOURS[2], label="running")
    axes.set_ylabel("requests")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    handles = list(axes.lines)
    if service.kv_cache_tokens is not None:
        right = axes.twinx()
        shares = [100 * state.kv_cache for state in states]
        handles += right.plot(times, shares, color=COLOURS[7], label="KV cache (right)", linestyle=":")
        right.set_ylabel("KV cache (%)")
        right.set_ylim(0, 105)
    legend_above(axes, handles)


def _plot_breakdowns(axes: Any, service: ServiceStatistics) -> None:
    """Plot the latency breakdown around each percentile."""
    measure = "ttft" if service.first_token is not None else "latency"
    shown = [where for where in service.breakdowns if where.measure == measure]
    names = [name for name in WORDS if any(name in dict(where.parts) for where in shown)]
    scale, unit = time_scale(max((where.mean_s for where in shown), default=1.0))
    left = [0.0] * len(shown)
    for number, name in enumerate(names):
        widths = [dict(where.parts).get(name, 0.0) / scale for where in shown]
        colour = COLOURS[number % len(COLOURS)]
        axes.barh([f"p{where.percentile}" for where in shown], widths, left=left, color=colour, label=WORDS[name], height=0.7,
                  edgecolor=PAPER, hatch=HATCHES[number // 4 % len(HATCHES)])  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_xlabel(f"breakdown of {NAMES[measure]} ({unit})")
    legend_above(axes, axes.get_legend_handles_labels()[0])
