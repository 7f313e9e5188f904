"""An animation as one SVG file with SMIL, which browsers and slides play without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hwsim.views.animate.clock import marks
from hwsim.views.animate.scene import FOOT, HEIGHT, SECONDS, WIDTH, Scene, SceneBox, Token, Words


def svg_file(scene: Scene, colours: Sequence[str]) -> bytes:
    """Return the file; same scene, same bytes.

    Args:
        scene: scene.
        colours: colours of the style, the last five for other, ink, soft, grid and paper.
    """
    _, ink, soft, grid, paper = colours[-5:]
    face = 'font-family="DejaVu Sans, Verdana, sans-serif" role="img"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" {face}>',
        f"<title>{escape(scene.title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{paper}"/>',
        _text(Words(14, 26, scene.title, 17.0), ink, bold=True),
        *(_text(Words(14, 46 + 15 * number, line, 12.0), soft) for number, line in enumerate(scene.below.splitlines()[:2])),
        *(
            f'<line x1="{_short(way.x)}" y1="{_short(way.y)}" x2="{_short(way.to_x)}" y2="{_short(way.to_y)}" stroke="{grid}"/>'
            for way in scene.ways
        ),
        *(_box(box, colours, grid, ink) for box in scene.boxes),
        *(_token(token, scene, colours, ink) for token in scene.tokens),
        *(_text(words, soft if words.soft else ink) for words in scene.words),
        *_clock(scene, ink, soft),
        "</svg>\n",
    ]
    return "\n".join(lines).encode()


def _text(words: Words, colour: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{_short(words.x)}" y="{_short(words.y)}" font-size="{_short(words.size)}" text-anchor="{words.anchor}"'
        f' fill="{colour}"{weight}>{escape(words.text)}</text>'
    )


def _box(box: SceneBox, colours: Sequence[str], grid: str, ink: str) -> str:
    fill = "none" if box.colour < 0 else colours[box.colour]
    edge = f' stroke="{grid}" stroke-width="1.5"' if box.colour < 0 else ""
    place = f'x="{_short(box.x)}" y="{_short(box.y)}" width="{_short(box.wide)}" height="{_short(box.high)}"'
    drawn = f'<rect {place} rx="3" fill="{fill}"{edge}/>'
    if not box.name:
        return drawn
    return drawn + "\n" + _text(Words(box.x + box.wide / 2, box.y + box.high / 2 + 5, box.name, 13.0, "middle"), ink)


def _token(token: Token, scene: Scene, colours: Sequence[str], ink: str) -> str:
    """Return a group that is visible from its first to its last knot and moves between knots."""
    first, last = token.knots[0], token.knots[-1]
    colour = colours[token.colour]
    moves = _animated(
        "animateTransform", "transform", [(knot.at, f"{_short(knot.x)},{_short(knot.y)}") for knot in token.knots], scene,
        more=' type="translate"',
    ) if len({(knot.x, knot.y) for knot in token.knots}) > 1 else ""  # fmt: skip
    shown = _animated("animate", "opacity", [(first.at, "1"), (last.at, "0")], scene, steps="0")
    filled = _animated("animate", "fill-opacity", [(token.busy[0], "1"), (token.busy[1], "0.25")], scene, steps="0.25")
    grows = opacity = ""
    if token.grows:  # ended ops stay visible
        opacity, filled = ("" if token.busy[0] < scene.end else ' fill-opacity="0.25"'), ""
        until = token.busy[1] if token.busy[0] < scene.end else min(last.at, first.at + (scene.end - scene.begin) / 400)
        grows = _animated("animate", "width", [(first.at, "0"), (until, _short(token.wide))], scene)
    name = _text(Words(token.wide / 2, token.high / 2 + 4, token.name, 11.0, "middle"), ink) if token.name else ""
    size = f'width="{_short(token.wide)}" height="{_short(token.high)}"'
    rect = f'<rect {size} fill="{colour}" stroke="{colour}"{opacity}>{filled}{grows}</rect>'
    return f'<g opacity="0" transform="translate({_short(first.x)},{_short(first.y)})">{rect}{name}{shown}{moves}</g>'


def _animated(
    tag: str, attribute: str, values_at: Sequence[tuple[float, str]], scene: Scene, *, steps: str = "", more: str = ""
) -> str:
    """Return an animated attribute.

    Args:
        tag: animation element.
        attribute: attribute.
        values_at: (time in s, value) pairs.
        scene: scene.
        steps: value before the first time, for values that jump; "" to interpolate.
        more: further attributes of the element.
    """
    length = (scene.end - scene.begin) or 1.0
    shown = [(min(1.0, max(0.0, (time_s - scene.begin) / length)), value) for time_s, value in values_at]
    if shown[0][0] > 0.0:
        shown = [(0.0, steps or shown[0][1]), *shown]
    if not steps and shown[-1][0] < 1.0:
        shown = [*shown, (1.0, shown[-1][1])]
    shown = shown if not steps or shown[-1][0] < 1.0 else shown[:-1]
    values, times = ";".join(value for _, value in shown), ";".join(_short(part, 5) for part, _ in shown)
    mode = ' calcMode="discrete"' if steps else ""
    if len(shown) == 1:
        shown *= 2
        values, times = f"{values};{values}", "0;1" if not steps else "0;0.5"
    return (
        f'<{tag} attributeName="{attribute}"{more}{mode} dur="{_short(SECONDS)}s" repeatCount="indefinite"'
        f' keyTimes="{times}" values="{values}"/>'
    )


def _clock(scene: Scene, ink: str, soft: str) -> list[str]:
    """Return the time axis, a mark that moves along it, and the slowdown factor."""
    lines = [f'<line x1="14" y1="{FOOT + 4}" x2="{WIDTH - 14}" y2="{FOOT + 4}" stroke="{soft}"/>']
    ticks, slower = marks(scene)
    lines += [_text(Words(x, FOOT + 20, text, 12.0, "middle"), ink) for x, text in ticks]
    lines.append(_text(Words(WIDTH - 14, FOOT + 37, slower, 12.0, "end", soft=True), soft))
    runs = f'<animate attributeName="cx" dur="{_short(SECONDS)}s" repeatCount="indefinite" values="14;{WIDTH - 14}"/>'
    return [*lines, f'<circle cx="14" cy="{FOOT + 4}" r="5" fill="{ink}">{runs}</circle>']


def _short(value: float, digits: int = 2) -> str:
    """Return a number without trailing zeros."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") or "0"
