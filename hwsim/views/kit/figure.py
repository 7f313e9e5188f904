"""The style of figures: formats, colours, titles, legends, and identical bytes for identical results.

The suffix `.dark.png` selects dark colours.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

FORMATS: Final = ("png", "svg", "pdf")
DARK: Final = "dark"
PAGE: Final = 9.0  # width of a figure (inches)
TITLE: Final = 15.0  # size of the title (points)
BELOW: Final = 11.5  # size of the line below the title (points)
EDGE: Final = 8.0  # distance of the title from the edge (points)
CORNER: Final = 10.0  # distance between an axis and its labels (points)
APART: Final = 13.0  # line spacing of names beside lines (points)
LEGEND: Final = 12  # number of names with their own colour; the rest is grey
SCALES: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
LIGHT_COLOURS: Final = (  # Okabe and Ito, safe for colour blindness, yellow darkened; then lighter tints
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A400", "#6B7280",
    "#7FB8D8", "#F2CF7F", "#7FCEB9", "#E5BCD3",
)  # fmt: skip
DARK_COLOURS: Final = (
    "#4BA3DB", "#F0B429", "#2CC295", "#E39AC4", "#8FD0F5", "#FF8A4C", "#E8DA52", "#A3ABB5",
    "#2B6A94", "#97741F", "#1F7A5E", "#915F7D",
)  # fmt: skip
GREY: Final = "#BBBBBB"
# Indices into the style, so that the same drawing code makes light and dark figures.
COLOURS: Final = tuple(f"C{number}" for number in range(len(LIGHT_COLOURS)))
OTHER, INK, SOFT, GRID, PAPER = (f"C{len(LIGHT_COLOURS) + number}" for number in range(5))
LIGHT: Final = (*LIGHT_COLOURS, GREY, "#16191D", "#59626C", "#DDE1E5", "#FFFFFF")
NIGHT: Final = (*DARK_COLOURS, "#5A626C", "#E9ECEF", "#A3ABB5", "#343B44", "#14181D")
DASHES: Final = ("-", "--", ":", "-.")
MARKERS: Final = "osD^v<>Pp*hX"
WAITING: Final = "////"  # hatch of waiting and communication


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file that selects the format and the colours of a figure.

    >>> suffix_of("run.svg"), suffix_of("a.b/run.v2.dark.svg")
    ('.svg', '.dark.svg')
    """
    kinds = Path(path).suffixes
    look = [kind for kind in kinds[-2:-1] if kind.lower()[1:] == DARK]
    return "".join([*look, *kinds[-1:]])


@contextmanager
def figure_bytes(suffix: str, *, width: float = PAGE, height: float) -> Iterator[tuple[Figure, io.BytesIO]]:
    """Yield a figure to draw on, and the buffer that contains the file afterwards.

    Args:
        suffix: `.png`, `.svg` or `.pdf`, optionally preceded by `.dark`.
        width: width (inches).
        height: height without the title (inches); see `write_title`.

    Raises:
        ValueError: the suffix is not .png, .svg or .pdf.
    """
    *looks, kind = suffix.lower().removeprefix(".").split(".")
    if kind not in FORMATS:
        raise ValueError(f"a figure is written as .png, .svg or .pdf, not as '{suffix or 'a file without suffix'}'")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with mpl.rc_context(_style(NIGHT if DARK in looks else LIGHT)):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, buffer
        undated: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(buffer, format=kind, metadata=undated)


def _style(colours: Sequence[str]) -> Any:
    """Return the matplotlib settings: the style file with one set of colours."""
    import matplotlib as mpl
    from cycler import cycler

    _, ink, soft, grid, paper = colours[-5:]
    sheet: Any = mpl.rc_params_from_file(Path(__file__).with_name("house.mplstyle"), use_default_template=False)
    settings: dict[str, Any] = {**sheet}
    settings |= {f"{name}.facecolor": paper for name in ("figure", "axes", "savefig")}
    settings |= {f"{name}.color": ink for name in ("text", "xtick", "ytick")} | {"axes.labelcolor": ink, "axes.edgecolor": soft}
    return settings | {"grid.color": grid, "axes.prop_cycle": cycler(color=list(colours))}


def write_title(figure: Figure, finding: str, below: str = "") -> None:
    """Write the title in bold and the name of the run below it; the figure grows by their height.

    Call it once the rest of the figure has its size, and before anything is measured.
    """
    lines, more = _wrapped(figure, finding, TITLE, "bold"), _wrapped(figure, below, BELOW, "normal")
    head = EDGE + 1.25 * TITLE * len(lines) + 1.3 * BELOW * len(more) + EDGE
    points = 72.0 * figure.get_figheight()
    figure.set_figheight((points + head) / 72.0)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, points / (points + head)))
    left, top = EDGE / (72.0 * figure.get_figwidth()), 1.0 - EDGE / (points + head)
    style: dict[str, Any] = {"va": "top", "ha": "left", "linespacing": 1.15}
    figure.text(left, top, "\n".join(lines), fontsize=TITLE, fontweight="bold", color=INK, **style)
    if more:
        under = top - 1.25 * TITLE * len(lines) / (points + head)
        figure.text(left, under, "\n".join(more), fontsize=BELOW, color=SOFT, **style)


