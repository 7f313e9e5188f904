"""The interval of a run as a figure: how far each error alone moves the answer."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import Final

from hwsim.formats import format_quantity
from hwsim.results.result import Result
from hwsim.views.interval.say import errors_of, within
from hwsim.views.kit.figure import COLOURS, SOFT, about, figure_bytes, open_axes, time_scale, titled

SHOWN: Final = 8
NAME: Final = 36  # letters of a line of an error's name


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """A bar for each error, the largest first, and at the foot the interval of the run.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or the run has services.
    """
    if result.server:
        raise ValueError("a run with services has an interval for each service: see the summary")
    sure = result.interval
    scale, unit = time_scale(sure.value or 1.0)
    errors = errors_of(sure)[:SHOWN]
    rows = [(error.name, error.alone) for error in errors]
    with figure_bytes(suffix, height=1.0 + 0.5 * (len(rows) + 1)) as (figure, buffer):
        axes = figure.add_subplot()
        for place, (_, half) in enumerate(rows):
            low, high = sure.value * math.exp(-half), sure.value * math.exp(half)
            axes.barh(place, (high - low) / scale, left=low / scale, height=0.6, color=COLOURS[0])
        axes.barh(len(rows), (sure.high - sure.low) / scale, left=sure.low / scale, height=0.6, color=COLOURS[5], hatch="//")
        axes.axvline(sure.value / scale, color=SOFT, linestyle="--")
        axes.set_yticks(
            range(len(rows) + 1), ["\n".join(textwrap.wrap(name, NAME)) for name in (*(name for name, _ in rows), "all together")]
        )
        axes.set_ylim(len(rows) + 0.5, -0.5)
        axes.set_xlabel(f"time ({unit})")
        axes.use_sticky_edges = False
        axes.margins(x=0.08)
        open_axes(axes, "x")
        sides = f" ({within(sure)})" if within(sure) else ""
        finding = f"9 of 10 such runs take {format_quantity(sure.low, 's')} to {format_quantity(sure.high, 's')}{sides}"
        titled(figure, finding, about(result.workload, result.machine, result.settings))
    return (buffer.getvalue(),)
