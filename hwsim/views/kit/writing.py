"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write(path: str | Path, chunks: Iterable[bytes]) -> Path:
    """Write to a file in the same folder, then put it in its place; after a failure `path` is as it was.

    A link is followed; what is no regular file (a pipe, a terminal) is written to as it comes. A file that is replaced keeps
    its permissions.

    Returns:
        The path as it was given.

    Raises:
        OSError: the folder does not exist, is full, or may not be written to; the error has the path as its `filename`.
    """
    given = Path(path)
    with naming(given):
        _write(Path(os.path.realpath(given)), chunks)
    return given


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the system inside name the file; the error of a full disk does not by itself."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(chunks)
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            if path.exists():
                beside.chmod(stat.S_IMODE(path.stat().st_mode))
            file.writelines(chunks)
        os.replace(beside, path)  # noqa: PTH105 (its pathlib spelling has the opposite word order)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
