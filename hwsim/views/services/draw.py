"""Services under load over time, and the ladder of their limits, as a figure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hwsim.results.result import Result
from hwsim.results.services.answers import Answers, Rung
from hwsim.views.kit.figure import COLOURS, figure_bytes, figure_title, time_scale

RUNGS = 8


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """The figure: of each service with a course its answers' times and the requests there, and at the foot the ladder.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf, or the run has no services.
    """
    if result.services is None:
        raise ValueError("no services in this run: it has no `services:`")
    shown = [answers for answers in result.services.answers if answers.course]
    rungs = result.services.ladder[:RUNGS]
    with figure_bytes(suffix, width=8, height=1.6 + 4.2 * len(shown) + 0.3 * len(rungs)) as (figure, buffer):
        heights = [*([3, 2] * len(shown)), max(1.0, 0.35 * len(rungs))]
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        for number, answers in enumerate(shown):
            above = figure.add_subplot(grid[2 * number])
            _times(above, answers)
            above.set_title(figure_title(f"{answers.name} on {result.machine}", result.settings), fontsize="medium")
            _there(figure.add_subplot(grid[2 * number + 1], sharex=above), answers)
        _ladder(figure.add_subplot(grid[len(heights) - 1]), rungs)
    return (buffer.getvalue(),)


def _times(axes: Any, answers: Answers) -> None:
    """Percentiles of the answers of each stretch of the run."""
    course = [stretch for stretch in answers.course if stretch.answers_per_s > 0]
    if not course:
        return
    scale, unit = time_scale(max(stretch.p50_s for stretch in course))
    at = [stretch.until_s for stretch in course]
    axes.plot(at, [stretch.p50_s / scale for stretch in course], color=COLOURS[0], label="p50")
    axes.plot(at, [stretch.p99_s / scale for stretch in course], color=COLOURS[1], label="p99")
    axes.set_ylabel(f"answer ({unit})")
    axes.set_yscale("log")
    axes.legend(frameon=False, fontsize="small")


def _there(axes: Any, answers: Answers) -> None:
    """Requests there, and in the line."""
    at = [stretch.until_s for stretch in answers.course]
    axes.plot(at, [stretch.there for stretch in answers.course], color=COLOURS[2], label="there at once")
    if answers.workers is not None:
        axes.plot(at, [stretch.waiting for stretch in answers.course], color=COLOURS[3], label="in line for a worker")
    axes.set_ylabel("requests")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    axes.legend(frameon=False, fontsize="small")


def _ladder(axes: Any, rungs: Iterable[Rung]) -> None:
    """Requests a second that each resource allows."""
    listed = list(reversed(list(rungs)))
    names = [f"{rung.kind} {rung.name}" if rung.kind != "capacity" else rung.name for rung in listed]
    axes.barh(names, [rung.limit_per_s for rung in listed], color=COLOURS[4], height=0.6)
    axes.set_xscale("log")
    axes.set_xlabel("requests a second that it allows")
    axes.tick_params(axis="y", labelsize="small")
