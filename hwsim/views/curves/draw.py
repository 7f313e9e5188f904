"""Latency of single requests against the load of their device, as a figure."""

from __future__ import annotations

from collections.abc import Iterable

from hwsim.formats import format_quantity
from hwsim.results.result import Result
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes: a panel per device; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or the run has no curve (see `api.simulate`).
    """
    if not result.curves:
        raise ValueError("no device of this run is simulated request by request: name one with --requests")
    with figure_bytes(suffix, width=8, height=0.4 + 4.2 * len(result.curves)) as (figure, buffer):
        for row, curve in enumerate(result.curves):
            axes = figure.add_subplot(len(result.curves), 1, row + 1)
            scale, unit = time_scale(max(point.p50_s for point in curve.points))
            loads = [100 * point.load for point in curve.points]
            for number, (name, values) in enumerate(curve.columns().items()):
                style = "--" if name == "closed form" else "-"
                axes.plot(loads, [value / scale for value in values], style, color=COLOURS[number], marker=".", label=name)
            most = curve.points[-1].rate / curve.points[-1].load
            axes.set_xlabel(f"load (% of {format_quantity(most, '1/s')})")
            axes.set_ylabel(f"latency ({unit})")
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, 100)
            title = f"{curve.device} of {result.machine}: requests at random instants"
            axes.set_title(figure_title(title, result.settings), fontsize="medium")
            axes.legend(frameon=False, fontsize="small")
    return (buffer.getvalue(),)
