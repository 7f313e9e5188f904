"""The time over one parameter, and over a grid of up to three parameters, for the page and for offline pages."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hwsim.api import Run
from hwsim.engine import Deadlock
from hwsim.explorer.answer import instead
from hwsim.explorer.sliders import Slider
from hwsim.results.activities import bounds_of
from hwsim.spec import SpecError
from hwsim.ticks import TooLong

BUDGET: Final = 0.5  # s of computing per answer
MOST_POINTS: Final = 2500
CAUSES: Final = 3
Runs = Callable[[Mapping[str, str]], Run]


def curve(runs: Runs, settings: Mapping[str, str], path: str, values: Sequence[str]) -> dict[str, Any]:
    """Return the times for as many values of one parameter as the budget allows; `left` has the remaining values."""
    began, points = time.monotonic(), []
    for index, value in enumerate(values):
        if index and time.monotonic() - began > BUDGET:
            break
        run, mistake = try_run(runs, {**settings, path: value})
        points.append(
            [value, None, mistake, None] if run is None else [value, run.makespan_s, _limit(run), instead(run, "measure")]
        )
    return {"path": path, "points": points, "left": list(values[len(points) :])}


def picked(slider: Slider, text: str, steps: int) -> list[int]:
    """Return the indices of at most `steps` values of a slider: the set one, both ends, and others evenly spaced."""
    last = len(slider.values) - 1
    at = slider.values.index(text) if text in slider.values else slider.at
    if last + 1 <= steps:
        return list(range(last + 1))
    even = [round(place * last / (steps - 1)) for place in range(steps)]
    inner = even[1:-1] or even[:1]
    if at not in even:
        even[even.index(min(inner, key=lambda place: (abs(place - at), place)))] = at
    return sorted(set(even))


def grid(
    runs: Runs,
    settings: Mapping[str, str],
    axes: Sequence[tuple[Slider, Sequence[int]]],
    shown: Callable[[Run], dict[str, Any]],
    until: float,
) -> dict[str, Any]:
    """Return the time at each point of up to three axes, in C order, and complete answers on the axes through the set point.

    Args:
        runs: function that simulates with settings.
        settings: settings of the set point.
        axes: sliders, with indices of their values.
        shown: function that returns the complete answer of a run.
        until: deadline on the monotonic clock, after which points are not computed.
    """
    axes = [(slider, _possible(runs, settings, slider, places)) for slider, places in axes]
    set_places = [_own(slider, places, settings) for slider, places in axes]
    whole_runs = dict[str, Any]()
    points = list(itertools.product(*(range(len(places)) for _, places in axes)))
    order = sorted(range(len(points)), key=lambda at: (sum(a != b for a, b in zip(points[at], set_places, strict=True)) > 1, at))
    rows: list[tuple[Any, ...]] = [(None, [], "not computed", None)] * len(points)  # (seconds, shares, text, measure)
    done = 0
    for index in order:
        point = points[index]
        if time.monotonic() > until:
            break
        chosen = {slider.path: slider.values[places[step]] for (slider, places), step in zip(axes, point, strict=True)}
        run, mistake = try_run(runs, {**settings, **chosen})
        rows[index] = (
            (None, [], mistake, None) if run is None else (run.makespan_s, _shares(run), _limit(run), instead(run, "measure"))
        )
        done += 1
        if run is not None and sum(a != b for a, b in zip(point, set_places, strict=True)) <= 1:
            whole_runs[",".join(map(str, point))] = shown(run)
    answers, limits, says, numbers = map(list, zip(*rows, strict=True))
    return {
        "axes": [
            {"path": slider.path, "label": slider.label, "unit": slider.unit,
             "values": [slider.values[place] for place in places], "numbers": [slider.numbers[place] for place in places],
             "at": set_place, "log": slider.log}
            for (slider, places), set_place in zip(axes, set_places, strict=True)
        ],
        "answers": answers,
        "measure": numbers,
        "bounds": limits,
        "text": says,
        "runs": whole_runs,
        "stopped": done < len(points),
    }  # fmt: skip


def _possible(runs: Runs, settings: Mapping[str, str], slider: Slider, places: Sequence[int]) -> list[int]:
    """Return the places whose values are not refused beside the other settings, and the file's own place."""
    tried = ((place, try_run(runs, {**settings, slider.path: slider.values[place]})[0]) for place in places)
    return [place for place, run in tried if run is not None or place == slider.at]


def _own(slider: Slider, places: Sequence[int], settings: Mapping[str, str]) -> int:
    """Return the index, among the chosen values, of the set value."""
    text = settings.get(slider.path, slider.text)
    at = slider.values.index(text) if text in slider.values else slider.at
    return min(range(len(places)), key=lambda index: abs(places[index] - at))


def try_run(runs: Runs, settings: Mapping[str, str]) -> tuple[Run | None, str]:
    """Return the run with settings, or None and the first error in words."""
    try:
        return runs(settings), ""
    except (SpecError, TooLong, Deadlock) as error:
        mistakes = getattr(error, "mistakes", ())
        return None, mistakes[0].message if mistakes else str(getattr(error, "message", error)).partition("\n")[0]


def _shares(run: Run) -> list[list[Any]]:
    makespan = run.timeline.makespan_fs or 1
    return [[part.bound.full, part.time_fs / makespan] for part in bounds_of(run.timeline, run.devices)[:CAUSES]]


def _limit(run: Run) -> str:
    shares = _shares(run)
    return str(shares[0][0]) if shares else "nothing"
