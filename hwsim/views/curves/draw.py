"""Latency of single requests against the load of their device, as a figure."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import format_quantity, percent
from hwsim.results.requests import LatencyCurve
from hwsim.results.result import Result
from hwsim.views.kit.figure import (
    COLOURS,
    DASHES,
    MARKERS,
    figure_bytes,
    legend_below,
    open_axes,
    run_caption,
    time_scale,
    write_title,
)


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure as bytes, with a panel per device; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf, or the run has no curve (see `api.simulate`).
    """
    if not result.curves:
        raise ValueError("no device of this run is simulated request by request: name one with --requests")
    with figure_bytes(suffix, height=0.4 + 3.8 * len(result.curves)) as (figure, buffer):
        for row, curve in enumerate(result.curves):
            axes = figure.add_subplot(len(result.curves), 1, row + 1)
            scale, unit = time_scale(max(point.p50_s for point in curve.points))
            loads = [100 * point.load for point in curve.points]
            for number, (name, values) in enumerate(curve.columns().items()):
                axes.plot(loads, [value / scale for value in values], DASHES[number % len(DASHES)], color=COLOURS[number],
                          marker=MARKERS[number], label=name)  # fmt: skip
            most = curve.points[-1].rate / curve.points[-1].load
            axes.set_xlabel(f"load (% of {format_quantity(most, '1/s')})")
            axes.set_ylabel(f"latency ({unit})")
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, 100)
            axes.set_title(f"{curve.device}: Poisson arrivals")
            open_axes(axes)
        legend_below(figure, figure.axes[0].lines)
        write_title(figure, _finding(result.curves[0]), run_caption(result.workload, result.machine, result.settings))
    return (buffer.getvalue(),)


def _finding(curve: LatencyCurve) -> str:
    """Return the p99 latency at the lowest and the highest load."""
    low, high = curve.points[0], curve.points[-1]
    slow, quiet = (format_quantity(point.p99_s, "s") for point in (high, low))
    least, most = percent(low.load, ".0f"), percent(high.load, ".0f")
    return f"{curve.device}: p99 latency {quiet} at {least} load, {slow} at {most} load"
