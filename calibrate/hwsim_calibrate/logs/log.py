"""Parsing of benchmark logs: lines, runs and JSON, with the position of mistakes.

Additions of launchers and terminals are removed: colours, invisible characters, common indentation, timestamps, and the line
prefixes of `srun`, `mpirun`, `kubectl`, `torchrun`, `journalctl` and `pdsh`. Interleaved lines of several ranks are sorted by
rank.
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

MAX_BYTES: Final = 512 << 20  # of a file
MIN_NUMBER: Final = 1e-12  # of a log, in any unit
MAX_NUMBER: Final = 1e18
MAX_SHOWN: Final = 60  # characters of a value in a message
# Terminal escape sequences, control characters, and characters that change the text direction.
_UNSEEN: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
)
_TIME: Final = re.compile(  # timestamps of kubectl and others; of syslog with the program
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]? ?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \S+ [\w.@/-]+\[\d+\]:)?(?: |$)"
)
_RANK: Final = re.compile(  # Open MPI 4 and 5, kubectl, MPICH, torchrun, Slurm
    r"\[[\w.@:-]+,\d+\](?:\[[^\]]*\])?<std\w+>:? ?|\[pod/[^\]]*\] ?|\[\d+\](?: |$)|\[[a-z]+\d+\]: ?|\s*\d{1,7}:(?: |$)"
)
_HOST: Final = re.compile(r"[\w.@/-]+\s*[:|](?: |$)")  # pdsh, docker and others, if every line has a prefix
_LAST: Final = re.compile(r"\d((?:\.\d*)?)$")  # a number at the end of a line, with its decimals
_MIN_PER_HOST: Final = 4  # lines per prefix from which it is a host name


class Log:
    """The lines of one file, without additions of launchers; line numbers start at 1."""

    def __init__(self, name: str, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x85", " ").replace("\u2028", " ").replace("\u2029", " ")
        self.name = name
        self._source = SourceText(name, text)
        lines = _UNSEEN.sub("", text).split("\n")
        decimals = [len(found[1]) if (found := _LAST.search(line.rstrip())) else 0 for line in lines]
        if _LAST.search(lines[-1]) and decimals[-1] < max(decimals):
            lines[-1] = ""  # truncated within a number
        rows = [_split_rank(line) for line in lines]
        hosts = [found[0] if (found := _HOST.match(line)) else "" for _, line in rows if line]
        if all(hosts) and len(set(hosts)) * _MIN_PER_HOST <= len(hosts):
            rows = [(rank + found[0].strip(), line[found.end() :]) if (found := _HOST.match(line)) else (rank, line)
                    for rank, line in rows]  # fmt: skip
        margin = min((len(line) - len(line.lstrip()) for _, line in rows if line.strip()), default=0)
        rows = [(rank, line[margin:]) for rank, line in rows]
        first = {rank: index for index, (rank, _) in reversed(list(enumerate(rows)))}
        order = sorted(range(len(rows)), key=lambda index: first[rows[index][0]])
        self.lines = [rows[index][1] for index in order]
        self.ranks = [rows[index][0] for index in order]
        self._numbers = [index + 1 for index in order]
        self.text = "\n".join(self.lines)

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Return every line with its number."""
        return zip(self._numbers, self.lines, strict=True)

    def sections(self, opens: re.Pattern[str], row: re.Pattern[str]) -> list[Section]:
        """Return the consecutive runs of a tool.

        Args:
            opens: pattern of a line that starts a new run after rows of results.
            row: pattern of a row of results.

        Raises:
            SpecError: Several ranks printed results.
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
                message = f"both '{rank}' and '{kept[0][0] or 'lines without a rank'}' print results"
                raise self.wrong(lines[0][0], message, "concurrent ranks are not separate runs: keep the lines of one rank")
        return [Section(self, lines, row) for _, lines in kept]

    def place(self, line: int = 0, column: int = 1) -> Place:
        """Return a place in the log; line 0 is the whole file."""
        return Place(self.name, line, column, self._source if line else None)

    def wrong(self, line: int, message: str, hint: str | None = None, column: int = 1) -> SpecError:
        """Return the error to raise."""
        return SpecError.of(self.place(line, column), message, hint)

    def nothing(self, tool: str, hint: str) -> SpecError:
        """Return the error for a file that is not a log of the tool; the hint describes a log."""
        return self.wrong(0, f"the file contains no output of {tool}", hint)

    def number(self, text: object, name: str, line: int = 0, *, zero: bool = False) -> float:
        """Return a positive number (or 0 if `zero`).

        Raises:
            SpecError: The text is not such a number.
        """
        try:
            value = float(text) if isinstance(text, str | int | float) and not isinstance(text, bool) else math.nan
        except (ValueError, OverflowError):
            value = math.nan
        if not (MIN_NUMBER <= value <= MAX_NUMBER or (zero and not value)):
            has_comma = re.match(r"\d+,\d+$", short(text))
            message = f"{name}: expected a number{' of at least' if zero else ' above'} 0, got '{short(text)}'"
            raise self.wrong(line, message, "decimal commas are not supported: use LC_ALL=C" if has_comma else None)
        return value

    def json(self, *needed: str, tool: str, hint: str) -> Entry:
        """Return the single JSON object of the log that has one of some keys.

        Raises:
            SpecError: There is no such object, or several.
        """
        entries = self.jsons(*needed, tool=tool, hint=hint)
        if len(entries) > 1:
            raise self.wrong(0, f"the file contains {len(entries)} results: expected 1", "write one file per result")
        return entries[0]

    def jsons(self, *needed: str, tool: str, hint: str) -> list[Entry]:
        """Return all JSON objects that start at the beginning of a line and have one of some keys.

        Raises:
            SpecError: There is no such object, or one is truncated.
        """
        decoder, start, done = json.JSONDecoder(parse_constant=str), 0, 0
        entries: list[Entry] = []
        for line, text in self.numbered():
            begin, start = start + len(text) - len(text.lstrip()), start + len(text) + 1
            if begin < done or not text.lstrip().startswith("{"):
                continue
            try:
                value, done = decoder.raw_decode(self.text, begin)
            except json.JSONDecodeError as error:
                number = self._numbers[error.lineno - 1]
                raise self.wrong(number, f"the JSON is damaged or truncated: {error.msg}", column=error.colno) from None
            except (ValueError, RecursionError):
                raise self.wrong(line, "the JSON is nested too deeply, or a number has too many digits") from None
            if (bad := commanding(self.text[begin:done].encode("utf-8", "replace"), value)) is not None:
                raise self.wrong(line, f"the text contains the control character U+{ord(bad):04X}")
            if any(key in value for key in needed):
                entries.append(Entry(self, value, ""))
        if not entries:
            raise self.nothing(tool, hint)
        return entries


def _split_rank(line: str) -> tuple[str, str]:
    """Return (prefixes that identify the rank, the line without prefixes and timestamps)."""
    rank, begin = "", 0
    while found := _TIME.match(line, begin) or _RANK.match(line, begin):
        rank += "" if found.re is _TIME else found[0].strip()
        begin = found.end()
    return rank, line[begin:]


@dataclass(frozen=True, slots=True)
class Section:
    """One run of a tool in a log.

    Args:
        log: the log.
        lines: lines of the run with their numbers.
        row: pattern of a row of results.
    """

    log: Log
    lines: Sequence[tuple[int, str]]
    row: re.Pattern[str]

    @property
    def rows(self) -> list[tuple[int, str]]:
        """Rows of results with their line numbers."""
        return [(line, text) for line, text in self.lines if self.row.search(text)]

    @property
    def head(self) -> list[tuple[int, str]]:
        """Lines before the first row of results."""
        first = next(index for index, (_, text) in enumerate(self.lines) if self.row.search(text))
        return list(self.lines[:first])

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the last match of a pattern in the head."""
        return next((found for _, text in reversed(self.head) if (found := pattern.search(text))), None)