def run_caption(workload: str, machine: str, settings: Iterable[tuple[str, str]] = (), more: str = "") -> str:
    """Return the line below a title, with the run and the changed settings; it differs between figures of different runs.

    >>> print(run_caption("loop", "laptop", [("n", "10"), ("batch", "64")], "2 of 9 rows"))
    loop on laptop; 2 of 9 rows
    set n=10, batch=64
    """
    changes = ", ".join(f"{path}={value}" for path, value in settings)
    name = f"{workload} on {machine}" if workload and machine else workload or machine
    return f"{name}{f'; {more}' if more else ''}" + (f"\nset {changes}" if changes else "")


def text_width(figure: Figure, text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text (points)."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    canvas: Any = figure.canvas
    wide: float = canvas.get_renderer().get_text_width_height_descent(text, font, ismath=False)[0]
    return wide * 72.0 / figure.dpi


def _wrapped(figure: Figure, text: str, size: float, weight: str) -> list[str]:
    """Return the lines of a text, wrapped to the width of the figure."""
    room = 72.0 * figure.get_figwidth() - 2 * EDGE
    lines: list[str] = []
    for part in text.splitlines():
        line = ""
        for word in part.split():
            longer = f"{line} {word}" if line else word
            if line and text_width(figure, longer, size, weight) > room:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def legend_below(figure: Figure, handles: Sequence[Any], title: str = "") -> None:
    """Draw a legend below the axes, in as many columns as fit."""
    if not handles:
        return
    found = figure.legend(handles=handles, loc="outside lower left", ncols=_columns(figure, handles), title=title or None)
    found.set_alignment("left")


def legend_above(axes: Axes, handles: Sequence[Any]) -> None:
    """Draw a legend above one of several axes."""
    figure: Any = axes.get_figure()
    columns = _columns(figure, handles)
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, borderaxespad=0.2)


def _columns(figure: Figure, handles: Sequence[Any]) -> int:
    """Return the number of legend columns that fit."""
    widest = max(text_width(figure, str(handle.get_label()), 12.0) for handle in handles) + 12.0 * 4.4
    return max(1, min(len(handles), int((72.0 * figure.get_figwidth() - 2 * EDGE) / widest)))


def decades(axis: Axis, written: Callable[[float], str]) -> None:
    """Set the ticks of a logarithmic axis to powers of ten, each with its own unit."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(10.0, numticks=9))
    axis.set_major_formatter(lambda value, _: written(value))
    axis.minorticks_off()


def time_scale(seconds: float) -> tuple[float, str]:
    """Return (seconds, symbol) of the largest unit of time that is not longer than a run.

    >>> time_scale(0.02), time_scale(3)
    ((0.001, 'ms'), (1.0, 's'))
    """
    return next((pair for pair in SCALES if seconds >= pair[0]), SCALES[-1])


def open_axes(axes: Axes, grid: Literal["both", "x", "y"] = "both", *, corner: bool = False) -> None:
    """Draw a grid behind the data.

    Args:
        axes: axes.
        grid: axis with grid lines.
        corner: whether both axes have a tick in their common corner, so that their labels need extra distance.
    """
    axes.grid(visible=True, axis=grid)
    if corner:
        axes.tick_params(axis="x", pad=CORNER)


def line_names(axes: Axes, names: Iterable[tuple[float, str, str]], right: float) -> list[Annotation]:
    """Write the names of lines to the right of the axes, at the height of the lines, highest first.

    Args:
        axes: axes.
        names: (height in data, name, colour).
        right: distance between the axes and the names (points).
    """
    return [
        axes.annotate(
            name, (1.0, height), (right, 0), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=11,
            color=colour, va="center", ha="left", annotation_clip=False,
        )
        for height, name, colour in sorted(names, key=lambda line: line[0], reverse=True)
    ]  # fmt: skip


def push_apart(axes: Axes, names: Sequence[Annotation]) -> None:
    """Move overlapping names down; call it after `draw_without_rendering`, which computes the sizes."""
    figure = axes.get_figure()
    to_points = 72.0 / (figure.dpi if figure is not None else 100.0)
    above = math.inf  # lower edge of the previous name
    for name in names:
        height = float(axes.transData.transform((1.0, name.xy[1]))[1]) * to_points
        half = APART * (1 + name.get_text().count("\n")) / 2
        place = min(height, above - half)
        above = place - half
        name.set_position((name.xyann[0], place - height))
