"""Animations of a run, as .svg; the same run gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hwsim.results.result import Result
from hwsim.views.animate import lanes, queues, sends, svg
from hwsim.views.animate.scene import Scene
from hwsim.views.kit.figure import DARK, LIGHT, NIGHT

SCENES: Final[dict[str, Callable[[Result], Scene]]] = {
    "lanes": lanes.scene,
    "launches": queues.ops,
    "requests": queues.requests,
    "sends": sends.scene,
}


def render(result: Result, kind: str, suffix: str) -> Iterable[bytes]:
    """The file in chunks.

    Raises:
        ValueError: another suffix, or the run has nothing of that kind.
    """
    *looks, last = suffix.lower().removeprefix(".").split(".")
    if last != "svg":
        raise ValueError(f"an animation is written as .svg, not as '{suffix or 'a file without suffix'}'")
    return (svg.written(SCENES[kind](result), NIGHT if DARK in looks else LIGHT),)
