"""JSON of any length, read in pieces: the entries of one list of the document, one after another; the rest is kept."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from hwsim.spec import Place, SpecError

Report = Callable[[int, int], None]  # bytes of the file that are read, bytes in all
T = TypeVar("T")
CHUNK: Final = 1 << 20  # bytes of a file that are read at once
LONGEST: Final = 1 << 26  # bytes of one entry, or of what stands before the list
NEAR: Final = 16  # letters before the end of a piece in which a mistake may be a value that goes on
_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(?=(?:u[0-9a-fA-F]{0,3})?\Z))|(?P<bare>\\)')
_SPACES: Final = re.compile(r"[ \t\r\n]*+")
_BOM: Final = b"\xef\xbb\xbf"
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
    total, results = sum(file.stat().st_size for file in files), []  # integers
    for number, file in enumerate(files):
        before = sum(each.stat().st_size for each in files[:number])  # integers
        part = None if report is None else lambda done, _, before=before: report(before + done, total)
        results.append(read(file, part))
    return results


class Entries:
    """The entries of a list in a JSON document; `rest` has the other keys of the document once all are read.

    Memory does not grow with the file. Numbers with a fraction stay text, because a float would lose digits of a time.

    Args:
        key: name of the list in the document; a document that is a list itself is that list.
        of: a word for the entries.
        hint: help for a document without that key.
        report: is called with the bytes that are read and the bytes of the file.
    """

    def __init__(self, file: Path, key: str, of: str, hint: str = "", report: Report | None = None) -> None:
        self.file, self.key, self.of, self.hint, self.report = file, key, of, hint, report
        self.rest: dict[str, Any] = {}
        self.mended = 0  # backslashes that were not escaped
        decoder: Any = JSONDecoder(parse_float=str, parse_constant=str, strict=False)
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The entries.

        Raises:
            SpecError: the document is cut, damaged or another; with the byte.
            OSError: the file cannot be opened.
        """
        with self.file.open("rb") as raw:
            self._open(raw)
            opening = self._next_character()
            if opening == "[":
                yield from self._list()
            elif opening == "{":
                yield from self._object()
            else:
                shown = ascii(self._text[self._at : self._at + 12])
                raise damaged(self.file, f"JSON is expected, and this begins with {shown}", byte=self.byte)
            if self._next_character():
                raise damaged(self.file, "the document ends here, but more follows", byte=self.byte)

    def _open(self, raw: BinaryIO) -> None:
        self._raw, self._size, self.rest = raw, self.file.stat().st_size, {}
        self._text, self._at = "", 0  # a piece of the text, and where it is read; `_before`: bytes before it
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode
        head = raw.read(16)
        if not head:
            raise damaged(self.file, "the file is empty")
        for start, kind, hint in _KINDS:
            if head.lstrip(_BOM + b" \t\r\n").startswith(start):
                raise damaged(self.file, f"this is {kind}, not JSON", hint)
        self._before = len(_BOM) if head.startswith(_BOM) else 0
        raw.seek(self._before)
        self._source: Any = gzip.GzipFile(fileobj=raw) if head.startswith(b"\x1f\x8b") else raw

    @property
    def byte(self) -> int:
        """The end of what was read last, in bytes of the text."""
        return self._byte(self._at)

    def _byte(self, at: int) -> int:
        before = self._text[:at]
        return self._before + (at if before.isascii() else len(before.encode("utf-8", "surrogateescape")))

    def wrong(self, message: str) -> SpecError:
        """An error in the entry that was yielded last."""
        return damaged(self.file, f"{message}; the entry ends here", byte=self.byte)

    def _list(self) -> Iterator[dict[str, Any]]:
        for _ in self._members("]"):
            entry = self._value()
            if type(entry) is not dict:
                raise damaged(self.file, f"{self.of} are expected, and this is {ascii(entry)[:30]}", byte=self.byte)
            yield entry

    def _object(self) -> Iterator[dict[str, Any]]:
        found = False
        for character in self._members("}"):
            if character != '"':
                raise damaged(self.file, "a key in quotes is expected", byte=self.byte)
            key = self._value()
            if self._next_character() != ":":
                raise damaged(self.file, "a colon is expected after the key", byte=self.byte)
            self._at += 1
            if self._next_character() == "[" and key == self.key:
                found = True
                yield from self._list()
            else:
                self.rest[key] = self._value()
        if not found:
            keys = ", ".join(f"'{key[:40]}'" for key in list(self.rest)[:5])
            raise damaged(self.file, f"there is no list '{self.key}' of {self.of}; it has {keys or 'nothing'}", self.hint or None)

    def _members(self, end: str) -> Iterator[str]:
        """The first character of each member of the list or object that begins here; a comma may follow the last."""
        self._at += 1
        while (character := self._next_character()) != end:
            if not character:
                raise self._cut()
            yield character
            if self._next_character() == ",":
                self._at += 1
            elif self._at < len(self._text) and self._text[self._at] != end:
                raise damaged(self.file, f"a comma or {end} is expected", byte=self.byte)
        self._at += 1

    def _next_character(self) -> str:
        """The character that follows spaces; "" at the end of the file."""
        while True:
            spaces = _SPACES.match(self._text, self._at)
            self._at = spaces.end() if spaces else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(CHUNK):
                return ""

    def _value(self) -> Any:
        step = CHUNK
        while True:
            try:
                value, end = self._scan(self._text, self._at)
                length = end - self._at
                if end < len(self._text) or not self._more(step):  # a number may go on
                    self._at += length
                    return value
            except (StopIteration, ValueError, RecursionError) as error:
                if self._is_mended(error):
                    continue
                if not self._more(step):
                    raise self._cut() from None
            step = min(2 * step, LONGEST)

    def _is_mended(self, error: Exception) -> bool:
        """Whether single backslashes now stand for themselves: profilers on Windows do not escape those of paths.

        Raises:
            SpecError: the value is wrong whatever follows.
        """
        if isinstance(error, RecursionError):
            raise damaged(self.file, "lists and objects are nested too deeply", byte=self.byte) from None
        if isinstance(error, StopIteration):  # no value begins there
            error = JSONDecodeError("a value is expected", "", error.value)
        if not isinstance(error, JSONDecodeError):
            raise damaged(self.file, f"this number is not read: {str(error)[:60]}", byte=self.byte) from None
        if error.pos >= len(self._text) - NEAR or "Unterminated" in error.msg:
            return False
        if not error.msg.startswith("Invalid \\"):
            raise damaged(self.file, f"damaged JSON: {error.msg}", byte=self._byte(error.pos)) from None
        rest = self._text[self._at :]
        mended = _ESCAPE.sub(lambda found: found[0] * 2 if found["bare"] else found[0], rest)
        self.mended += mended.count("\\") - rest.count("\\")
        self._text = self._text[: self._at] + mended
        return True

    def _cut(self) -> SpecError:
        return damaged(self.file, "the file is cut off", "copy or record it again", byte=self._byte(len(self._text)))

    def _more(self, step: int) -> bool:
        """Append a piece of the file to the text, and drop what was read; whether there was one."""
        if len(self._text) - self._at > LONGEST:
            raise damaged(self.file, f"one entry has more than {LONGEST >> 20} MiB", byte=self.byte)
        try:
            piece = self._source.read(step)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            end = self._byte(len(self._text))
            raise damaged(self.file, f"the compressed data are cut off or damaged: {error}", "copy or record it again",
                          byte=end) from None  # fmt: skip
        self._before = self.byte
        self._text, self._at = self._text[self._at :] + self._decode(piece, not piece), 0
        if self.report is not None:
            self.report(self._raw.tell(), self._size)
        return bool(piece)
