"""Folders that may be read: files of strangers, such as those behind a link, must not make a program read the rest of the disk.

Without `confined` a file may name any other. Inside it every reading of hwsim, by `use:` or by the name of data, asks `refusal`
before it looks whether the file is there; links on the disk are followed first. The library may always be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from hwsim.spec.mistakes import Place, SpecError

_ROOTS: ContextVar[tuple[Path, ...] | None] = ContextVar("roots", default=None)


@contextmanager
def confined(roots: Iterable[Path | str] | None) -> Iterator[None]:
    """Read inside these folders, and the library, alone; None: anywhere. What was refused outside stays refused inside."""
    outer = _ROOTS.get()
    given = None if roots is None else tuple(Path(root).resolve() for root in roots)
    if outer is not None and given is not None:
        given = tuple(root for root in given if _is_inside(root, outer))
    before = _ROOTS.set(outer if given is None else given)
    try:
        yield
    finally:
        _ROOTS.reset(before)


def may_read(path: Path | str) -> bool:
    """Whether a file may be read, whether or not it is there."""
    roots = _ROOTS.get()
    if roots is None:
        return True
    try:
        return _is_inside(Path(path).resolve(), (*roots, *_library()))
    except (OSError, ValueError, RuntimeError):  # a name no file can have, or links in a circle
        return False


def refuse_outside(path: Path | str, place: Place | None = None) -> None:
    """Raise SpecError if a file may not be read; the mistake has nothing of the file, not even whether it is there."""
    if not may_read(path):
        raise SpecError.of(place, f"'{str(path)[:60]}' lies outside of the folders that may be read here", _HINT)


def _library() -> tuple[Path, Path]:
    from hwsim.spec.library import library_root  # it asks here whether it may read a file

    return library_root() / "machines", library_root() / "workloads"


_HINT: Final = "files of the library can be used, and those of folders that were allowed (hwsim explore --allow FOLDER)"


def _is_inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
