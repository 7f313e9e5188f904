"""Figure of the time that a training loses to failures, by kind of loss and by failed part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hwsim.formats import percent
from hwsim.results.result import Result
from hwsim.results.training_failures import FailureOutcome
from hwsim.views.kit.failure_lines import accounted
from hwsim.views.kit.figure import COLOURS, figure_bytes, open_axes, run_caption, write_title

PANELS: Final = (("by kind of loss", COLOURS[0], ""), ("by failed part, without checkpoints", COLOURS[5], "//"))


def render(result: Result, suffix: str = ".png") -> Iterable[bytes]:
    """Yield the figure of the first training with failure rates: a bar for each loss, the largest first.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf, or no training of the run has failure rates.
    """
    failing = next((training.failing for training in result.trainings if training.failing is not None), None)
    if failing is None:
        raise ValueError(
            "no training of this run has `failures`: add `train: {failures: meta-llama-3, checkpoint: {every: auto}}`"
        )
    (_, *lost), causes = accounted(failing)
    panels = [rows for rows in (lost, causes) if rows]
    heights = [len(rows) + 1.0 for rows in panels]
    with figure_bytes(suffix, height=1.4 + 0.5 * sum(heights)) as (figure, buffer):  # integers
        grid = figure.add_gridspec(max(1, len(panels)), 1, height_ratios=heights or [1.0])
        most = max((part for rows in panels for _, part in rows), default=1.0)
        for number, rows in enumerate(panels):
            _bars(figure.add_subplot(grid[number]), rows, most, PANELS[number])
        write_title(figure, _finding(failing), run_caption(result.workload, result.machine, result.settings))
    return (buffer.getvalue(),)


def _finding(failing: FailureOutcome) -> str:
    goodput = failing.goodput
    (_, *lost), _ = accounted(failing)
    most = f"; the largest loss: {lost[0][0]}" if lost else ""
    low, high = percent(goodput.low), percent(goodput.high)
    sure = f" ({low} to {high})" if low != high else ""
    return f"goodput {percent(goodput.share)}{sure}{most}"


def _bars(axes: Any, rows: Sequence[tuple[str, float]], most: float, look: tuple[str, str, str]) -> None:
    title, colour, hatch = look
    for place, (_, part) in enumerate(rows):
        axes.barh(place, 100 * part, height=0.6, color=colour, hatch=hatch)
        axes.annotate(percent(part), (100 * part, place), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 115 * most)
    axes.set_title(title)
    axes.set_xlabel("share of the time (%)")
    open_axes(axes, "x")
