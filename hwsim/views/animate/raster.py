"""A scene as frames: GIF by Pillow."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwsim.views.animate.clock import marks, place_of
from hwsim.views.animate.scene import FOOT, HEIGHT, SECONDS, WIDTH, Box, Scene, Token, Way, Words

if TYPE_CHECKING:
    from PIL.Image import Image

RATE: Final = 12  # frames a second
SMOOTH: Final = 2  # pixels for each, in both directions, before a frame gets its size
PALE: Final = 0.25


def gif(scene: Scene, colours: Sequence[str]) -> bytes:
    """The file; the same scene gives the same bytes with the same Pillow."""
    from PIL import Image

    drawn = list(frames(scene, colours))
    wide = Image.new("RGB", (WIDTH, HEIGHT * 3))  # colours of the beginning, the middle and the end
    for number, at in enumerate((0, len(drawn) // 2, len(drawn) - 1)):
        wide.paste(drawn[at], (0, HEIGHT * number))
    palette = wide.quantize(64, method=Image.Quantize.MEDIANCUT)
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in drawn]
    buffer = io.BytesIO()
    few[0].save(buffer, "GIF", save_all=True, append_images=few[1:], duration=round(1000 / RATE), loop=0, optimize=False)
    return buffer.getvalue()


def instants(scene: Scene) -> list[float]:
    """Seconds of the run that the frames show."""
    count = round(SECONDS * RATE)
    return [scene.begin + (scene.end - scene.begin) * number / (count - 1) for number in range(count)]


def frames(scene: Scene, colours: Sequence[str]) -> Iterator[Image]:
    """The pictures, one after another."""
    from PIL import Image

    still = _Canvas(Image.new("RGB", (WIDTH * SMOOTH, HEIGHT * SMOOTH), colours[-1]), colours)
    still.text(Words(14, 26, scene.title, 17.0), bold=True)
    for number, line in enumerate(scene.below.splitlines()[:2]):
        still.text(Words(14, 46 + 15 * number, line, 12.0, soft=True))
    for way in scene.ways:
        still.way(way)
    for box in scene.boxes:
        still.box(box)
    ticks, slower = marks(scene)
    still.line(14, WIDTH - 14, FOOT + 4)
    for x, text in ticks:
        still.text(Words(x, FOOT + 20, text, 12.0, "middle"))
    still.text(Words(WIDTH - 14, FOOT + 37, slower, 12.0, "end", soft=True))
    for at in instants(scene):
        canvas = _Canvas(still.image.copy(), colours)
        for token in scene.tokens:
            canvas.token(token, at)
        for words in scene.words:
            canvas.text(words)
        canvas.dot(place_of(scene, at), FOOT + 4)
        yield canvas.image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)


class _Canvas:
    """A picture and the pens for it."""

    def __init__(self, image: Image, colours: Sequence[str]) -> None:
        from PIL import ImageDraw

        self.image, self._colours = image, colours
        self._draw = ImageDraw.Draw(image)

    def text(self, words: Words, *, bold: bool = False, ink: str = "") -> None:
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[words.anchor]
        colour = ink or self._colours[-3 if words.soft else -4]
        place = words.x * SMOOTH, words.y * SMOOTH
        self._draw.text(place, words.text, fill=colour, font=_font(words.size * SMOOTH, bold=bold), anchor=anchor)

    def box(self, box: Box) -> None:
        fill = None if box.colour < 0 else self._colours[box.colour]
        self._rect(box.x, box.y, box.wide, box.high, fill, self._colours[-2] if box.colour < 0 else None, 3)
        if box.name:
            self.text(Words(box.x + box.wide / 2, box.y + box.high / 2 + 5, box.name, 13.0, "middle"))

    def token(self, token: Token, at: float) -> None:
        place = token.place(at)
        if place is None:
            return
        colour = self._colours[token.colour]
        wide = token.wide
        if token.grows and token.busy[0] <= token.knots[0].at:
            wide *= min(1.0, (at - token.busy[0]) / ((token.busy[1] - token.busy[0]) or 1.0))
        is_filled = token.is_busy(at) or (token.grows and token.busy[1] <= at)
        self._rect(*place, wide, token.high, colour if is_filled else _mixed(colour, self._colours[-1]), colour, 0)
        if token.name:
            self.text(Words(place[0] + wide / 2, place[1] + token.high / 2 + 4, token.name, 11.0, "middle"))

    def line(self, left: float, right: float, y: float) -> None:
        self._draw.line([left * SMOOTH, y * SMOOTH, right * SMOOTH, y * SMOOTH], fill=self._colours[-3], width=SMOOTH)

    def way(self, way: Way) -> None:
        self._draw.line([each * SMOOTH for each in way], fill=self._colours[-2], width=SMOOTH)

    def dot(self, x: float, y: float) -> None:
        self._draw.ellipse([(x - 5) * SMOOTH, (y - 5) * SMOOTH, (x + 5) * SMOOTH, (y + 5) * SMOOTH], fill=self._colours[-4])

    def _rect(self, x: float, y: float, wide: float, high: float, fill: str | None, edge: str | None, round_by: float) -> None:
        corners = [x * SMOOTH, y * SMOOTH, (x + max(wide, 0.0)) * SMOOTH, (y + high) * SMOOTH]
        self._draw.rounded_rectangle(corners, round_by * SMOOTH, fill=fill, outline=edge, width=SMOOTH)


def _mixed(colour: str, paper: str) -> str:
    """A pale tint."""
    pairs = zip(*([int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in (colour, paper)), strict=True)
    return "#" + "".join(f"{round(PALE * ink + (1 - PALE) * white):02x}" for ink, white in pairs)


def _font(size: float, *, bold: bool) -> Any:
    """The face of the figures, which comes with matplotlib."""
    import matplotlib as mpl
    from PIL import ImageFont

    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / name), round(size))
