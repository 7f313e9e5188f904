"""The requests of services over time as a figure."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.results.result import Result
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure: for each service the requests by their arrival, and below it the queue and the cache over time.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or the run has no service.
    """
    if not result.serving:
        raise ValueError("no service in this run: it has no `infer`")
    with figure_bytes(suffix, width=8, height=0.4 + 4.6 * len(result.serving)) as (figure, buffer):
        grid = figure.add_gridspec(2 * len(result.serving), 1, height_ratios=[3, 2] * len(result.serving))
        for number, service in enumerate(result.serving):
            above = figure.add_subplot(grid[2 * number])
            at = [row.arrival_s for row in service.rows]
            scale, unit = time_scale(service.latency.p50)
            answers = [(row.end_s - row.arrival_s) / scale for row in service.rows]
            above.plot(at, answers, ".", color=COLOURS[0], markersize=3, label="whole answer")
            if service.first_token is not None:
                first = [(row.first_token_s - row.arrival_s) / scale for row in service.rows]
                above.plot(at, first, ".", color=COLOURS[1], markersize=3, label="first token")
            above.set_ylabel(f"after arrival ({unit})")
            above.set_yscale("log")
            above.set_title(
                figure_title(f"{service.name or result.workload} on {result.machine}", result.settings), fontsize="medium"
            )
            above.legend(frameon=False, fontsize="small", loc="center left")
            below = figure.add_subplot(grid[2 * number + 1], sharex=above)
            times = [state.at_s for state in service.course]
            below.step(times, [state.waiting for state in service.course], where="post", color=COLOURS[2], label="waiting")
            below.step(times, [state.running for state in service.course], where="post", color=COLOURS[3], label="worked on")
            below.set_ylabel("requests")
            below.set_ylim(bottom=0)
            below.set_xlabel("time (s)")
            if service.cache_tokens is not None:
                right = below.twinx()
                right.plot(times, [100 * state.cache for state in service.course], color=COLOURS[4], label="KV cache")
                right.set_ylabel("KV cache (%)")
                right.set_ylim(0, 105)
                right.legend(frameon=False, fontsize="small", loc="upper right")
            below.legend(frameon=False, fontsize="small", loc="upper left")
    return (buffer.getvalue(),)
