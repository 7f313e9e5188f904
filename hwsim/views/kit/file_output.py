"""Atomic file output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hwsim.spec.atomic_file import replaced_atomically


def write(path: str | Path, chunks: Iterable[bytes]) -> Path:
    """Write a file with `replaced_atomically`; after a failure, `path` is unchanged.

    Returns:
        The path as given.

    Raises:
        OSError: the folder does not exist, is full or is not writable; the error has the path as its `filename`.
    """
    given = Path(path)
    with naming(given), replaced_atomically(given) as beside, beside.open("wb") as file:
        file.writelines(chunks)
    return given


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file name to errors of the operating system; the error of a full disk has none."""
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
