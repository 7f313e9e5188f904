"""A benchmark's log: its lines, its runs and its JSON, with the place of what does not fit.

What launchers and terminals add is no part of a line: colours, characters that are not seen, a margin that all lines have, times,
and the prefix that `srun`, `mpirun`, `kubectl`, `torchrun`, `journalctl` or `pdsh` put before every line. Lines of ranks that
print into one another are read one rank after another.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim.records import dataclass
from hwsim.spec import Place, SpecError
from hwsim.spec.mistakes import SourceText
from hwsim.spec.packed import commanding

LARGEST: Final = 512 << 20  # bytes of a file
LEAST: Final = 1e-12  # a number of a log, in whichever unit
MOST: Final = 1e18
LETTERS: Final = 60  # of a value that a message shows
# Colours, titles and character sets of a terminal; control characters, and what turns the direction of text.
_UNSEEN: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_TIME: Final = re.compile(  # of kubectl and others, and of syslog, with the program
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]? ?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \S+ [\w.@/-]+\[\d+\]:)?(?: |$)"
)
_RANK: Final = re.compile(  # of Open MPI 4 and 5, of kubectl, of MPICH, of torchrun, of Slurm
    r"\[[\w.@:-]+,\d+\](?:\[[^\]]*\])?<std\w+>:? ?|\[pod/[^\]]*\] ?|\[\d+\](?: |$)|\[[a-z]+\d+\]: ?|\s*\d{1,7}:(?: |$)"
)
_HOST: Final = re.compile(r"[\w.@/-]+\s*[:|](?: |$)")  # of pdsh, docker and others: if every line has one
_LAST: Final = re.compile(r"\d((?:\.\d*)?)$")  # a number at the end of a line, and its decimals
_PER_HOST: Final = 4  # lines, from which on a word before them is no part of each


class Log:
    """The text of one file, with the line breaks of any system; lines are counted from 1."""

    def __init__(self, name: str, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", " ").replace("\u2028", " ").replace("\u2029", " ")
        self.name = name
        self._source = SourceText(name, text)
        lines = _UNSEEN.sub("", text).split("\n")
        decimals = [len(found[1]) if (found := _LAST.search(line.rstrip())) else 0 for line in lines]
        if _LAST.search(lines[-1]) and decimals[-1] < max(decimals):
            lines[-1] = ""  # cut off within a number
        rows = [_parted(line) for line in lines]
        hosts = [found[0] if (found := _HOST.match(line)) else "" for _, line in rows if line]
        if all(hosts) and len(set(hosts)) * _PER_HOST <= len(hosts):
            rows = [(rank + found[0].strip(), line[found.end() :]) if (found := _HOST.match(line)) else (rank, line)
                    for rank, line in rows]  # fmt: skip
        margin = min((len(line) - len(line.lstrip()) for _, line in rows if line.strip()), default=0)
        rows = [(rank, line[margin:]) for rank, line in rows]
        first = {rank: at for at, (rank, _) in reversed(list(enumerate(rows)))}
        order = sorted(range(len(rows)), key=lambda at: first[rows[at][0]])
        self.lines = [rows[at][1] for at in order]
        self.ranks = [rows[at][0] for at in order]
        self._numbers = [at + 1 for at in order]
        self.text = "\n".join(self.lines)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Every line with its number."""
        return zip(self._numbers, self.lines, strict=True)

    def sections(self, opens: re.Pattern[str], row: re.Pattern[str]) -> list[Section]:
        """Runs of a tool one after another: after rows, a line that `opens` begins the next.

        Raises:
            SpecError: several ranks printed rows.
        """
        found: list[tuple[str, list[tuple[int, str]]]] = []
        has_rows = True
        for rank, (line, text) in zip(self.ranks, self.numbered(), strict=True):
            if not found or rank != found[-1][0] or (has_rows and opens.search(text)):
                found.append((rank, []))
                has_rows = False
            found[-1][1].append((line, text))
            has_rows = has_rows or row.search(text) is not None
        kept = [(rank, lines) for rank, lines in found if any(row.search(text) for _, text in lines)]
        for rank, lines in kept:
            if rank != kept[0][0]:
                message = f"'{rank}' prints results, and '{kept[0][0] or 'no rank'}' does"
                raise self.wrong(
                    lines[0][0], message, "ranks that measure at the same time are no runs of their own: keep one's lines"
                )
        return [Section(self, lines, row) for _, lines in kept]

    def place(self, line: int = 0, column: int = 1) -> Place:
        """A place in it; line 0 is the file as a whole."""
        return Place(self.name, line, column, self._source if line else None)

    def wrong(self, line: int, message: str, hint: str | None = None, column: int = 1) -> SpecError:
        """The mistake to raise."""
        return SpecError.of(self.place(line, column), message, hint)

    def nothing(self, tool: str, hint: str) -> SpecError:
        """The mistake of a file that another program wrote."""
        return self.wrong(0, f"nothing in it was printed by {tool}", hint)

    def number(self, text: object, name: str, line: int = 0, *, zero: bool = False) -> float:
        """A number that is more than 0 (zero: or 0), and that a computer may have printed.

        Raises:
            SpecError: it is none.
        """
        try:
            value = float(text) if isinstance(text, str | int | float) and not isinstance(text, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value) or value < 0 or (value <= 0 and not zero) or (value > 0 and not LEAST <= value <= MOST):
            hint = "a decimal comma: print the log with LC_ALL=C" if re.match(r"\d+,\d+$", short(text)) else None
            raise self.wrong(line, f"{name} is a number{' from' if zero else ' above'} 0, not '{short(text)}'", hint)
        return value

    def json(self, *needed: str, tool: str, hint: str) -> Entry:
        """The one JSON object that has one of these keys, as a tool prints it.

        Raises:
            SpecError: there is none, or several.
        """
        entries = self.jsons(*needed, tool=tool, hint=hint)
        if len(entries) > 1:
            raise self.wrong(0, f"{len(entries)} results in one file", "give each its own file")
        return entries[0]

    def jsons(self, *needed: str, tool: str, hint: str) -> list[Entry]:
        """The JSON objects that begin a line and have one of these keys: programs print warnings before and after them.

        Raises:
            SpecError: there is none, or one is cut off.
        """
        decoder, start, done = json.JSONDecoder(parse_constant=str), 0, 0
        entries: list[Entry] = []
        for line, text in self.numbered():
            at, start = start + len(text) - len(text.lstrip()), start + len(text) + 1
            if at < done or not text.lstrip().startswith("{"):
                continue
            try:
                value, done = decoder.raw_decode(self.text, at)
            except json.JSONDecodeError as error:
                number = self._numbers[error.lineno - 1]
                raise self.wrong(number, f"damaged or cut off JSON: {error.msg}", column=error.colno) from None
            except (ValueError, RecursionError):
                raise self.wrong(line, "JSON that cannot be read: too deep, or a number of too many digits") from None
            if (bad := commanding(self.text[at:done].encode("utf-8", "replace"), value)) is not None:
                raise self.wrong(line, f"the control character U+{ord(bad):04X} does not belong in a text")
            if any(key in value for key in needed):
                entries.append(Entry(self, value, ""))
        if not entries:
            raise self.nothing(tool, hint)
        return entries


