"""Formats, colours, scales and titles of figures, and bytes that are equal for equal results."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

FORMATS: Final = ("png", "svg", "pdf")
KEPT: Final = ".kept"  # instead of a suffix: the figure itself, for a notebook
TITLE: Final = 100  # letters of a line
LEGEND: Final = 12  # names with a colour of their own; the others are grey
SCALES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
COLOURS: Final = (  # Okabe and Ito's, distinct with any kind of colour vision, then lighter ones
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000",
    "#7FB8D8", "#F2CF7F", "#7FCEB9", "#E5BCD3",
)  # fmt: skip
OTHER: Final = "#BBBBBB"
INK: Final = "#333333"
GRID: Final = "#dddddd"


@contextmanager
def figure_bytes(suffix: str, *, width: float = 12, height: float) -> Iterator[tuple[Figure, io.BytesIO]]:
    """A figure to draw on, and the buffer that holds it as a file afterwards.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    kind = suffix.lower().lstrip(".")
    if kind not in FORMATS and suffix != KEPT:
        raise ValueError(f"a figure is written as .png, .svg or .pdf, not as '{suffix or 'a file without suffix'}'")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    settings: Any = {"svg.hashsalt": "hwsim", "svg.fonttype": "none", "font.family": "DejaVu Sans", "path.simplify": False}
    with mpl.rc_context(settings):
        if suffix == KEPT:
            from hwsim.views.kit.inline import Inline, Keeping

            inline = Inline(figsize=(width, height), dpi=100, layout="constrained")
            inline.style = settings
            yield inline, Keeping(inline)
            return
        figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, buffer
        undated: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(buffer, format=kind, metadata=undated)


def time_scale(seconds: float) -> tuple[float, str]:
    """(seconds, name) of the largest unit of time that is not longer than a run.

    >>> time_scale(0.02), time_scale(3)
    ((0.001, 'ms'), (1.0, 's'))
    """
    return next((pair for pair in SCALES if seconds >= pair[0]), SCALES[-1])


def figure_title(name: str, settings: Iterable[tuple[str, str]] = ()) -> str:
    """A title, and below it the changes of --set: figures of different runs have different titles.

    >>> print(figure_title("a on b: 1 ms", [("n", "10"), ("batch", "64")]))
    a on b: 1 ms
    set n=10, batch=64
    """
    changes = ", ".join(f"{path}={value}" for path, value in settings)
    return "\n".join([name, *textwrap.wrap(f"set {changes}", TITLE, break_long_words=False)]) if changes else name


def open_axes(axes: Axes, grid: Literal["both", "x"] = "both", colour: str = GRID) -> None:
    """Draw a grid behind the data, and no frame at the top and the right."""
    axes.grid(axis=grid, color=colour, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def line_names(axes: Axes, names: Iterable[tuple[float, str, str]], right: float) -> list[Annotation]:
    """Write names right of the axes, at the height of their lines, highest first.

    Args:
        names: (height in data, name, colour).
        right: points between the axes and the names.
    """
    return [
        axes.annotate(
            name, (1.0, height), (right, 0), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8,
            color=colour, va="center", ha="left", annotation_clip=False,
        )
        for height, name, colour in sorted(names, key=lambda line: line[0], reverse=True)
    ]  # fmt: skip


def push_apart(axes: Axes, names: Sequence[Annotation], least: float) -> None:
    """Push names down where lines are close; the sizes of the figure must be known (`draw_without_rendering`).

    Args:
        least: points of a line of text.
    """
    figure = axes.get_figure()
    to_points = 72.0 / (figure.dpi if figure is not None else 100.0)
    above = math.inf  # the lower edge of the name before
    for name in names:
        height = float(axes.transData.transform((1.0, name.xy[1]))[1]) * to_points
        half = least * (1 + name.get_text().count("\n")) / 2
        place = min(height, above - half)
        above = place - half
        name.set_position((name.xyann[0], place - height))
