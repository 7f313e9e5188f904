"""The formats of recorded runs and their readers. A new format needs a module with a function `read`, and a line here."""

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
_HEAD: Final = 1 << 16  # bytes at the start of a JSON file that identify its format
_MARKS: Final = (
    (rb'"traceEvents"|"deviceProperties"|"ph"\s*:', "kineto"),
    (rb'^\s*\{\s*"[^"]*"\s*:\s*\[\s*\d', "chakra"),  # ranks of process groups (comm_group.json)
)


Reader = Callable[[Sequence[Path], Report | None], Recording]  # files, progress -> recording


class Format(NamedTuple):
    """A format: the module of its reader, and its description for `--help`."""

    module: str
    words: str


FORMATS: Final[Mapping[str, Format]] = {
    "kineto": Format("hwsim.importers.kineto.trace", "PyTorch profiler trace (.json, .json.gz), one per rank."),
    "nsys": Format("hwsim.importers.nsys", "Nsight Systems report (nsys export --type sqlite)."),
    "chakra": Format("hwsim.importers.chakra", "Chakra execution trace (.et), one per rank."),
}


def format_of(path: Path) -> str:
    """Return the format of a file by its suffix or the start of its JSON; "" if unknown.

    Raises:
        OSError: the file cannot be read.
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
    """Return the files, with each folder replaced by the files of a format in it.

    Args:
        name: format of the files in folders; default: any.

    Raises:
        SpecError: a path does not exist, or a folder has no such file.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted((file for file in path.iterdir() if file.is_file()), key=lambda each: natural(each.name))
            mine = [file for file in inside if (kind := format_of(file)) and name in (kind, "")]
            if not mine:
                wanted = f"of the format {name}" if name else f"of a known format ({', '.join(FORMATS)})"
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
        files: one file per rank, or one file of all ranks.

    Raises:
        SpecError: a file is truncated, damaged or of another format; with its place.
        OSError: a file cannot be opened.
    """
    reader = cast("Reader", import_module(FORMATS[name].module).read)
    return reader([Path(file) for file in files], report)
