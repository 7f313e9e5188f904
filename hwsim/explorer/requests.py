"""Validation of the requests of the page, and conversion of errors for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Mistake, Mistakes, SpecError, Tree, read_text

MOST_SETTINGS: Final = 500
LONGEST_NAME: Final = 500
MOST_PIXELS: Final = 4000
MOST_MISTAKES: Final = 50
KINDS: Final = ("machine", "workload")


class InvalidRequest(Exception):
    """An error for an invalid request."""


@dataclass(frozen=True, slots=True)
class PageState:
    """The state of the page in a request.

    Args:
        machine: text of the machine file.
        workload: text of the workload file.
        settings: changed numbers, by path.
        files: names of both files, to which paths in them are relative.
        pixels: width of the timeline.
        part: visible part of the time, from 0 to 1.
        coloured: assigned colours, see `Tints`.
        whole: whether each name has its own colour, see `Tints`.
    """

    machine: str
    workload: str
    settings: Mapping[str, str]
    files: tuple[str, str] = ("<machine>", "<workload>")
    pixels: int = 1200
    part: tuple[float, float] = (0.0, 1.0)
    coloured: Mapping[str, int] = field(default_factory=dict)
    whole: bool | None = None

    def trees(self) -> tuple[Tree, Tree]:
        """Return both texts as YAML trees; raise SpecError with the errors of both."""
        mistakes, trees = Mistakes(), list[Tree]()
        for text, file in zip((self.machine, self.workload), self.files, strict=True):
            try:
                trees.append(read_text(text, file))
            except SpecError as error:
                mistakes.extend(error.mistakes)
        mistakes.raise_if_any()
        return trees[0], trees[1]


def state_of(question: Mapping[str, Any]) -> PageState:
    """Return the state in a request; raise Unclear if it is invalid."""
    given = question.get("set", {})
    if not isinstance(given, dict) or len(given) > MOST_SETTINGS or not all(isinstance(value, str) for value in given.values()):
        raise InvalidRequest("'set': expected an object of texts")
    pixels = question.get("pixels", 1200)
    if not isinstance(pixels, int) or isinstance(pixels, bool) or not 1 <= pixels <= MOST_PIXELS:
        raise InvalidRequest(f"'pixels': expected a whole number from 1 to {MOST_PIXELS}")
    texts = text_of(question, "machine"), text_of(question, "workload")
    files, part = _files(question.get("called", {})), _part(question.get("part", [0, 1]))
    return PageState(*texts, given, files, pixels, part, *_coloured(question.get("coloured", {})))


def _coloured(given: object) -> tuple[dict[str, int], bool | None]:
    """Return the colours in a request."""
    by, whole = (given.get("by", {}), given.get("whole")) if isinstance(given, dict) else (None, None)
    if not isinstance(by, dict) or len(by) > MOST_SETTINGS or not all(type(tint) is int and tint >= 0 for tint in by.values()):
        raise InvalidRequest("'coloured': expected an object with `by` (whole numbers) and `whole` (true or false)")
    return by, whole if isinstance(whole, bool) else None


def _files(called: object) -> tuple[str, str]:
    """Return the names of both files; placeholders if unknown."""
    names = []
    for kind in KINDS:
        name = called.get(kind) if isinstance(called, dict) else None
        if isinstance(name, str) and 0 < len(name) < LONGEST_NAME and name.isprintable() and name[0] not in "<-":
            names.append(name if name.endswith((".yaml", ".yml", ".json")) else f"{name}.yaml")
        else:
            names.append(f"<{kind}>")
    return (names[0], names[1]) if names[0] != names[1] else ("<machine>", "<workload>")


def text_of(said: Mapping[str, Any], key: str) -> str:
    """Return a text in a request; raise InvalidRequest."""
    value = said.get(key)
    if not isinstance(value, str):
        raise InvalidRequest(f"'{key}': expected a text")
    return value


def texts_of(said: Mapping[str, Any], key: str, most: int) -> list[str]:
    """Return a list of texts in a request; raise InvalidRequest."""
    value = said.get(key)
    if not isinstance(value, list) or len(value) > most or not all(isinstance(text, str) for text in value):
        raise InvalidRequest(f"'{key}': expected a list of at most {most} texts")
    return value


def number_of(said: Mapping[str, Any], key: str) -> int:
    """Return a whole number in a request, at least 0; raise InvalidRequest."""
    value = said.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"'{key}': expected a whole number")
    return value


def _part(given: object) -> tuple[float, float]:
    if isinstance(given, list) and len(given) == 2 and all(isinstance(end, int | float) for end in given):
        low, high = map(float, given)
        if math.isfinite(low) and math.isfinite(high) and 0 <= low < high <= 1:
            return low, high
    raise InvalidRequest("'part': expected two increasing numbers from 0 to 1")


def mistake(says: str, hint: str | None = None) -> dict[str, Any]:
    """Return an error without a place, for the page."""
    return {"file": "", "line": 0, "column": 0, "path": "", "text": says, "hint": hint or ""}


def mistakes_of(error: SpecError, files: tuple[str, str]) -> list[dict[str, Any]]:
    """Return errors with their places, for the page; files: names of both files."""
    return list(_shown(error.mistakes[:MOST_MISTAKES], dict(zip(files, KINDS, strict=True))))


def _shown(mistakes: Iterable[Mistake], kinds: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    for given in mistakes:
        entry, place = mistake(given.message, given.hint), given.place
        if place is not None and place.file in kinds:
            entry |= {"file": kinds[place.file], "line": place.line, "column": place.column}
        elif place is not None and place.file == "--set":
            text = place.source.line(1) if place.source else ""
            entry |= {"file": "set", "path": text.partition("=")[0]}
        elif place is not None and place.file:
            entry["text"] = f"{Path(place.file).name}:{place.line}: {given.message}"
        yield entry
