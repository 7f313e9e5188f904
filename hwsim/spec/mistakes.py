"""Mistakes in input files, each with place, message and hint; all mistakes are reported at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from hwsim.records import dataclass
from hwsim.units import UnitError

Problem = tuple[str, str, str | None]  # (key, message, hint)

_SHOWN: Final = 50  # mistakes shown; the rest are counted
_ENOUGH: Final = 1000  # mistakes after which decoding stops
_COMPARED: Final = 1000  # candidates up to which the nearest name is searched
_WORD: Final = 3  # minimum length of a name that is searched as a word of other names
_PARTS: Final = re.compile(r"[-_.: ]")
_SYNONYMS: Final = (  # keys that are synonyms in other tools
    {"bandwidth", "rate", "speed", "throughput"},
    {"bytes", "capacity", "size"},
    {"cores", "count", "number"},
    {"delay", "latency"},
    {"duration", "time"},
)
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks of YAML


class SourceText:
    """A text with a file name, from which messages quote lines."""

    __slots__ = ("_lines", "_text", "file")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """Return a line of the text, counted from 1; "" beyond the end."""
        if self._lines is None:
            self._lines = _BREAK.split(self._text)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


@dataclass(frozen=True, slots=True)
class Place:
    """A position of a value: file, line and column, both counted from 1; line 0 is the entire file."""

    file: str
    line: int
    column: int
    source: SourceText | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The line from the column on; "" if the text is not available."""
        return self.source.line(self.line)[self.column - 1 :] if self.source and self.line else ""

    @property
    def folder(self) -> Path | None:
        """Folder of the file, to which paths in it are relative; None if the text is not in a file."""
        return Path(self.file).parent if self.file and not self.file.startswith(("<", "-")) else None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


NOWHERE: Final = Place("", 0, 0)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake: a message in one line, and a hint how to correct it."""

    place: Place | None
    message: str
    hint: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))
        object.__setattr__(self, "hint", self.hint and one_line(self.hint))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place and self.place.file else ""
        lines = [where + self.message]
        text = self.place.source.line(self.place.line) if self.place and self.place.source else ""
        if self.place and text.strip() and self.place.column <= len(text) + 1:
            lines += _window(text, self.place.column)
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)


def one_line(text: str) -> str:
    """Return the text with spaces for all unprintable characters, so that user input cannot control the terminal."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def _window(text: str, column: int, width: int = 100) -> list[str]:
    """The line and a caret under the column; a long line is shortened to the surrounding text."""
    start = 0 if len(text) <= width else max(0, min(column - 1 - width // 2, len(text) - width))
    shown = one_line(text[start : start + width])
    dots = "..." if start else ""
    return [f"    {dots}{shown}", "    " + " " * (len(dots) + column - 1 - start) + "^"]


class HintedError(ValueError):
    """An error for an invalid value, in one line with a hint; the caller adds the place in the file."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SpecError(ValueError):
    """An error with a user's mistakes; `str()` lists them in order of the file."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    @staticmethod
    def of(place: Place | None, message: str, hint: str | None = None) -> SpecError:
        """Return an error with one mistake."""
        return SpecError([Mistake(place, message, hint)])

    def __str__(self) -> str:
        shown = [str(mistake) for mistake in self.mistakes[:_SHOWN]]
        if len(self.mistakes) > _SHOWN:
            shown.append(f"... and {len(self.mistakes) - _SHOWN} more")
        return "\n".join(shown)


class Mistakes:
    """A collector of mistakes, which are raised together at the end."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[tuple[Place | None, str], Mistake] = {}

    def add(self, place: Place | None, message: str, hint: str | None = None) -> None:
        """Add a mistake; equal mistakes at one place count once (an alias repeats them).

        Raises:
            SpecError: this is the thousandth mistake.
        """
        self._found.setdefault((place, message), Mistake(place, message, hint))
        if len(self._found) >= _ENOUGH:
            raise SpecError(self)

    def add_unit_error(self, place: Place | None, error: UnitError) -> None:
        self.add(place, error.message, error.hint)

    def extend(self, mistakes: Iterable[Mistake]) -> None:
        for mistake in mistakes:
            self._found.setdefault((mistake.place, mistake.message), mistake)

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Mistake]:
        """Iterate by file in order of first appearance, then by line and column."""
        files: dict[str, int] = {}
        for mistake in self._found.values():
            files.setdefault(mistake.place.file if mistake.place else "", len(files))
        yield from sorted(
            self._found.values(),
            key=lambda mistake: (
                (files[mistake.place.file], mistake.place.line, mistake.place.column) if mistake.place else (files[""], 0, 0)
            ),
        )

    def raise_if_any(self) -> None:
        """Raise SpecError with all mistakes, if there are any."""
        if self._found:
            raise SpecError(self)


def _with_word(name: str, names: Iterable[str]) -> list[str]:
    """At most four names that begin with this word, or else contain it; the shortest ones, sorted."""
    if len(name) < _WORD or not name.isascii():
        return []
    words = [(other, _PARTS.split(other.casefold().rpartition("/")[2])) for other in names if other != name]
    wanted = _PARTS.split(name.casefold())
    first = [other for other, parts in words if parts[: len(wanted)] == wanted]
    matches = first or [other for other, parts in words if len(wanted) == 1 and wanted[0] in parts]
    return sorted(sorted(matches, key=lambda match: (len(match), match))[:4])


def _in_other_words(name: str, names: Iterable[str]) -> list[str]:
    """At most two names that are a prefix of this one, begin with it, or are synonyms."""
    short = [key for key in names if min(len(key), len(name)) >= _WORD and (name.startswith(key) or key.startswith(name))]
    same = [key for key in names for words in _SYNONYMS if {name, key} <= words]
    return sorted(short or same)[:2]


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return the hint for an unknown name: the nearest known name (two if equally near), or else a short list of all names.

    Names that contain it as a word have priority over names with a similar spelling:

    >>> did_you_mean("h100", ["h100-sxm", "h200", "h100-pcie"])
    "did you mean 'h100-pcie' or 'h100-sxm'?"
    >>> did_you_mean("generation", ["gen", "lanes"])
    "did you mean 'gen'?"
    >>> did_you_mean("bandwidth", ["length", "rate"])
    "did you mean 'rate'?"
    """
    names = set(candidates)
    if len(names) > _COMPARED:
        return None
    name = name[:60]
    chosen = sorted(other for other in names if other.casefold() == name.casefold())[:2]
    chosen = chosen or _with_word(name, names)
    if len(chosen) > 2:
        return "did you mean " + ", ".join(f"'{choice}'" for choice in chosen[:-1]) + f" or '{chosen[-1]}'?"
    import difflib  # few runs have a mistake

    chosen = chosen or difflib.get_close_matches(name, names, 2, 0.6) or _in_other_words(name, names)
    if len(chosen) == 2 and not _with_word(name, names):
        first, second = (difflib.SequenceMatcher(None, choice, name).ratio() for choice in chosen)
        chosen = chosen[:1] if first - second > 0.05 else sorted(chosen) if first == second else chosen
    if chosen:
        return "did you mean " + " or ".join(f"'{choice}'" for choice in chosen) + "?"
    return f"known: {', '.join(sorted(names))}" if 0 < len(names) <= 30 else None
