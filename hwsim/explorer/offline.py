"""Offline pages without a browser or a server: `hwsim explore --save`, and the pieces of the chapter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwsim.explorer.effects import effects, shown_first
from hwsim.explorer.opened import opened
from hwsim.explorer.requests import state_of
from hwsim.explorer.saved import NotSaved, saved
from hwsim.explorer.sliders import Slider, sliders
from hwsim.explorer.worker import WorkerState
from hwsim.spec import Place, SpecError, did_you_mean

if TYPE_CHECKING:
    from hwsim.workload.sources import Source

WEIGHING: Final = 10.0  # s in which the strongest sliders are found
AXES: Final = 3
UNKNOWN: Final = {"time": "", "limit": "", "change": "", "curve": None, "done": False}  # a prediction that was not made yet


def offline_content(
    machine: Source,
    workload: Source,
    *,
    settings: Mapping[str, str],
    paths: Sequence[str] = (),
    allow: Sequence[str | Path] = (),
    predict: bool = False,
    piece: Mapping[str, Any] | None = None,
    films: bool = True,
    steps: int = 0,
) -> dict[str, Any]:
    """Return the content of an offline page.

    Args:
        machine: machine, as for `hwsim.simulate`.
        workload: workload, as for `hwsim.simulate`.
        settings: settings of the page's own run, by path.
        paths: paths of at most three sliders; none: those with the strongest effect.
        allow: folders, besides the library, from which the files may include others.
        predict: whether the answer is hidden until the reader has predicted it.
        piece: words of a piece of a chapter, which shows less; None: a page.
        films: whether to save animations.
        steps: values of each slider; 0: as many as a page of the explorer saves.

    Raises:
        SpecError: a file or a setting has an error, or a path has no slider.
    """
    desk = WorkerState(tuple(map(str, allow)), math.inf)
    question = opened(machine, workload, settings)
    question = {key: question[key] for key in ("machine", "workload", "set", "called")}
    if predict:
        question["guess"] = UNKNOWN
    if piece is not None:
        question["piece"] = dict(piece)
    chosen = _chosen(desk, question, paths)
    try:
        return saved(desk.asked, question, chosen, films=films, steps=steps)
    except NotSaved as error:
        raise SpecError.of(Place("", 0, 0), str(error)) from error


def _chosen(desk: WorkerState, question: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
    """Return the paths of the sliders of a page; raise SpecError."""
    state = state_of(question)
    session = desk.session(state)
    with session.warm():
        known = sliders(*session.files)
    by_path = {slider.path: slider for slider in known}
    for path in paths:
        if path not in by_path:
            hint = did_you_mean(path, by_path)
            raise SpecError.of(Place("--slider", 1, 1), f"no number of the files has the path '{path}'", hint=hint)
    if paths:
        return list(paths)
    own = [slider for slider in known if slider.group != "parts"]
    first: Sequence[Slider] = shown_first(own, effects(session.shown, state.settings, own, budget=WEIGHING)) or own or known
    if not first:
        raise SpecError.of(Place("", 0, 0), "the files have no number to move")
    return [slider.path for slider in first[:AXES]]
