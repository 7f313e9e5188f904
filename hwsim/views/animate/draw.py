"""The sends of a run as one SVG file that moves by itself (SMIL): browsers and slides play it, without a script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from hwsim.formats import format_quantity
from hwsim.results.result import Result
from hwsim.views.animate.sends import FOOT, TOP, WIDTH, Chunk, Scene, scene
from hwsim.views.kit.figure import DARK, LIGHT, NIGHT, time_scale

HEIGHT: Final = 405
SECONDS: Final = 9.0  # that an animation lasts
EDGE: Final = 14.0
CHUNK: Final = 17.0
BOX: Final = (56.0, 30.0)
MARKS: Final = 5  # of the axis of time, about


def render(result: Result, suffix: str) -> Iterable[bytes]:
    """The file in chunks; the same run gives the same bytes.

    Raises:
        ValueError: another suffix, or the run has no sends that are played one by one.
    """
    *looks, last = suffix.lower().removeprefix(".").split(".")
    if last != "svg":
        raise ValueError(f"an animation is written as .svg, not as '{suffix or 'a file without suffix'}'")
    return ("\n".join(_lines(scene(result), NIGHT if DARK in looks else LIGHT)).encode(),)


def _lines(scene: Scene, colours: Sequence[str]) -> Iterator[str]:
    """Lines of the file.  colours: of the house style, then other, ink, soft, grid, paper."""
    _, ink, soft, grid, paper = colours[-5:]
    face = 'font-family="DejaVu Sans, Verdana, sans-serif" role="img"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" {face}>'
    yield f"<title>{escape(scene.title)}</title>"
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{paper}"/>'
    yield _text(EDGE, 26, scene.title, ink, 17, more=' font-weight="bold"')
    for number, line in enumerate(scene.below.splitlines()[:2]):
        yield _text(EDGE, 46 + 15 * number, line, soft, 12)
    for way in scene.ways:
        x, y, to_x, to_y = map(_short, way)
        yield f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{grid}"/>'
    wide, high = BOX
    for name, x_at, y_at in scene.devices:
        place = f'x="{_short(x_at - wide / 2)}" y="{_short(y_at - high / 2)}" width="{_short(wide)}" height="{_short(high)}"'
        yield f'<rect {place} rx="3" fill="none" stroke="{grid}" stroke-width="1.5"/>'
        yield _text(x_at, y_at + 5, name, ink, 13, anchor="middle")
    yield from (_chunk(chunk, scene, colours[chunk.colour], ink) for chunk in scene.chunks)
    yield _text(WIDTH - 24, TOP + 8, "number: of the step", soft, 12, anchor="end")
    yield f'<line x1="{EDGE:g}" y1="{FOOT + 4:g}" x2="{WIDTH - EDGE:g}" y2="{FOOT + 4:g}" stroke="{soft}"/>'
    yield from (_text(x_at, FOOT + 20, text, ink, 12, anchor="middle") for x_at, text in _marks(scene))
    slower = f"one second shows {format_quantity((scene.end - scene.begin) / SECONDS, 's')} of the run"
    yield _text(WIDTH - EDGE, FOOT + 37, slower, soft, 12, anchor="end")
    runs = f'<animate attributeName="cx" {_LASTS} values="{EDGE:g};{WIDTH - EDGE:g}"/>'
    yield f'<circle cx="{EDGE:g}" cy="{FOOT + 4:g}" r="5" fill="{ink}">{runs}</circle>'
    yield "</svg>\n"


_LASTS: Final = f'dur="{SECONDS:g}s" repeatCount="indefinite"'


def _text(x: float, y: float, words: str, colour: str, size: float, *, anchor: str = "start", more: str = "") -> str:
    place = f'x="{_short(x)}" y="{_short(y)}" font-size="{size:g}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}"{more}>{escape(words)}</text>'


def _chunk(chunk: Chunk, scene: Scene, colour: str, ink: str) -> str:
    """A group that is shown from its first knot to its last, and goes from knot to knot."""
    first, last = chunk.knots[0], chunk.knots[-1]
    places = [(knot.at, f"{_short(knot.x - CHUNK / 2)},{_short(knot.y - CHUNK / 2)}") for knot in chunk.knots]
    times, values = _over(scene, [(scene.begin, places[0][1]), *places, (scene.end, places[-1][1])])
    moves = f'<animateTransform attributeName="transform" type="translate" {_LASTS} keyTimes="{times}" values="{values}"/>'
    times, values = _over(scene, [(scene.begin, "0"), (first.at, "1"), (last.at, "0"), (scene.end, "0")])
    shown = f'<animate attributeName="opacity" calcMode="discrete" {_LASTS} keyTimes="{times}" values="{values}"/>'
    rect = f'<rect width="{CHUNK:g}" height="{CHUNK:g}" fill="{colour}" stroke="{colour}"/>'
    name = _text(CHUNK / 2, CHUNK / 2 + 4, str(chunk.step), ink, 11, anchor="middle")
    return f'<g opacity="0" transform="translate({places[0][1]})">{rect}{name}{shown}{moves}</g>'


def _over(scene: Scene, values_at: Sequence[tuple[float, str]]) -> tuple[str, str]:
    """Instants as parts of the time shown, and the values there."""
    length = (scene.end - scene.begin) or 1.0
    return ";".join(_short((at - scene.begin) / length, 5) for at, _ in values_at), ";".join(value for _, value in values_at)


def _marks(scene: Scene) -> Iterator[tuple[float, str]]:
    """(place, text) of the marks at round times."""
    length = (scene.end - scene.begin) or 1.0
    unit, name = time_scale(max(abs(scene.end), length))
    rough = length / unit / MARKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough)
    first = math.ceil(scene.begin / unit / step)
    for number in range(first, math.floor(scene.end / unit / step) + 1):
        x = EDGE + (number * step * unit - scene.begin) / length * (WIDTH - 2 * EDGE)
        yield min(max(x, 26.0), WIDTH - 26.0), f"{number * step:.6g}" + (f" {name}" if number == first else "")


def _short(value: float, digits: int = 2) -> str:
    """A number without needless digits."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
