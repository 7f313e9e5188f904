"""Files are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hwsim.spec.whole import replaced


def write(path: str | Path, chunks: Iterable[bytes]) -> Path:
    """Write a file as `replaced` does; after a failure `path` is as it was.

    Returns:
        The path as it was given.

    Raises:
        OSError: the folder does not exist, is full, or may not be written to; the error has the path as its `filename`.
    """
    given = Path(path)
    with naming(given), replaced(given) as beside, beside.open("wb") as file:
        file.writelines(chunks)
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
