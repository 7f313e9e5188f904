"""JSON of any length, read in pieces: the entries of one list of the document, one after another; the rest is kept."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from hwsim.spec import Place, SpecError

Report = Callable[[int, int], None]  # bytes of the file that are read, bytes in all
T = TypeVar("T")
Scan = Callable[[str, int], tuple[Any, int]]
CHUNK: Final = 1 << 20  # bytes of a file that are read at once
RUN: Final = 1 << 15  # letters of entries that are decoded together, and of them where the last one may end
NEAR: Final = 1 << 12
LONGEST: Final = 1 << 26  # bytes of one entry, or of what stands before the list
_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(?=(?:u[0-9a-fA-F]{0,3})?\Z))|(?P<bare>\\)')
_FIRST: Final = re.compile(r"[ \t\r\n]*+")
_KEY: Final = re.compile(r'\{[ \t\r\n]*+("[^"\\]{1,40}+")')
_NEXT: Final = re.compile(r"[ \t\r\n]*+(?:,[ \t\r\n]*+|(?=\]))")
_KINDS: Final = (  # how files begin that are taken for JSON
    (b"SQLite format 3\0", "an SQLite database", "of Nsight Systems? then `hwsim import nsys`"),
    (b"PK\x03\x04", "a zip archive", "unpack it, and give the files in it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with `zstd -d`"),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `unxz`"),
    (b"BZh", "compressed with bzip2", "unpack it with `bunzip2`"),
    (b"\xff\xfe", "text in UTF-16", "write it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "write it as UTF-8"),
    (b"<", "HTML or XML", "a page of a site that wants a login, perhaps: download the file itself"),
)


def damaged(file: str | Path, message: str, hint: str | None = None, *, byte: int | None = None) -> SpecError:
    """An error at a byte of the text of a file (after decompression), or in a file as a whole."""
    where = "" if byte is None else f"byte {byte} of the text: "
    return SpecError.of(Place(str(file), 0, 0), where + message, hint)


def read_each(files: Sequence[Path], read: Callable[[Path, Report | None], T], report: Report | None) -> list[T]:
    """Results of a function for each file; progress counts the bytes of all files."""
    total, before, results = sum(file.stat().st_size for file in files), 0, []  # integers
    for file in files:
        part = None if report is None else partial(_report_part, report, before, total)
        results.append(read(file, part))
        before += file.stat().st_size
    return results


def _report_part(report: Report, before: int, total: int, done: int, _: int) -> None:
    report(before + done, total)


class Entries:
    """The entries of a list in a JSON document; `rest` has the other keys of the document once all are read.

    Memory does not grow with the file. Numbers with a fraction stay text, because a float would lose digits of a time.

    Args:
        key: name of the list in the document; a document that is a list itself is that list.
        of: a word for the entries.
        hint: help for a document without that key.
        singly: whether `byte` is the end of each entry; else of a run of them, and reading is a quarter quicker.
        report: is called with the bytes that are read and the bytes of the file.
    """

    def __init__(self, file: Path, key: str, of: str, hint: str = "", report: Report | None = None) -> None:
        self.file, self.key, self.of, self.hint, self.report = file, key, of, hint, report
        self.singly = False
        self.mended = 0  # backslashes that were not escaped
        self.rest: dict[str, Any] = {}
        self._text, self._at, self._before = "", 0, 0
        self._cuts: dict[str, re.Pattern[str]] = {}  # by the first key of entries
        self._singly_to = 0
        decoder: Any = JSONDecoder(parse_float=str, parse_constant=str, strict=False)
        self._scan: Scan = decoder.scan_once

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The entries.

        Raises:
            SpecError: the document is cut, damaged or another; with the byte.
            OSError: the file cannot be opened.
        """
        with self.file.open("rb") as raw:
            self._open(raw)
            is_mapping = self._begin()
            following, step = _FIRST.match, CHUNK
            while True:
                gap = following(self._text, self._at)
                if gap is None:
                    self._refuse_without_comma()
                    continue
                self._at = at = gap.end()
                if run := self._run():
                    following = _NEXT.match
                    yield from run
                    continue
                try:
                    entry, self._at = self._scan(self._text, at)
                except (StopIteration, ValueError, RecursionError) as error:
                    if self._text[at : at + 1] == "]":
                        self._at = at + 1
                        break
                    following = _FIRST.match  # the comma is behind
                    step = self._more_for(at, error, step)
                    continue
                following, step = _NEXT.match, CHUNK
                if type(entry) is not dict:
                    shown = ascii(entry)[:30]
                    raise damaged(self.file, f"{self.of} are expected, and this is {shown}", byte=self._byte(at))
                yield entry
            self._finish(is_mapping=is_mapping)

    def _run(self) -> list[dict[str, Any]]:
        """Many entries decoded together, which share the texts of their keys; none if it cannot be seen where one ends.

        The cut is a guess: a brace, a comma, and an object with the first key that these entries have. A wrong guess does not
        decode, and the entries are read one after another, which finds the place of a mistake, too.
        """
        if self.singly or self._at < self._singly_to or len(self._text) - self._at < RUN:
            return []
        first = _KEY.match(self._text, self._at)
        if first is None:
            return []
        if first[1] not in self._cuts:
            self._cuts[first[1]] = re.compile(rf"\}}(?=[ \t\r\n]*+,[ \t\r\n]*+\{{[ \t\r\n]*+{re.escape(first[1])})")
        cut = self._cuts[first[1]].search(self._text, self._at + RUN - NEAR, self._at + RUN)
        if cut is not None:
            run = f"[{self._text[self._at : cut.end()]}]"
            try:
                entries, end = self._scan(run, 0)
            except (StopIteration, ValueError, RecursionError):
                end = -1
            if end == len(run) and set(map(type, entries)) == {dict}:
                self._at = cut.end()
                decoded: list[dict[str, Any]] = entries
                return decoded
        self._singly_to = self._at + RUN
        return []

    def _open(self, raw: BinaryIO) -> None:
        self._text, self._at, self._before = "", 0, 0  # a piece of the text, where it is read, and bytes before it
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        self.rest, self._singly_to = {}, 0
        self._raw, self._size = raw, self.file.stat().st_size
        head = raw.read(16)
        raw.seek(0)
        if not head:
            raise damaged(self.file, "the file is empty")
        for start, kind, hint in _KINDS:
            if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(start):
                raise damaged(self.file, f"this is {kind}, not JSON", hint)
        self._source: Any = gzip.GzipFile(fileobj=raw) if head.startswith(b"\x1f\x8b") else raw

    @property
    def byte(self) -> int:
        """The end of the entry that was yielded last, in bytes of the text."""
        return self._byte(self._at)

    def _byte(self, at: int) -> int:
        before = self._text[:at]
        return self._before + (at if before.isascii() else len(before.encode("utf-8", "surrogateescape")))

    def wrong(self, message: str, hint: str | None = None) -> SpecError:
        """An error in the entry that was yielded last."""
        return damaged(self.file, f"{message}; the entry ends here", hint, byte=self.byte)

    # ------------------------------------------------------------ the document

    def _begin(self) -> bool:
        """Read up to the first entry; whether the document is an object, not a list."""
        opening = self._next_character()
        if opening == "\ufeff":
            self._at += 1
            opening = self._next_character()
        if opening not in ("[", "{"):
            shown = ascii(self._text[self._at : self._at + 12])
            raise damaged(self.file, f"JSON is expected, and this begins with {shown}", byte=self.byte)
        self._at += 1
        if opening == "{" and not self._keys():
            keys = ", ".join(f"'{key[:40]}'" for key in list(self.rest)[:5])
            raise damaged(self.file, f"there is no list '{self.key}' of {self.of}; it has {keys or 'nothing'}", self.hint or None)
        return opening == "{"

    def _finish(self, *, is_mapping: bool) -> None:
        """Read what follows the list."""
        if is_mapping and self._comma():
            self._keys()
        if self._next_character():
            raise damaged(self.file, "the document ends here, but more follows", byte=self.byte)

    def _keys(self) -> bool:
        """Read keys up to the list, which is entered, or to the end of the document; whether the list was found."""
        while (character := self._next_character()) != "}":
            if character != '"':
                raise self._cut() if not character else damaged(self.file, "a key in quotes is expected", byte=self.byte)
            key = self._value()
            if self._next_character() != ":":
                raise damaged(self.file, "a colon is expected after the key", byte=self.byte)
            self._at += 1
            if self._next_character() == "[" and key == self.key:
                self._at += 1
                return True
            self.rest[key] = self._value()
            if not self._comma():
                return False
        self._at += 1
        return False

    def _comma(self) -> bool:
        """Read the comma after a value; false at the end of the document."""
        character = self._next_character()
        if character not in (",", "}"):
            raise damaged(self.file, "a comma or } is expected", byte=self.byte) if character else self._cut()
        self._at += 1
        return character == ","

    def _value(self) -> Any:
        """A value of the document's head or tail."""
        self._next_character()
        step = CHUNK
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except (StopIteration, ValueError, RecursionError) as error:
                step = self._more_for(self._at, error, step)
                continue
            length = end - self._at
            if end == len(self._text) and self._more(step):  # a number may go on
                continue
            self._at += length
            return value

    # ------------------------------------------------------------ pieces

    def _next_character(self) -> str:
        """The character that follows spaces; "" at the end."""
        while True:
            spaces = _FIRST.match(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(CHUNK):
                return ""

    def _more_for(self, at: int, error: Exception, step: int) -> int:
        """Read on, because a value did not end; how much to read the next time.

        Raises:
            SpecError: the value is wrong, and would be wrong whatever follows.
        """
        if isinstance(error, RecursionError):
            raise damaged(self.file, "lists and objects are nested too deeply", byte=self._byte(at)) from None
        if isinstance(error, StopIteration):  # no value begins there
            error = JSONDecodeError("a value is expected", "", error.value)
        if not isinstance(error, JSONDecodeError):
            raise damaged(self.file, f"this number is not read: {str(error)[:60]}", byte=self._byte(at)) from None
        if error.msg.startswith(("Invalid \\escape", "Invalid \\uXXXX")) and error.pos < len(self._text) - 16:
            self._mend(at)
            return step
        if error.pos < len(self._text) - 16 and "Unterminated" not in error.msg:
            raise damaged(self.file, f"damaged JSON: {error.msg}", byte=self._byte(error.pos)) from None
        if not self._more(step):
            raise self._cut() from None
        return min(2 * step, LONGEST)

    def _mend(self, at: int) -> None:
        """Read single backslashes as themselves: profilers on Windows do not escape those of paths."""
        rest = self._text[at:]
        mended = _ESCAPE.sub(lambda found: found[0] * 2 if found["bare"] else found[0], rest)
        self.mended += mended.count("\\") - rest.count("\\")
        self._text = self._text[:at] + mended

    def _refuse_without_comma(self) -> None:
        """Read on if the text ends after an entry.

        Raises:
            SpecError: it goes on without a comma, or not at all.
        """
        if self._next_character() and self._text[self._at] not in ",]":
            raise damaged(self.file, "a comma or ] is expected", byte=self.byte)
        if self._at == len(self._text):
            raise self._cut()

    def _cut(self) -> SpecError:
        return damaged(self.file, "the file is cut off", "copy or record it again", byte=self._byte(len(self._text)))

    def _more(self, step: int) -> bool:
        """Append a piece of the file to the buffer, and drop what was read; whether there was one."""
        if len(self._text) - self._at > LONGEST:
            raise damaged(self.file, f"one entry has more than {LONGEST >> 20} MiB", byte=self.byte)
        pieces: list[bytes] = []
        try:
            while sum(map(len, pieces)) < step and (piece := self._source.read1(step)):  # integers
                pieces.append(piece)
        except EOFError:
            if not pieces:
                end = self._byte(len(self._text))
                raise damaged(self.file, "the compressed data are cut off", "copy or record it again", byte=end) from None
        except (zlib.error, gzip.BadGzipFile) as error:
            if not pieces:
                end = self._byte(len(self._text))
                raise damaged(self.file, f"the compressed data are damaged: {error}", byte=end) from None
        piece = b"".join(pieces)
        self._before = self.byte
        self._text = self._text[self._at :] + self._decode(piece, not piece)
        self._at = self._singly_to = 0
        if self.report is not None:
            self.report(self._raw.tell(), self._size)
        return bool(piece)
