"""Questions of the page, checked: two texts, settings, the part of the time that is seen; and mistakes as the page shows them."""

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


class Unclear(Exception):
    """A question that is not of the form that the page uses."""


@dataclass(frozen=True, slots=True)
class State:
    """Two texts and what is set.

    Args:
        files: names of the files that the texts come from; paths in them start there.
        pixels: width of the timeline; part: the part of the time that it shows, from 0 to 1.
        coloured, whole: colours that the page has, see `Tints`.
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
        """Both texts as YAML; raises SpecError with the mistakes of both."""
        mistakes, trees = Mistakes(), list[Tree]()
        for text, file in zip((self.machine, self.workload), self.files, strict=True):
            try:
                trees.append(read_text(text, file))
            except SpecError as error:
                mistakes.extend(error.mistakes)
        mistakes.raise_if_any()
        return trees[0], trees[1]


def state_of(question: Mapping[str, Any]) -> State:
    """The state in a question; raises Unclear."""
    given = question.get("set", {})
    if not isinstance(given, dict) or len(given) > MOST_SETTINGS or not all(isinstance(each, str) for each in given.values()):
        raise Unclear("'set' is an object of texts")
    pixels = question.get("pixels", 1200)
    if not isinstance(pixels, int) or isinstance(pixels, bool) or not 1 <= pixels <= MOST_PIXELS:
        raise Unclear(f"'pixels' is a whole number from 1 to {MOST_PIXELS}")
    texts = text_of(question, "machine"), text_of(question, "workload")
    files, part = _files(question.get("called", {})), _part(question.get("part", [0, 1]))
    return State(*texts, given, files, pixels, part, *_coloured(question.get("coloured", {})))


def _coloured(given: object) -> tuple[dict[str, int], bool | None]:
    """Colours that the page sends back."""
    by, whole = (given.get("by", {}), given.get("whole")) if isinstance(given, dict) else (None, None)
    if not isinstance(by, dict) or len(by) > MOST_SETTINGS or not all(type(each) is int and each >= 0 for each in by.values()):
        raise Unclear("'coloured' is an object: by has whole numbers, whole is true or false")
    return by, whole if isinstance(whole, bool) else None


def _files(called: object) -> tuple[str, str]:
    """Names of the two files, as far as the page knows them."""
    names = []
    for kind in KINDS:
        name = called.get(kind) if isinstance(called, dict) else None
        if isinstance(name, str) and 0 < len(name) < LONGEST_NAME and name.isprintable() and name[0] not in "<-":
            names.append(name if name.endswith((".yaml", ".yml", ".json")) else f"{name}.yaml")
        else:
            names.append(f"<{kind}>")
    return (names[0], names[1]) if names[0] != names[1] else ("<machine>", "<workload>")


def text_of(said: Mapping[str, Any], key: str) -> str:
    """A text of a question; raises Unclear."""
    value = said.get(key)
    if not isinstance(value, str):
        raise Unclear(f"'{key}' is a text")
    return value


def texts_of(said: Mapping[str, Any], key: str, most: int) -> list[str]:
    """A list of texts of a question; raises Unclear."""
    value = said.get(key)
    if not isinstance(value, list) or len(value) > most or not all(isinstance(each, str) for each in value):
        raise Unclear(f"'{key}' is a list of at most {most} texts")
    return value


def number_of(said: Mapping[str, Any], key: str) -> int:
    """A whole number from 0 on; raises Unclear."""
    value = said.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Unclear(f"'{key}' is a whole number")
    return value


def _part(given: object) -> tuple[float, float]:
    if isinstance(given, list) and len(given) == 2 and all(isinstance(each, int | float) for each in given):
        low, high = map(float, given)
        if math.isfinite(low) and math.isfinite(high) and 0 <= low < high <= 1:
            return low, high
    raise Unclear("'part' is two numbers from 0 to 1, the smaller first")


def mistake(says: str, hint: str | None = None) -> dict[str, Any]:
    """A mistake that stands in no file."""
    return {"file": "", "line": 0, "column": 0, "path": "", "says": says, "hint": hint or ""}


def mistakes_of(error: SpecError, files: tuple[str, str]) -> list[dict[str, Any]]:
    """Mistakes with their places, as the page shows them; files: the names of the two texts."""
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
            entry["says"] = f"{Path(place.file).name}:{place.line}: {given.message}"
        yield entry
