"""What a page opens with: the texts of both files, the settings, and the names in the library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hwsim.spec import Place, SpecError, Tree, find, names, tree_of
from hwsim.spec.yaml_writer import to_yaml
from hwsim.version import __version__

if TYPE_CHECKING:
    from hwsim.workload.sources import Source


def opened(machine: Source, workload: Source, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer to `opened`: texts of both files, settings, and the names in the library.

    Raises:
        SpecError: a file does not exist.
    """
    given: dict[str, Source] = {"machine": machine, "workload": workload}
    return {
        **{kind: _text(kind, source) for kind, source in given.items()},
        "set": dict(settings),
        "called": {kind: str(source) for kind, source in given.items() if _is_name(source)},
        "version": __version__,
        "library": {"machines": list(names("machine")), "workloads": list(names("workload"))},
    }


def _is_name(source: Source) -> bool:
    return isinstance(source, Path) or (isinstance(source, str) and "\n" not in source)


def _text(kind: str, source: Source) -> str:
    """Return the text of a machine or a workload; raise SpecError."""
    if isinstance(source, str) and not _is_name(source):
        return source
    if isinstance(source, Path | str):
        return read_whole(source if isinstance(source, Path) else find(kind, source))
    return to_yaml(source if isinstance(source, Tree) else tree_of(source))


def read_whole(path: Path) -> str:
    """Return the text of a file; raise SpecError."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the file: {getattr(error, 'strerror', None) or error}"
        raise SpecError.of(Place(str(path), 0, 0), message) from error
