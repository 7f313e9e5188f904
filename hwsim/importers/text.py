"""A streaming JSON parser: yields the entries of one list of a document, and keeps the other keys, in constant memory."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder

from hwsim.spec import Place, SpecError

Report = Callable[[int, int], None]  # progress: bytes read, file size in bytes
T = TypeVar("T")
CHUNK: Final = 1 << 20  # bytes per read
LONGEST: Final = 1 << 26  # bytes of one entry, or of the document before the list
NEAR: Final = 16  # characters before the end of a chunk: an error there may be a value that continues in the next chunk
_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|(?=(?:u[0-9a-fA-F]{0,3})?\Z))|(?P<bare>\\)')
_SPACES: Final = re.compile(r"[ \t\r\n]*+")
_OBJECTS: Final = re.compile(r".*\}(?=[ \t\r\n]*,[ \t\r\n]*\{)", re.DOTALL)  # up to the last object before another one
_BOM: Final = b"\xef\xbb\xbf"
_KINDS: Final = (  # (first bytes, what the file is, hint) of other formats
    (b"SQLite format 3\0", "an SQLite database", "if it is an Nsight Systems report: `hwsim import nsys`"),
    (b"PK\x03\x04", "a zip archive", "unpack it and import its files"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with `zstd -d`"),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `unxz`"),
    (b"BZh", "compressed with bzip2", "unpack it with `bunzip2`"),
    (b"\xff\xfe", "text in UTF-16", "convert it to UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "convert it to UTF-8"),
    (b"<", "HTML or XML", "it may be a login page of a web site: download the file itself"),
)


def damaged(file: str | Path, message: str, hint: str | None = None, *, byte: int | None = None) -> SpecError:
    """Return an error of a file, with the byte of its decompressed text if known."""
    where = "" if byte is None else f"byte {byte} of the text: "
    return SpecError.of(Place(str(file), 0, 0), where + message, hint)


def read_each(files: Sequence[Path], read: Callable[[Path, Report | None], T], report: Report | None) -> list[T]:
    """Call a function for each file, with progress over the bytes of all files, and return the results."""
    total, results = sum(file.stat().st_size for file in files), []  # integers
    for number, file in enumerate(files):
        before = sum(path.stat().st_size for path in files[:number])  # integers
        part = None if report is None else lambda done, _, before=before: report(before + done, total)
        results.append(read(file, part))
    return results


class Entries:
    """An iterable over the entries of one list in a JSON document; afterwards, `rest` has the other keys of the document.

    Memory does not grow with the file. Numbers with a fraction stay text, because a float would lose digits of a time.
    The complete entries of a chunk are decoded together, without keys that `form` does not have. A chunk that is not strict JSON
    of this form is parsed entry by entry, which mends backslashes and finds the byte of an error.

    Args:
        form: TypedDict of the entries; None: parse entry by entry, so that `wrong` has the byte of the entry.
        key: name of the list; unused if the document itself is a list.
        of: plural noun for the entries, for messages.
        hint: hint of the error if the document has no such key.
        report: progress callback.
    """

    def __init__(self, file: Path, form: Any, key: str, of: str, hint: str = "", report: Report | None = None) -> None:
        self.file, self.key, self.of, self.hint, self.report = file, key, of, hint, report
        self.rest: dict[str, Any] = {}
        self.mended = 0  # number of repaired backslashes
        decoder: Any = JSONDecoder(parse_float=str, parse_constant=str, strict=False)
        self._many = None if form is None else Decoder(list[form], float_hook=str)
        self._scan: Callable[[str, int], tuple[Any, int]] = decoder.scan_once

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the entries.

        Raises:
            SpecError: the document is truncated, damaged or of another kind; with the byte.
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
                raise damaged(self.file, f"expected JSON, but the file begins with {shown}", byte=self.byte)
            if self._next_character():
                raise damaged(self.file, "the document ends here, but the file continues", byte=self.byte)

    def _open(self, raw: BinaryIO) -> None:
        self._raw, self._size, self.rest = raw, self.file.stat().st_size, {}
        self._text, self._at = "", 0  # chunk and position in it; `_before`: bytes before the chunk
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
        """Byte of the text at which the last read value ends."""
        return self._byte(self._at)

    def _byte(self, at: int) -> int:
        before = self._text[:at]
        return self._before + (at if before.isascii() else len(before.encode("utf-8", "surrogateescape")))

    def wrong(self, message: str) -> SpecError:
        """Return an error of the entry that was yielded last."""
        return damaged(self.file, f"{message}; the entry ends here", byte=self.byte)

    def _list(self) -> Iterator[dict[str, Any]]:
        tried = -1
        for _ in self._members("]"):
            objects = _OBJECTS.match(self._text, self._at) if self._many and tried != self._before else None
            tried = self._before
            if objects and self._many:
                with suppress(MsgspecError, ValueError, RecursionError):
                    entries = self._many.decode(f"[{objects[0]}]")
                    self._at = objects.end()
                    yield from entries
                    continue
            entry = self._value()
            if type(entry) is not dict:
                raise damaged(self.file, f"expected {self.of}, got {ascii(entry)[:30]}", byte=self.byte)
            yield entry

    def _object(self) -> Iterator[dict[str, Any]]:
        found = False
        for character in self._members("}"):
            if character != '"':
                raise damaged(self.file, "expected a key in quotes", byte=self.byte)
            key = self._value()
            if self._next_character() != ":":
                raise damaged(self.file, "expected a colon after the key", byte=self.byte)
            self._at += 1
            if self._next_character() == "[" and key == self.key:
                found = True
                yield from self._list()
            else:
                self.rest[key] = self._value()
        if not found:
            keys = ", ".join(f"'{key[:40]}'" for key in list(self.rest)[:5])
            raise damaged(self.file, f"no list '{self.key}' of {self.of}; the file has {keys or 'no keys'}", self.hint or None)

    def _members(self, end: str) -> Iterator[str]:
        """Yield the first character of each member of the list or object that begins here; a trailing comma is accepted."""
        self._at += 1
        while (character := self._next_character()) != end:
            if not character:
                raise self._cut()
            yield character
            if self._next_character() == ",":
                self._at += 1
            elif self._at < len(self._text) and self._text[self._at] != end:
                raise damaged(self.file, f"expected a comma or {end}", byte=self.byte)
        self._at += 1

    def _next_character(self) -> str:
        """Return the next character that is no space; "" at the end of the file."""
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
                if end < len(self._text) or not self._more(step):  # a number may continue in the next chunk
                    self._at += length
                    return value
            except (StopIteration, ValueError, RecursionError) as error:
                if self._is_mended(error):
                    continue
                if not self._more(step):
                    raise self._cut() from None
            step = min(2 * step, LONGEST)

    def _is_mended(self, error: Exception) -> bool:
        """Repair single backslashes, which profilers on Windows do not escape in paths; return whether there were any.

        Raises:
            SpecError: the value is invalid whatever follows.
        """
        if isinstance(error, RecursionError):
            raise damaged(self.file, "lists and objects are nested too deeply", byte=self.byte) from None
        if isinstance(error, StopIteration):  # no value begins there
            error = JSONDecodeError("expected a value", "", error.value)
        if not isinstance(error, JSONDecodeError):
            raise damaged(self.file, f"invalid number: {str(error)[:60]}", byte=self.byte) from None
        if error.pos >= len(self._text) - NEAR or "Unterminated" in error.msg:
            return False
        if not error.msg.startswith("Invalid \\"):
            raise damaged(self.file, f"invalid JSON: {error.msg}", byte=self._byte(error.pos)) from None
        rest = self._text[self._at :]
        mended = _ESCAPE.sub(lambda found: found[0] * 2 if found["bare"] else found[0], rest)
        self.mended += mended.count("\\") - rest.count("\\")
        self._text = self._text[: self._at] + mended
        return True

    def _cut(self) -> SpecError:
        return damaged(self.file, "the file is truncated", "copy or record it again", byte=self._byte(len(self._text)))

    def _more(self, step: int) -> bool:
        """Append a chunk of the file to the text and drop the text already read; return whether there was a chunk."""
        if len(self._text) - self._at > LONGEST:
            raise damaged(self.file, f"an entry is larger than {LONGEST >> 20} MiB", byte=self.byte)
        try:
            piece = self._source.read(step)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            end = self._byte(len(self._text))
            raise damaged(self.file, f"the compressed data are truncated or damaged: {error}", "copy or record it again",
                          byte=end) from None  # fmt: skip
        self._before = self.byte
        self._text, self._at = self._text[self._at :] + self._decode(piece, not piece), 0
        if self.report is not None:
            self.report(self._raw.tell(), self._size)
        return bool(piece)
