"""Atomic writing of files: an interrupted write leaves the old file unchanged."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the same folder that replaces `path` at the end, or is removed after a failure.

    Symbolic links are followed. Anything but a regular file (a pipe, a terminal) is written directly. A replaced file keeps its
    permissions.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        yield path
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        beside.touch(exist_ok=False)
        if path.exists():
            beside.chmod(stat.S_IMODE(path.stat().st_mode))
        yield beside
        os.replace(beside, path)  # noqa: PTH105 (its pathlib spelling has the opposite word order)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
