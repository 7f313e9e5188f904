"""A journal of finished points, which survives the end of the process.

Each line is JSON. The first line, the head, identifies the study; every other line is the row of a point, with its number `n`:

    {"hwsim": "journal/1", "study": "5f0c...", "version": "0.9"}
    {"n": 17, "makespan_s": 0.3, ...}

A row is handed to the system as soon as it is there, so a killed process loses none; the disk has it within a second, so a
power cut loses no more than that. What was cut off at the end is removed; a damaged line before whole ones is refused, with its
number. Rows stand in the order in which they finished. One process writes: a second is refused as long as the first runs.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from hwsim.spec import Place, SpecError
from hwsim.spec.packed import commanding

FORMAT: Final = "journal/1"
FAR: Final = 2**40  # offset of the locked byte on Windows
EVERY: Final = 1.0  # time between two `fsync` calls (seconds)


class Journal:
    """A journal file with the row of each finished point.

    Attributes:
        done: rows by point number, also from earlier runs; of duplicate rows, the first.
    """

    def __init__(self, path: str | Path, head: Mapping[str, Any], *, every: float = EVERY) -> None:
        """Open or create a journal.

        Args:
            path: journal file.
            head: identification of the study; a journal with another head is rejected, not overwritten.
            every: time between two `fsync` calls (seconds).

        Raises:
            SpecError: the file is not a journal, belongs to another study, has a damaged line, or is locked by another process.
            OSError: the file cannot be read or written.
        """
        self.path = Path(path)
        self.done: dict[int, Mapping[str, Any]] = {}
        self._every = every
        self._file = self._open()
        try:
            length = self._read({"hwsim": FORMAT, **head})
            os.ftruncate(self._file, length)
            os.lseek(self._file, length, os.SEEK_SET)
            if not length:
                self._put({"hwsim": FORMAT, **head})
        except BaseException:
            os.close(self._file)
            raise
        self._synced = time.monotonic()

    def add(self, number: int, row: Mapping[str, Any]) -> None:
        """Write the row of a point, unless the journal has it."""
        if number in self.done:
            return
        row = {"n": number, **row}
        self._put(row)
        self.done[number] = row
        if time.monotonic() - self._synced >= self._every:
            self.sync()

    def sync(self) -> None:
        """Wait until all rows are on disk."""
        os.fsync(self._file)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Write remaining rows and unlock the file."""
        if self._file >= 0:
            try:
                self.sync()
            finally:
                os.close(self._file)
                self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _open(self) -> int:
        """Open and lock the file; open it again if another process has removed or replaced it meanwhile."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            try:
                if not _lock(file):
                    raise self._refused(
                        "another process is writing to this journal", "wait for it, or use another file: --journal FILE"
                    )
                if _is_at(file, self.path):
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _read(self, head: Mapping[str, Any]) -> int:
        """Read the rows and return the length of the complete lines (bytes)."""
        length = read = damaged = 0
        with os.fdopen(os.dup(self._file), "rb") as file:
            for number, line in enumerate(file, 1):
                row = _row(line)
                if number == 1:
                    if row is None and _bytes(head).startswith(line):
                        return 0  # cut off in its first line
                    self._check(row, head)
                read += len(line)
                if number > 1 and (row is None or not isinstance(row.get("n"), int)):
                    damaged = damaged or number
                    continue
                if damaged:
                    raise self._refused("damaged line", "delete the line: its point is run again", damaged)
                if number > 1 and row is not None:
                    self.done.setdefault(row["n"], row)
                length = read
        return length

    def _check(self, first: Mapping[str, Any] | None, head: Mapping[str, Any]) -> None:
        if first is None or first.get("hwsim") != FORMAT:
            raise self._refused("not a journal", "use another file: --journal FILE")
        unlike = [key for key in dict.fromkeys([*head, *first]) if first.get(key) != head.get(key)]
        if not unlike:
            return
        if "version" in unlike:
            raise self._refused(
                f"started by hwsim {first.get('version')}, but this is {head.get('version')}: results may differ",
                "delete the journal to start again, or resume with the version that started it",
            )
        raise self._refused(
            f"this journal belongs to another study: {', '.join(unlike)} differ" + ("s" if len(unlike) == 1 else ""),
            "if a file was changed since, delete the journal to start again, or use another one: --journal FILE",
        )

    def _refused(self, message: str, hint: str, line: int = 1) -> SpecError:
        return SpecError.of(Place(str(self.path), line, 1), message, hint)

    def _put(self, row: Mapping[str, Any]) -> None:
        data = memoryview(_bytes(row))
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise OSError(error.errno or errno.EIO, error.strerror, str(self.path)) from error


def _is_at(file: int, path: Path) -> bool:
    """Whether the path still refers to the open file."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: int) -> bool:
    """Lock a file; return False if another process holds the lock. No effect on systems without file locks."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, FAR, os.SEEK_SET)  # a byte that is never read: a locked one cannot be
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        os.lseek(file, 0, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _bytes(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _row(line: bytes) -> Mapping[str, Any] | None:
    """Parse a line as a row; return None if it is truncated or not a row."""
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and commanding(line, row) is None else None


__all__ = ["Journal"]
