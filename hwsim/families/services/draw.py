"""Figure of services: latencies and requests in flight over time, and the throughput limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from hwsim.families.services.results.responses import ServiceResponses, ThroughputLimit
from hwsim.results.result import Result
from hwsim.views.kit.figure import COLOURS, decades, figure_bytes, open_axes, run_caption, time_scale, write_title

RUNGS = 8


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Yield the figure: latencies and requests in flight of each service over time, and the throughput limits below.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf, or the run has no services.
    """
    if result.services is None:
        raise ValueError("no services in this run: it has no `services:`")
    shown = [answers for answers in result.services.answers if answers.time_series]
    rungs = result.services.throughput_limits[:RUNGS]
    with figure_bytes(suffix, height=5.6 * len(shown) + 0.9 + 0.4 * len(rungs)) as (figure, buffer):
        heights = [*([3, 2] * len(shown)), max(1.0, 0.42 * len(rungs))]
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        for number, answers in enumerate(shown):
            above = figure.add_subplot(grid[2 * number])
            _times(above, answers)
            above.set_title(_answered(answers))
            _there(figure.add_subplot(grid[2 * number + 1], sharex=above), answers)
        _ladder(figure.add_subplot(grid[len(heights) - 1]), rungs)
        write_title(figure, _finding(rungs), run_caption(result.workload, result.machine, result.settings))
    return (buffer.getvalue(),)


def _finding(rungs: Sequence[ThroughputLimit]) -> str:
    if not rungs:
        return "services over time"
    lowest = min(rungs, key=lambda rung: rung.limit_per_s)
    return f"{lowest.called} sets the throughput limit: {_count(lowest.limit_per_s)} requests/s"


def _answered(answers: ServiceResponses) -> str:
    if answers.good >= answers.completed and not answers.refused and not answers.failed:
        return answers.name
    return f"{answers.name}: goodput {_count(answers.goodput_per_s)} requests/s"


def _times(axes: Any, answers: ServiceResponses) -> None:
    times = [(part.p50_s, part.p99_s) if part.throughput_per_s > 0 else (math.nan, math.nan) for part in answers.time_series]
    longest = max((p99 for _, p99 in times if not math.isnan(p99)), default=None)
    if longest is None:
        return
    scale, unit = time_scale(longest)
    ends = [stretch.until_s for stretch in answers.time_series]
    axes.plot(ends, [p50 / scale for p50, _ in times], color=COLOURS[0], label="p50")  # interrupted without responses
    axes.plot(ends, [p99 / scale for _, p99 in times], color=COLOURS[5], linestyle="--", label="p99")
    axes.set_ylabel(f"latency ({unit})")
    axes.set_ylim(bottom=0)
    open_axes(axes, "y")
    _legend(axes)


def _there(axes: Any, answers: ServiceResponses) -> None:
    ends = [stretch.until_s for stretch in answers.time_series]
    axes.plot(ends, [stretch.in_flight for stretch in answers.time_series], color=COLOURS[2], label="in flight")
    if answers.workers is not None:
        queued = [stretch.queued for stretch in answers.time_series]
        axes.plot(ends, queued, color=COLOURS[3], linestyle="--", label="queued for a worker")
    axes.set_ylabel("requests")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    open_axes(axes, "y")
    _legend(axes)


def _legend(axes: Any) -> None:
    """Place the legend above the axes, where it covers no data."""
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, borderaxespad=0.2, handlelength=1.2, columnspacing=0.8)


def _ladder(axes: Any, rungs: Iterable[ThroughputLimit]) -> None:
    """Draw the maximum rate of each resource, the lowest on top."""
    listed = sorted(rungs, key=lambda rung: rung.limit_per_s)
    axes.barh(
        range(len(listed)),
        [rung.limit_per_s for rung in listed],
        color=[COLOURS[5], *[COLOURS[4]] * len(listed)][: len(listed)],
        height=0.7,
    )
    for index, rung in enumerate(listed):
        axes.annotate(
            _count(rung.limit_per_s), (rung.limit_per_s, index), (5, 0), textcoords="offset points", va="center", fontsize=12
        )
    axes.set_yticks(range(len(listed)), [rung.called for rung in listed])
    axes.set_ylim(max(len(listed), 1) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.margins(x=0.12)
    decades(axes.xaxis, _count)
    axes.set_xlabel("maximum rate (requests/s)")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