class Entry:
    """A value in the JSON of a log, with its path."""

    def __init__(self, log: Log, value: Any, path: str) -> None:
        self.log, self.value, self.path = log, value, path

    @property
    def line(self) -> int:
        """First line that contains the key; 0 if there is none."""
        key = f'"{self.path.rpartition(".")[2]}"'
        return next((number for number, text in self.log.numbered() if key in text), 0) if self.path else 0

    def get(self, key: str, *further: str) -> Entry | None:
        """Return the value of a key, or of further keys inside it; None if it is missing or null."""
        value = self.value.get(key) if isinstance(self.value, Mapping) else None
        found = None if value is None else Entry(self.log, value, f"{self.path}.{key}" if self.path else key)
        return found if found is None or not further else found.get(*further)

    def need(self, *keys: str) -> Entry:
        """Return the value of the first existing key.

        Raises:
            SpecError: None of the keys exists.
        """
        for key in keys:
            if (entry := self.get(key)) is not None:
                return entry
        raise self.log.wrong(self.line, f"{f'`{self.path}` has no' if self.path else 'there is no'} key `{'` or `'.join(keys)}`")

    def elements(self) -> list[Entry]:
        """Return the values of a list.

        Raises:
            SpecError: The value is not a list.
        """
        if not isinstance(self.value, list):
            raise self.log.wrong(self.line, f"`{self.path}`: expected a list, got '{short(self.value)}'")
        return [Entry(self.log, value, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def number(self, *, zero: bool = False) -> float:
        """Return the value as a positive number (or 0 if `zero`).

        Raises:
            SpecError: The value is not such a number.
        """
        return self.log.number(self.value, f"`{self.path}`", self.line, zero=zero)

    def text(self) -> str:
        """Return the value as text for messages."""
        return short(self.value)


def short(value: object) -> str:
    """Return a value as text, truncated for messages."""
    try:
        text = str(value)
    except (ValueError, RecursionError):  # integers with thousands of digits
        return "..."
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def read_log(path: Path) -> Log:
    """Read the log in a file.

    Raises:
        SpecError: The file cannot be read, is empty, or is not text.
    """
    place = Place(str(path), 0, 0)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MAX_BYTES else b""
    except OSError as error:
        raise SpecError.of(place, f"the file cannot be read: {error.strerror}") from None
    if size > MAX_BYTES:
        raise SpecError.of(place, f"the file has {size / 2**20:.0f} MiB: expected at most 512 MiB")
    if data[:2] == b"\x1f\x8b":
        raise SpecError.of(place, "the file is compressed", "decompress it first: gunzip FILE")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.decode("utf-8-sig", errors="replace")
    if "\x00" in text:
        raise SpecError.of(place, "the file is not text: it contains zero bytes")
    if not text.strip():
        raise SpecError.of(place, "the file is empty")
    return Log(str(path), text)
