"""Files are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write(path: str | Path, chunks: Iterable[bytes]) -> Path:
    """Write to a file in the same folder, then put it in its place; after a failure `path` is as it was.

    A link is followed; what is no regular file (a pipe, a terminal) is written to as it comes.

    Returns:
        The path as it was given.

    Raises:
        OSError: the folder does not exist, is full, or may not be written to.
    """
    given = Path(path)
    path = given.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            file.writelines(chunks)
        return given
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as file:
            file.writelines(chunks)
        os.replace(beside, path)  # noqa: PTH105 (its pathlib spelling has the opposite word order)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return given
