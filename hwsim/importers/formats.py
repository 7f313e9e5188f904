"""Formats of recorded runs: name -> reader. A new format is a module with a function `read`, and a line here."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple, cast

from hwsim.formats import natural
from hwsim.importers.recording import Recording
from hwsim.importers.text import Report
from hwsim.spec import SpecError

_ENDINGS: Final[Mapping[str, str]] = {".et": "chakra", ".sqlite": "nsys"}
_HEAD: Final = 1 << 16  # bytes of a JSON that tell its format
_MARKS: Final = (
    (rb'"traceEvents"|"deviceProperties"|"ph"\s*:', "kineto"),
    (rb'^\s*\{\s*"[^"]*"\s*:\s*\[\s*\d', "chakra"),  # ranks of process groups
)


Reader = Callable[[Sequence[Path], Report | None], Recording]  # `read` of a format's module: files, a progress


class Format(NamedTuple):
    """A format: the module of its reader, and what it is in words."""

    module: str
    words: str


FORMATS: Final[Mapping[str, Format]] = {
    "kineto": Format("hwsim.importers.kineto.trace", "JSON of PyTorch's profiler (.json, .json.gz), a file for each rank."),
    "nsys": Format("hwsim.importers.nsys", "SQLite of Nsight Systems (nsys export --type sqlite)."),
    "chakra": Format("hwsim.importers.chakra", "Chakra execution traces (.et), a file for each rank."),
}


def format_of(path: Path) -> str:
    """The format of a file by its ending, or by how its JSON begins; "" if it is of none.

    Raises:
        OSError: it cannot be read.
    """
    ending = next((ending for ending in _ENDINGS if path.name.lower().endswith(ending)), "")
    if ending:
        return _ENDINGS[ending]
    if not path.name.lower().endswith((".json", ".json.gz", ".gz")):
        return ""
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if is_packed else path.open("rb") as file:
            head = file.read(_HEAD)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return ""
    return next((name for mark, name in _MARKS if re.search(mark, head)), "")


def files_of(paths: Sequence[Path], name: str = "") -> list[Path]:
    """Files, and in the place of each folder the files in it that are of a format: the one of this name, or any.

    Raises:
        SpecError: a path that is not there, or a folder without such a file.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted((each for each in path.iterdir() if each.is_file()), key=lambda each: natural(each.name))
            mine = [each for each in inside if (kind := format_of(each)) and name in (kind, "")]
            if not mine:
                wanted = f"of the format {name}" if name else f"of a format that is read: {', '.join(FORMATS)}"
                raise SpecError.of(None, f"no file in the folder '{path}' is {wanted}")
            files += mine
        elif not path.exists():
            raise SpecError.of(None, f"there is no file '{path}'")
        else:
            files.append(path)
    return files


def read(name: str, files: Sequence[str | Path], report: Report | None = None) -> Recording:
    """Read a recorded run.

    Args:
        name: a format of `FORMATS`.
        files: a file for each rank, or one of all.

    Raises:
        SpecError: a file that is cut, damaged or of another format; with its place.
        OSError: a file that cannot be opened.
    """
    reader = cast("Reader", import_module(FORMATS[name].module).read)
    return reader([Path(file) for file in files], report)
