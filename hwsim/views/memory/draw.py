"""Memory use of each device over time as a figure: a step line, and the memory size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity
from hwsim.results.memory import DeviceMemory
from hwsim.views.kit.figure import COLOURS, INK, time_scale
from hwsim.views.kit.panels import panels, step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hwsim.results.result import Result

ROWS: Final = 16  # largest number of devices
NAMES: Final = 4  # largest number of values named at the peak
SIZES: Final = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Return the figure with a panel per device (see `panels`)."""

    def draw(axes: Axes, device: DeviceMemory) -> None:
        _draw(axes, device, result)

    names = (_finding(result.memory), " devices", "no value of the run has a known size")
    return panels(result, suffix, result.memory, draw, most=ROWS, heights=(0.8, 2.6), names=names)


def _finding(devices: Sequence[DeviceMemory]) -> str:
    """Return the peak of the device with the fullest memory."""
    if not devices:
        return "memory"
    fullest = max(devices, key=lambda device: device.peak / device.size if device.size else 0.0)
    size = "" if fullest.size is None else f" of {format_quantity(fullest.size, 'B')}"
    return f"{fullest.device}: peak memory {format_quantity(fullest.peak, 'B')}{size}{'' if fullest.fits else ', out of memory'}"


def _draw(axes: Axes, device: DeviceMemory, result: Result) -> None:
    near = device.size is not None and device.peak >= device.size / 20  # a smaller peak would be on the axis
    top = max(device.peak, device.size or 0) if near else device.peak
    unit, name = next((pair for pair in SIZES if top >= pair[0]), SIZES[-1])
    step(axes, result, device.time, device.taken, unit, 1.2)
    peak_x = device.at_s / time_scale(result.makespan_s)[0]
    axes.plot([peak_x], [device.peak / unit], marker="o", color=COLOURS[5], markersize=7)
    if device.size is not None and near:
        axes.axhline(device.size / unit, color=INK, linestyle="--", linewidth=1.2)
        if device.fits:
            axes.set_ylim(0, device.size / unit * 1.08)
    if device.fits is False or not near:
        axes.set_ylim(0, device.peak / unit * 1.12 or 1)
    size = "" if device.size is None else f" of {format_quantity(device.size, 'B')}"
    values = ", ".join(f"{held.value} {format_quantity(held.bytes, 'B')}" for held in device.allocations[:NAMES])
    values = f": {values}" if values else ""
    rest = f", {len(device.allocations) - NAMES} more" if len(device.allocations) > NAMES else ""
    verdict = "" if device.fits else "OUT OF MEMORY, "
    peak, when = format_quantity(device.peak, "B"), format_quantity(device.at_s, "s")
    axes.set_title(
        f"{device.device}: {verdict}peak {peak}{size} at {when}{values}{rest}", fontsize=12, fontweight="normal", wrap=True
    )
    axes.set_ylabel(name)
