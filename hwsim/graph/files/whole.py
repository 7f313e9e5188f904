"""Files of op graphs are written whole or not at all: a graph of gigabytes takes a while, and a kill comes when it likes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A file to write to, in the same folder; it takes the place of `path` at the end, or is removed after a failure."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # a pipe, a terminal
        yield path
        return
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield beside
        os.replace(beside, path)  # noqa: PTH105 (its pathlib spelling has the opposite word order)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
