"""Confinement of file access to allowed folders, so that untrusted input files cannot read other files of the disk.

Without `confined`, an input file may name any other file. Inside `confined`, every file access by `use:` or by the name of a data
file calls `refuse_outside` before it checks whether the file exists; symbolic links are resolved first. Library files are always
allowed.
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
    """Allow file access only inside these folders and the library; None: anywhere. An outer restriction remains in force."""
    outer = _ROOTS.get()
    allowed = None if roots is None else tuple(Path(root).resolve() for root in roots)
    if outer is not None and allowed is not None:
        allowed = tuple(root for root in allowed if _is_inside(root, outer))
    before = _ROOTS.set(outer if allowed is None else allowed)
    try:
        yield
    finally:
        _ROOTS.reset(before)


def may_read(path: Path | str) -> bool:
    """Return whether a file may be read; it need not exist."""
    roots = _ROOTS.get()
    if roots is None:
        return True
    try:
        return _is_inside(Path(path).resolve(), (*roots, *_library()))
    except (OSError, ValueError, RuntimeError):  # invalid file name, or a cycle of links
        return False


def refuse_outside(path: Path | str, place: Place | None = None) -> None:
    """Raise SpecError if a file may not be read; the message does not reveal whether the file exists."""
    if not may_read(path):
        raise SpecError.of(place, f"'{str(path)[:60]}' lies outside the allowed folders", _HINT)


def _library() -> tuple[Path, Path]:
    from hwsim.spec.library import library_root  # circular import

    return library_root() / "machines", library_root() / "workloads"


_HINT: Final = "use a file of the library, or allow the folder: hwsim explore --allow FOLDER"


def _is_inside(path: Path, roots: Iterable[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
