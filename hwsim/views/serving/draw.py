"""The requests of services over time as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwsim.results.result import Result
from hwsim.results.serving import ServiceStatistics
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale
from hwsim.views.serving.parts import NAMES, WORDS


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure: for each service its requests by their arrival, queue and cache over time, and the time of the slow by parts.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or the run has no service.
    """
    if not result.serving:
        raise ValueError("no service in this run: it has no `infer`")
    count = len(result.serving)
    with figure_bytes(suffix, width=8, height=0.4 + 6.4 * count) as (figure, buffer):
        grid = figure.add_gridspec(3 * count, 1, height_ratios=[3, 2, 2] * count)
        for number, service in enumerate(result.serving):
            above = figure.add_subplot(grid[3 * number])
            _requests(above, service)
            title = f"{service.name or result.workload} on {result.machine}"
            above.set_title(figure_title(title, result.settings), fontsize="medium")
            _course(figure.add_subplot(grid[3 * number + 1], sharex=above), service)
            _spread(figure.add_subplot(grid[3 * number + 2]), service)
    return (buffer.getvalue(),)


def _requests(axes: Any, service: ServiceStatistics) -> None:
    """Each request by its arrival, with lines of its service level."""
    at = [row.arrival_s for row in service.rows]
    scale, unit = time_scale(service.latency.p50)
    times = [("whole answer", [row.end_s - row.arrival_s for row in service.rows], COLOURS[0], service.goal.latency)]
    if service.first_token is not None:
        first = [row.first_token_s - row.arrival_s for row in service.rows]
        times.append(("first token", first, COLOURS[1], service.goal.ttft))
    for name, seconds, colour, limit in times:
        axes.plot(at, [each / scale for each in seconds], ".", color=colour, markersize=3, label=name)
        if limit is not None:
            axes.axhline(limit / scale, color=colour, linestyle="--", linewidth=1, label=f"service level of the {name}")
    axes.set_ylabel(f"after arrival ({unit})")
    axes.set_yscale("log")
    sample = f" (a sample of {service.requests:,} requests)" if service.sampled else ""
    axes.set_xlabel(f"arrival (s){sample}")
    axes.legend(frameon=False, fontsize="small", loc="center left")


def _course(axes: Any, service: ServiceStatistics) -> None:
    """Requests that wait and are worked on, and the cache, over time."""
    times = [state.at_s for state in service.course]
    axes.step(times, [state.waiting for state in service.course], where="post", color=COLOURS[2], label="waiting")
    axes.step(times, [state.running for state in service.course], where="post", color=COLOURS[3], label="worked on")
    axes.set_ylabel("requests")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    if service.cache_tokens is not None:
        right = axes.twinx()
        right.plot(times, [100 * state.cache for state in service.course], color=COLOURS[4], label="KV cache")
        right.set_ylabel("KV cache (%)")
        right.set_ylim(0, 105)
        right.legend(frameon=False, fontsize="small", loc="upper right")
    axes.legend(frameon=False, fontsize="small", loc="upper left")


def _spread(axes: Any, service: ServiceStatistics) -> None:
    """The time around each percentile of the first token, or of the answer, by where it goes."""
    measure = "ttft" if service.first_token is not None else "latency"
    shown = [where for where in service.where if where.measure == measure]
    names = [name for name in WORDS if any(name in dict(where.parts) for where in shown)]
    scale, unit = time_scale(max((where.mean_s for where in shown), default=1.0))
    left = [0.0] * len(shown)
    for number, name in enumerate(names):
        widths = [dict(where.parts).get(name, 0.0) / scale for where in shown]
        colour = COLOURS[number % len(COLOURS)]
        axes.barh([f"p{where.percentile}" for where in shown], widths, left=left, color=colour, label=WORDS[name])
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_xlabel(f"{NAMES[measure]} ({unit}), by where it goes")
    axes.legend(frameon=False, fontsize="x-small", loc="lower right")
