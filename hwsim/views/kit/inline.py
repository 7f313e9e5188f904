"""Figures that a notebook shows: matplotlib's, in the style they were drawn in, without pyplot."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


class Inline(Figure):
    """A figure that keeps the settings it was drawn with: colours are looked up again whenever it is shown."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        FigureCanvasAgg(self)
        self.style: Any = {}

    def draw(self, renderer: Any) -> None:
        """Draw it, as matplotlib does for every format."""
        with mpl.rc_context(self.style):
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


class _Carrying(bytes):
    """Bytes of no file, and the figure that would have been one."""

    figure: Figure


class Keeping(io.BytesIO):
    """The buffer of a figure that is kept: what it gives carries the figure."""

    def __init__(self, figure: Figure) -> None:
        super().__init__()
        self._figure = figure

    def getvalue(self) -> bytes:
        """No bytes, but the figure with them."""
        carrying = _Carrying()
        carrying.figure = self._figure
        return carrying


def kept(chunks: Iterable[bytes]) -> Figure:
    """The figure that was drawn into a `Keeping`."""
    (carrying,) = chunks
    assert isinstance(carrying, _Carrying)
    return carrying.figure
