"""Sections of a page, as data: the rooms that have something to say fill them in, and `page` writes them.

Every text is plain text: the page escapes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hwsim.records import dataclass


class Cell(NamedTuple):
    """A cell of a table: what it shows, and the number or text that it is sorted by (None: by what it shows)."""

    text: str
    key: float | str | None = None


class Column(NamedTuple):
    """A column of a table; right: whether its cells stand to the right, as numbers do."""

    heading: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a click on a heading sorts.

    Args:
        marked: numbers of the rows that stand out.
        note: a sentence below it.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    marked: frozenset[int] = frozenset()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, one below the other."""

    title: str
    lines: Sequence[str]


class Bar(NamedTuple):
    """A bar from one number to another, in the same unit as the other bars; text: what stands next to it."""

    label: str
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars above one another on one scale.

    Args:
        centre: a number that is marked in all of them, such as the answer of a tornado; None for none.
        shown: writes a number of the scale, which then begins at 0 and has numbers below it; None for neither.
    """

    title: str
    bars: Sequence[Bar]
    centre: float | None = None
    note: str = ""
    shown: Callable[[float], str] | None = None


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The way from one number to another: `start`, what each of the changes adds or takes, `end`.

    Args:
        start, end: (label, number, text).
        changes: (label, what is added, text).
    """

    title: str
    start: tuple[str, float, str]
    changes: Sequence[tuple[str, float, str]]
    end: tuple[str, float, str]
    note: str = ""

    def bars(self) -> Bars:
        """The same as bars: each change begins where the one before it ended."""
        label, at, text = self.start
        made = [Bar(label, min(0.0, at), max(0.0, at), text)]
        for label, change, text in self.changes:
            made.append(Bar(label, min(at, at + change), max(at, at + change), text))
            at += change
        label, at, text = self.end
        made.append(Bar(label, min(0.0, at), max(0.0, at), text))
        return Bars(self.title, made, note=self.note)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure; svg: a whole SVG file."""

    title: str
    svg: bytes
    alternative: str


class Lane(NamedTuple):
    """Spans that never overlap, in order of time; a span is (start in s, duration in s, number of its name)."""

    name: str
    spans: Sequence[tuple[float, float, int]]


@dataclass(frozen=True, slots=True)
class Spans:
    """A timeline to zoom and to drag.

    Args:
        names: what the spans are called, each once; those with the most time first, for they get the colours.
        end: seconds.
    """

    title: str
    lanes: Sequence[Lane]
    names: Sequence[str]
    end: float
    note: str = ""


Section = Table | Lines | Bars | Waterfall | Picture | Spans


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Args:
        title: the window's, and the heading.
        answer: one sentence, with its interval.
        more: sentences below it.
        warnings: what a reader must know before he uses the answer.
    """

    title: str
    answer: str
    more: Sequence[str] = ()
    warnings: Sequence[str] = ()
    sections: Sequence[Section] = ()
