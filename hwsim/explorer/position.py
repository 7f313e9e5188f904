"""The keys that lead to a place of a YAML text, which may be half written, and the keys of its mapping before it."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from hwsim.records import dataclass

LONGEST: Final = 200_000  # characters before the place that are looked at
_ITEM: Final = re.compile(r"-(?:\s+|$)")
_KEY: Final = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^\s:{}\[\],#&*!|>'"%@`][^:{}\[\],#]*?))\s*:(?=\s|$)""")
_WORD: Final = re.compile(r"[\w.$/*-]*$")


@dataclass(slots=True)
class Level:
    """A mapping or list around a place.

    Args:
        indent: column of its keys or dashes; -1 inside brackets.
        is_list: whether it is a list.
        key: the key whose value is being written.
        seen: keys before the place, with their scalar values.
    """

    indent: int
    is_list: bool
    key: str = ""
    seen: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Position:
    """A place: the levels around it from the outside in, whether a value is written there (else a key), and the word begun."""

    levels: tuple[Level, ...]
    is_value: bool
    word: str

    @property
    def path(self) -> tuple[str, ...]:
        """Keys that lead to the value that is written, or to the mapping that a key is written in; "-" is an element."""
        steps = [("-" if level.is_list else level.key) for level in self.levels]
        return tuple(steps if self.is_value else steps[:-1])

    @property
    def before(self) -> dict[str, str]:
        """Keys of the innermost mapping before the place."""
        return next((level.seen for level in reversed(self.levels) if not level.is_list), {})


def position(text: str, line: int, column: int) -> Position:
    r"""The position at a line and column, both from 1.

    >>> place = position("parts:\n  gpu: {kind: gpu, us", 2, 23)
    >>> place.path, place.is_value, place.word, place.before
    (('parts', 'gpu'), False, 'us', {'kind': 'gpu'})
    """
    lines = text.splitlines()[: max(line, 1)]
    if len(lines) == line and lines:
        lines[-1] = lines[-1][: max(column - 1, 0)]
    elif len(lines) < line:
        lines.append("")
    scan = _Scan()
    for row in ("\n".join(lines))[-LONGEST:].split("\n")[:-1]:
        scan.line(row)
    last = lines[-1] if lines else ""
    begun = _WORD.search(last)
    word = begun.group() if begun else ""
    scan.line(last.removesuffix(word) if word else last, last=True)
    return Position(tuple(scan.levels), scan.is_value, word)


class _Scan:
    """Reads lines, and keeps the levels that are open at their end."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        self.is_value = False

    def line(self, text: str, *, last: bool = False) -> None:
        """Take one line; `last`: the place is at its end."""
        if self.levels and self.levels[-1].indent < 0:
            self._inside(text)
            return
        stripped = text.lstrip()
        if (not stripped and not last) or stripped.startswith(("#", "---")):
            return
        indent = len(text) - len(stripped)
        self.is_value = False
        if not stripped:
            self._close(indent)
            if self.levels and self.levels[-1].indent < indent:
                self._open(indent, is_list=False)
            return
        while item := _ITEM.match(stripped):
            self._close(indent, item=True)
            if not self.levels or not (self.levels[-1].is_list and self.levels[-1].indent == indent):
                self._open(indent, is_list=True)
            stripped, indent = stripped[item.end() :], indent + item.end()
            self.is_value = not stripped
        if not stripped:
            self._open(indent, is_list=False)
            self.is_value = False
            return
        key = _KEY.match(stripped)
        if key is None:
            self._close(indent)
            self._inside(stripped)
            return
        self._close(indent)
        if not self.levels or self.levels[-1].indent != indent or self.levels[-1].is_list:
            self._open(indent, is_list=False)
        name = next((each for each in key.groups() if each is not None), "")
        level = self.levels[-1]
        level.key, rest = name, stripped[key.end() :]
        level.seen[name] = rest.partition(" #")[0].strip().strip("\"'")
        self.is_value = True
        self._inside(rest)

    def _open(self, indent: int, *, is_list: bool) -> None:
        self.levels.append(Level(indent, is_list))

    def _close(self, indent: int, *, item: bool = False) -> None:
        """Close the levels that a line at this indent ends."""
        while self.levels and (self.levels[-1].indent > indent):
            self.levels.pop()
        if not item and len(self.levels) > 1 and self.levels[-1].is_list and self.levels[-1].indent == indent:
            self.levels.pop()  # a list that stands as far left as the key that it belongs to

    def _inside(self, text: str) -> None:
        """Follow brackets."""
        at = 0
        while at < len(text):
            letter = text[at]
            if letter in "\"'":
                end = text.find(letter, at + 1)
                at = len(text) if end < 0 else end + 1
                continue
            if letter == "#" and (not at or text[at - 1].isspace()):
                return
            level = self.levels[-1] if self.levels else None
            flow = level is not None and level.indent < 0
            if letter in "{[":
                self.levels.append(Level(-1, letter == "["))
                self.is_value = letter == "["
            elif letter in "}]" and flow:
                self.levels.pop()
                self.is_value = True
            elif letter == "," and flow and level is not None:
                level.key, self.is_value = "", level.is_list
            elif flow and level is not None and not level.is_list and not level.key and (key := _KEY.match(text, at)):
                level.key = next((name for name in key.groups() if name is not None), "")
                level.seen[level.key] = re.split(r"[,}\]]", text[key.end() :], maxsplit=1)[0].strip().strip("\"'")
                self.is_value, at = True, key.end()
                continue
            at += 1
