"""The interval of a run as a figure: the effect of each error alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from hwsim.formats import format_quantity
from hwsim.results.result import Result
from hwsim.views.bars import draw
from hwsim.views.bars.draw import BarFigure, FigureBar
from hwsim.views.interval.say import errors_of, relative_range
from hwsim.views.kit.figure import run_caption

SHOWN: Final = 8  # largest number of errors


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Draw a bar for each error, largest first, and the interval of the run at the bottom.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf, or the run has services.
    """
    if result.server:
        raise ValueError("a run with services has no single interval: the summary has one per service")
    sure = result.interval
    ends = [(error.name, math.exp(-error.alone), math.exp(error.alone)) for error in errors_of(sure)[:SHOWN]]
    bars = [FigureBar(name, low * sure.value, high * sure.value, whole=True) for name, low, high in ends]
    sides = f" ({relative_range(sure)})" if relative_range(sure) else ""
    finding = f"90 % interval {format_quantity(sure.low, 's')} to {format_quantity(sure.high, 's')}{sides}"
    below = run_caption(result.workload, result.machine, result.settings)
    everything = FigureBar("all sources together", sure.low, sure.high)
    return draw.render(BarFigure(finding, "time", "s", (*bars, everything), centre=sure.value, below=below, legend=False), suffix)
