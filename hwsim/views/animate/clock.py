"""The time axis of an animation: ticks, and the slowdown factor."""

from __future__ import annotations

from hwsim.formats import format_quantity
from hwsim.views.animate.scene import WIDTH, Scene
from hwsim.views.kit.figure import time_scale

EDGE = 14.0


def marks(scene: Scene) -> tuple[list[tuple[float, str]], str]:
    """Return ((position, text) of the ticks at round times, slowdown in words)."""
    length = (scene.end - scene.begin) or 1.0
    unit, name = time_scale(max(abs(scene.end), length))
    rough = length / unit / 5
    power = 10.0 ** int(f"{rough:e}".partition("e")[2])
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = int(-(-scene.begin / unit // step))
    shown = [
        (number * step, EDGE + (number * step * unit - scene.begin) / length * (WIDTH - 2 * EDGE))
        for number in range(first, first + 8)
    ]
    texts = [
        (x, f"{value:.6g}" + (f" {name}" if place == 0 else "")) for place, (value, x) in enumerate(shown) if x < WIDTH - EDGE - 4
    ]
    texts = [(max(x, 26.0), text) for x, text in texts]
    return texts, f"one second shows {format_quantity(scene.slowed, 's')} of the run"
