"""Predicted intervals as multiples of the measured values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hwsim.views.kit.figure import COLOURS, INK, figure_bytes, open_axes, write_title


class ScoredRange(NamedTuple):
    """A predicted value and its interval, each over the measured value."""

    name: str
    low: float
    value: float
    high: float


def render(finding: str, ranges: Sequence[ScoredRange], suffix: str = ".png") -> Iterable[bytes]:
    """Draw a row per measured value: its predicted interval as a bar, the predicted value as a dot, the measured value at 1.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    with figure_bytes(suffix, height=0.9 + 0.42 * max(len(ranges), 2)) as (figure, buffer):
        axes = figure.subplots()
        for number, scored in enumerate(ranges):
            colour = COLOURS[2] if scored.low <= 1 <= scored.high else COLOURS[5]
            axes.barh(number, scored.high - scored.low, left=scored.low, height=0.5, facecolor=colour, alpha=0.6)
            axes.plot([scored.value], [number], "o", color=INK, markersize=5)
        axes.axvline(1.0, color=INK, linewidth=1.2)
        axes.set_xscale("log")
        axes.set_yticks(range(len(ranges)), [scored.name for scored in ranges])
        axes.set_ylim(len(ranges) - 0.5, -0.5)
        axes.set_xlabel("predicted / measured")
        open_axes(axes, "x")
        write_title(figure, finding)
    return (buffer.getvalue(),)
