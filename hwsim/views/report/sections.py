"""Sections of a page as data, filled in by the packages with content and written by `page`.

Each text is plain text; the page escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hwsim.records import dataclass


class Cell(NamedTuple):
    """A cell of a table.

    Args:
        text: text.
        key: sort key; None to sort by the text.
    """

    text: str
    key: float | str | None = None


class ReportColumn(NamedTuple):
    """A column of a table.

    Args:
        heading: heading.
        right: whether the cells are right-aligned, as for numbers.
    """

    heading: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class TableSection:
    """A table that a click on a heading sorts.

    Args:
        title: title.
        columns: columns.
        rows: cells by row.
        marked: numbers of highlighted rows.
        note: sentence below the table.
    """

    title: str
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[Cell]]
    marked: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A list of sentences.

    Args:
        title: title.
        lines: sentences.
    """

    title: str
    lines: Sequence[str]


class ReportBar(NamedTuple):
    """A bar between two numbers, in the unit of the other bars.

    Args:
        label: label.
        low, high: ends.
        text: text beside the bar.
    """

    label: str
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class BarSection:
    """Stacked bars on one scale.

    Args:
        title: title.
        bars: bars.
        centre: number marked in all bars, such as the answer of a tornado; None for none.
        note: sentence below the bars.
        shown: function that writes a number of the scale, which then starts at 0; None for a scale without numbers.
    """

    title: str
    bars: Sequence[ReportBar]
    centre: float | None = None
    note: str = ""
    shown: Callable[[float], str] | None = None


@dataclass(frozen=True, slots=True)
class WaterfallSection:
    """The change from one number to another, step by step.

    Args:
        title: title.
        start, end: (label, number, text).
        changes: (label, change, text) of each step.
        note: sentence below the bars.
    """

    title: str
    start: tuple[str, float, str]
    changes: Sequence[tuple[str, float, str]]
    end: tuple[str, float, str]
    note: str = ""

    def bars(self) -> BarSection:
        """Return the waterfall as bars: each change starts where the previous one ended."""
        label, value, text = self.start
        made = [ReportBar(label, min(0.0, value), max(0.0, value), text)]
        for label, change, text in self.changes:
            made.append(ReportBar(label, min(value, value + change), max(value, value + change), text))
            value += change
        label, value, text = self.end
        made.append(ReportBar(label, min(0.0, value), max(0.0, value), text))
        return BarSection(self.title, made, note=self.note)


@dataclass(frozen=True, slots=True)
class FigureSection:
    """A figure.

    Args:
        title: title.
        svg: SVG file.
        alternative: alternative text.
    """

    title: str
    svg: bytes
    alternative: str


class TimelineLane(NamedTuple):
    """A row of spans without overlap, in order of time.

    Args:
        name: name.
        spans: (start in s, duration in s, number of the name) of each span.
    """

    name: str
    spans: Sequence[tuple[float, float, int]]


@dataclass(frozen=True, slots=True)
class TimelineSection:
    """A timeline with zoom.

    Args:
        title: title.
        lanes: rows.
        names: distinct names of the spans, those with the most time first, because the first names have colours.
        end: end of the timeline (s).
        note: sentence below the timeline.
    """

    title: str
    lanes: Sequence[TimelineLane]
    names: Sequence[str]
    end: float
    note: str = ""


Section = TableSection | Lines | BarSection | WaterfallSection | FigureSection | TimelineSection


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Args:
        title: heading and title of the window.
        answer: one sentence with the interval of the answer.
        more: further sentences.
        warnings: warnings about the answer.
        sections: sections.
    """

    title: str
    answer: str
    more: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