def _parted(line: str) -> tuple[str, str]:
    """(what tells the rank, the line without it): launchers inside of one another each have their own."""
    rank, at = "", 0
    while found := _TIME.match(line, at) or _RANK.match(line, at):
        rank += "" if found.re is _TIME else found[0].strip()
        at = found.end()
    return rank, line[at:]


@dataclass(frozen=True, slots=True)
class Section:
    """One run of a tool in a log.

    Args:
        lines: with their numbers.  row: a line of results.
    """

    log: Log
    lines: Sequence[tuple[int, str]]
    row: re.Pattern[str]

    @property
    def rows(self) -> list[tuple[int, str]]:
        """Lines of results."""
        return [(line, text) for line, text in self.lines if self.row.search(text)]

    @property
    def head(self) -> list[tuple[int, str]]:
        """Lines before the first row."""
        first = next(at for at, (_, text) in enumerate(self.lines) if self.row.search(text))
        return list(self.lines[:first])

    def said(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the head says last that fits a pattern."""
        return next((found for _, text in reversed(self.head) if (found := pattern.search(text))), None)


class Entry:
    """A value in a log's JSON, which knows its path."""

    def __init__(self, log: Log, value: Any, path: str) -> None:
        self.log, self.value, self.path = log, value, path

    @property
    def line(self) -> int:
        """The first line that has its key; 0 if none has."""
        key = f'"{self.path.rpartition(".")[2]}"'
        return next((number for number, text in self.log.numbered() if key in text), 0) if self.path else 0

    def get(self, key: str, *further: str) -> Entry | None:
        """The value under a key, and under further ones in it; None if there is none, or null."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        found = None if value is None else Entry(self.log, value, f"{self.path}.{key}" if self.path else key)
        return found if found is None or not further else found.get(*further)

    def need(self, *keys: str) -> Entry:
        """The value under the first of these keys that there is.

        Raises:
            SpecError: there is none.
        """
        for key in keys:
            if (entry := self.get(key)) is not None:
                return entry
        raise self.log.wrong(self.line, f"{f'`{self.path}` has no' if self.path else 'there is no'} `{'` or `'.join(keys)}`")

    def elements(self) -> list[Entry]:
        """The values of a list.

        Raises:
            SpecError: it is none.
        """
        if not isinstance(self.value, list):
            raise self.log.wrong(self.line, f"`{self.path}` is a list, not '{short(self.value)}'")
        return [Entry(self.log, value, f"{self.path}[{place}]") for place, value in enumerate(self.value)]

    def number(self, *, zero: bool = False) -> float:
        """A finite number above 0 (zero: or 0).

        Raises:
            SpecError: it is none.
        """
        return self.log.number(self.value, f"`{self.path}`", self.line, zero=zero)

    def text(self) -> str:
        """The value in words."""
        return short(self.value)


def short(value: object) -> str:
    """A value as far as a message has room for it."""
    try:
        text = str(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return "..."
    return text if len(text) <= LETTERS else text[: LETTERS - 3] + "..."


def read_log(path: Path) -> Log:
    """The log of a file.

    Raises:
        SpecError: it cannot be read, is empty, or is no text.
    """
    place = Place(str(path), 0, 0)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise SpecError.of(place, f"it cannot be read: {error.strerror}") from None
    if size > LARGEST:
        raise SpecError.of(place, f"it has {size / 2**20:.0f} MiB: no log of a benchmark is larger than 512 MiB")
    if data[:2] == b"\x1f\x8b":
        raise SpecError.of(place, "it is packed", "unpack it first: gunzip")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    if "\x00" in text:
        raise SpecError.of(place, "it is no text: it has zero bytes")
    if not text.strip():
        raise SpecError.of(place, "it is empty")
    return Log(str(path), text)
