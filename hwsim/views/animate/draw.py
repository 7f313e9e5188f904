"""Animations of a run as .svg; same run, same bytes."""

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
    """Return the file in chunks.

    Args:
        result: result.
        kind: kind of animation.
        suffix: suffix of the file.

    Raises:
        ValueError: the suffix is not .svg, or the run has nothing of that kind.
    """
    *looks, last = suffix.lower().removeprefix(".").split(".")
    if last != "svg":
        raise ValueError(f"an animation needs the suffix .svg, got '{suffix or 'no suffix'}'")
    return (svg.svg_file(SCENES[kind](result), NIGHT if DARK in looks else LIGHT),)
