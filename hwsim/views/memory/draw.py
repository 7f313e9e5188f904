"""The memory of each device over time as a figure: a step line, and how much the device has.  PNG, SVG or PDF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from hwsim.graph.opgraph import Floats
from hwsim.results.memory import DeviceMemory
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.units import format_quantity
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: Final = 16  # devices drawn
POINTS: Final = 4000  # more of them are drawn as the largest of each column of pixels
NAMES: Final = 4  # values named beside the peak
SIZES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure as bytes; same result, same bytes with the same matplotlib.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    shown = result.memory[:ROWS]
    with figure_bytes(suffix, height=1.2 + 2.2 * max(len(shown), 1)) as (figure, buffer):
        axes = figure.subplots(max(len(shown), 1), 1, sharex=True, squeeze=False)[:, 0]
        if not shown:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, "no value of the run has a known size", ha="center", transform=axes[0].transAxes)
        for each, device in zip(axes, shown, strict=False):
            _draw(each, device, result)
        _, unit = time_scale(result.makespan_s)
        axes[-1].set_xlabel(f"time ({unit})")
        hidden = len(result.memory) - len(shown)
        more = f"; {hidden} more devices not shown" if hidden else ""
        title = figure_title(f"{result.workload} on {result.machine}: memory{more}", result.settings)
        figure.suptitle(title, fontsize="medium")
    return (buffer.getvalue(),)


def _draw(axes: Axes, device: DeviceMemory, result: Result) -> None:
    scale, _ = time_scale(result.makespan_s)
    near = device.size is not None and device.peak >= device.size / 20  # else the line would lie on the ground
    top = max(device.peak, device.size or 0) if near else device.peak
    unit, name = next((pair for pair in SIZES if top >= pair[0]), SIZES[-1])
    time = np.append(device.time.astype(np.float64) / FEMTO, result.makespan_s)
    taken = np.append(device.taken, device.taken[-1:]).astype(np.float64)
    time, taken = thinned(time, taken)
    axes.step(time / scale, taken / unit, where="post", color=COLOURS[0], linewidth=1.2)
    axes.fill_between(time / scale, taken / unit, step="post", color=COLOURS[0], alpha=0.25, linewidth=0)
    axes.plot([device.at_s / scale], [device.peak / unit], marker="o", color=COLOURS[5], markersize=4)
    if device.size is not None and near:
        axes.axhline(device.size / unit, color=COLOURS[5], linestyle="--", linewidth=1)
        if device.fits:
            axes.set_ylim(0, device.size / unit * 1.08)
    if device.fits is False or not near:
        axes.set_ylim(0, device.peak / unit * 1.12 or 1)
    has = "" if device.size is None else f" of {format_quantity(device.size, 'B')}"
    held = ", ".join(f"{each.value} {format_quantity(each.bytes, 'B')}" for each in device.holds[:NAMES])
    rest = f", {len(device.holds) - NAMES} more" if len(device.holds) > NAMES else ""
    late = "" if device.fits else "OUT OF MEMORY, "
    peak, when = format_quantity(device.peak, "B"), format_quantity(device.at_s, "s")
    axes.set_title(f"{device.device}: {late}peak {peak}{has} at {when}: {held}{rest}", fontsize="small", loc="left")
    axes.set_ylabel(name)
    axes.set_xlim(0, result.makespan_s / scale or 1)
    axes.spines[["top", "right"]].set_visible(False)


def thinned(time: Floats, taken: Floats) -> tuple[Floats, Floats]:
    """Of many points, per column of pixels the largest and the last."""
    if len(time) <= POINTS:
        return time, taken
    whole = time[-1] or 1.0
    column = np.minimum((time / whole * (POINTS // 2)).astype(np.int64), POINTS // 2 - 1)  # count
    firsts = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    lasts = np.append(firsts[1:], len(time)) - 1
    largest = np.maximum.reduceat(taken, firsts)
    return np.repeat(time[firsts], 2), np.stack([largest, taken[lasts]], axis=1).ravel()
