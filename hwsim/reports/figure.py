"""What figures have in common: formats, colours, scales, and bytes that are the same for the same result."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hwsim.reports.gantt import COLOURS, FORMATS, SCALES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "FORMATS", "SCALES", "figure_bytes", "time_scale"]


@contextmanager
def figure_bytes(suffix: str, *, width: float = 12, height: float) -> Iterator[tuple[Figure, io.BytesIO]]:
    """A figure to draw on, and the buffer that holds it as a file afterwards.

    Raises:
        ValueError: the suffix is none of .png, .svg, .pdf.
    """
    kind = suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise ValueError(f"a figure is written as .png, .svg or .pdf, not as '{suffix or 'a file without suffix'}'")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    settings: Any = {"svg.hashsalt": "hwsim", "svg.fonttype": "none", "font.family": "DejaVu Sans", "path.simplify": False}
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width, height), dpi=100, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, buffer
        undated: dict[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(buffer, format=kind, metadata=undated)


def time_scale(seconds: float) -> tuple[float, str]:
    """The largest unit of time that a run of so many seconds is at least one of: (seconds, its name).

    >>> time_scale(0.02), time_scale(3)
    ((0.001, 'ms'), (1.0, 's'))
    """
    return next((pair for pair in SCALES if seconds >= pair[0]), SCALES[-1])
