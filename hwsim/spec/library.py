"""Lookup of files by name in the library: the machines, parts, workloads, models and runtimes that hwsim includes.

A name that ends in `.yaml` or `.json`, or begins with `.` or `/`, is a path relative to the naming file. Any other name is looked
up in the library (`d2l-4gpu-pcie`, `d2l/async-loop`). A name with `/` may also be a path without its ending.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from hwsim.spec.confined import may_read, refuse_outside
from hwsim.spec.mistakes import Place, SpecError, did_you_mean
from hwsim.spec.tree import Tree

_FOLDERS: Final = {
    "machine": "machines",
    "class": "machines/classes",
    "failures": "machines/failures",
    "prices": "machines/prices",
    "workload": "workloads",
    "framework": "workloads/frameworks",
    "model": "workloads/models",
    "runtime": "workloads/runtimes",
}
_ROLES: Final = dict.fromkeys(("hdd", "ssd", "volume", "raid", "filesystem"), "disk")  # kinds in one folder
_ANY: Final = {"collectives": ("nccl", "mpi", "overheads", "own", "fabric")}  # kinds that a machine file may omit
_TRAINED: Final = ("workload", "model")  # a model where a workload is expected
_ENDINGS: Final = (".yaml", ".yml")
_GRAPHS: Final = (".npz",)


@cache
def library_root() -> Path:
    """Return the folder of machines/ and workloads/: inside an installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent


def of_user(tree: Tree) -> bool:
    """Return whether a value is from a file outside the library."""
    return not tree.place.file.startswith((str(library_root() / "machines"), str(library_root() / "workloads")))


def role(kind: str) -> str:
    """Return the role of a kind of part in a machine: `disk` for a hard disk; most kinds are their own role.

    >>> role("hdd"), role("gpu")
    ('disk', 'gpu')
    """
    return _ROLES.get(kind, kind)


def folder(kind: str) -> Path:
    """Return the folder of the files of a kind; every kind without its own folder is a kind of part (gpu, pcie, ...)."""
    return library_root() / _FOLDERS.get(kind, f"machines/parts/{role(kind)}")


def names(kind: str) -> tuple[str, ...]:
    """Return the sorted names of the library's files of a kind; 'part' is every kind of part, as `gpu/v100`.

    Nested folders of other kinds (machines/parts, workloads/models) are excluded. The result is cached for the process.
    """
    return _names(kind, library_root())


@cache
def _names(kind: str, library: Path) -> tuple[str, ...]:
    if kind in _ANY:
        return tuple(sorted(name for member in _ANY[kind] for name in _names(member, library)))
    root = library / "machines/parts" if kind == "part" else folder(kind)
    try:
        if not root.is_dir():
            return ()
    except OSError:  # the kind is not a valid folder name
        return ()
    inner = [library / "machines/parts", *(library / path for path in _FOLDERS.values())]
    others = tuple(f"{path.as_posix()}/" for path in inner if path != root and root in path.parents)
    paths = (path.as_posix() for path in root.rglob("*.yaml"))
    skipped = len(root.as_posix()) + 1
    return tuple(sorted(path[skipped:].removesuffix(".yaml") for path in paths if not path.startswith(others)))


def find(kind: str, name: str, relative_to: Path | None = None, place: Place | None = None) -> Path:
    """Return the file of a name or path.

    Args:
        kind: "machine", "workload", "model", "runtime", a kind of part ("gpu", "pcie"), or "part" for any kind of part.
        relative_to: folder to which paths are relative; default: the current folder.
        place: place of the name in a file, for the message.

    Raises:
        SpecError: there is no such file; the hint contains the nearest names of the library.
    """
    if not _can_name(name):
        raise SpecError.of(place, f"expected the name of a {kind}, got '{name[:40]}'")
    if kind == "workload" and name.endswith(_GRAPHS):
        raise SpecError.of(
            place, f"'{name}' is an op graph, whose numbers are fixed: this command needs a workload file",
            "hwsim simulate, explain, compare and export accept op graphs",
        )  # fmt: skip
    path = located(kind, name, relative_to)
    if path is not None:
        return path
    if _is_path(name):
        path = _beside(name, relative_to)
        refuse_outside(path, place)
        if (file_type := _special_file(path)) is not None:
            hint = "to read the output of another program, use standard input: -" if file_type == "a pipe" else None
            raise SpecError.of(place, f"'{name}' is {file_type}, not a file", hint)
        raise SpecError.of(place, f"there is no file '{name}'" + (f" next to {place.file}" if place and place.file else ""))
    folder_of_paths = relative_to or Path()
    candidates = names(kind)
    ending = next((ending for ending in _ENDINGS if _is_file(folder_of_paths / (name + ending))), "")
    hint = f"write the file's name with its ending: '{name}{ending}'" if ending else None
    ends = [candidate for candidate in candidates if candidate.rpartition("/")[2] == name]
    near = did_you_mean(ends[0], ends) if ends else did_you_mean(name, candidates)
    elsewhere = None if ends else _elsewhere(kind, name)
    hint = hint or elsewhere or near
    called = "file of failures" if kind == "failures" else kind
    raise SpecError.of(place, f"there is no {called} '{name[:60]}' in the library", hint)


def located(kind: str, name: str, relative_to: Path | None = None) -> Path | None:
    """Return the file that `find` returns, or None if there is none."""
    if not _can_name(name):
        return None
    folder_of_paths = relative_to or Path()
    if _is_path(name):
        path = _beside(name, folder_of_paths)
        return path if _is_file(path) else None
    if "/" in name:
        for ending in _ENDINGS:
            if _is_file(folder_of_paths / (name + ending)):
                return folder_of_paths / (name + ending)
    folders = [folder(member) for member in _ANY.get(kind, (kind,))]
    if kind == "part":
        parts = library_root() / "machines/parts"
        folders = [parts, *sorted(parts.glob("*/"))]
    paths = (parent / (name + ".yaml") for parent in folders)
    return next((path for path in paths if ".." not in path.parts and _is_file(path)), None)


def _can_name(name: str) -> bool:
    return bool(name) and len(name) <= 1000 and name.isprintable()


def _is_path(name: str) -> bool:
    return name.endswith((*_ENDINGS, ".json")) or name.startswith((".", "/", "~"))


def _beside(name: str, relative_to: Path | None) -> Path:
    try:
        return Path(name).expanduser() if name.startswith("~") else (relative_to or Path()) / name
    except RuntimeError:  # unknown user
        return (relative_to or Path()) / name


def _is_file(path: Path) -> bool:
    """Whether the file exists and may be read."""
    try:
        return may_read(path) and path.is_file()
    except (OSError, ValueError):  # invalid file name
        return False


def _special_file(path: Path) -> str | None:
    """The type of an existing file in words, if it is not a regular file."""
    try:
        if not may_read(path) or not path.exists():
            return None
        return "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else None if path.is_file() else "a device or a socket"
    except (OSError, ValueError):
        return None


def _elsewhere(kind: str, name: str) -> str | None:
    """Hint that the library contains the name under another kind."""
    for other_kind in (*_FOLDERS, "part"):
        for candidate in names(other_kind) if other_kind != kind else ():
            if candidate == name or candidate.rpartition("/")[2] == name:
                trained = (
                    f": a workload trains it, `train: {{model: {candidate}, ...}}`" if (kind, other_kind) == _TRAINED else ""
                )
                return f"'{name}' is a {other_kind if other_kind != 'part' else candidate.rpartition('/')[0]}{trained}"
    return None
