"""Finding files by name: the machines, parts, workloads, models and runtimes that come with hwsim.

A name that ends in `.yaml` or `.json`, or begins with `.` or `/` is a file, relative to the one that names it. Any other name is
looked up in the library (`d2l-4gpu-pcie`, `d2l/async-loop`); a name with `/` may also be a file without its ending.
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
_ROLES: Final = dict.fromkeys(("hdd", "ssd", "volume", "raid", "filesystem"), "disk")  # they lie in one folder
_ANY: Final = {"collectives": ("nccl", "mpi", "overheads", "own")}  # what a machine says without the kind
_TRAINED: Final = ("workload", "model")  # a model in the place of a workload
_ENDINGS: Final = (".yaml", ".yml")
_GRAPHS: Final = (".npz",)


@cache
def library_root() -> Path:
    """The folder that holds machines/ and workloads/: inside an installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent


def of_user(tree: Tree) -> bool:
    """Whether a value stands in no file of the library."""
    return not tree.place.file.startswith((str(library_root() / "machines"), str(library_root() / "workloads")))


def role(kind: str) -> str:
    """Role of a kind of part in a machine: a hard disk is one kind of disk; most kinds are their own.

    >>> role("hdd"), role("gpu")
    ('disk', 'gpu')
    """
    return _ROLES.get(kind, kind)


def folder(kind: str) -> Path:
    """Folder of the files of a kind; every kind that is not a whole is a kind of part (gpu, pcie, ...)."""
    return library_root() / _FOLDERS.get(kind, f"machines/parts/{role(kind)}")


def names(kind: str) -> tuple[str, ...]:
    """Names of the library's files of a kind, sorted; 'part' is every kind of part, as `gpu/v100`.

    The folders of other kinds inside (machines/parts, workloads/models) are left out. They are listed once in a process.
    """
    return _names(kind, library_root())


@cache
def _names(kind: str, library: Path) -> tuple[str, ...]:
    if kind in _ANY:
        return tuple(sorted(name for each in _ANY[kind] for name in _names(each, library)))
    root = library / "machines/parts" if kind == "part" else folder(kind)
    try:
        if not root.is_dir():
            return ()
    except OSError:  # a kind whose name no folder can have
        return ()
    inner = [library / "machines/parts", *(library / each for each in _FOLDERS.values())]
    others = tuple(f"{each.as_posix()}/" for each in inner if each != root and root in each.parents)
    paths = (path.as_posix() for path in root.rglob("*.yaml"))
    skipped = len(root.as_posix()) + 1
    return tuple(sorted(path[skipped:].removesuffix(".yaml") for path in paths if not path.startswith(others)))


def find(kind: str, name: str, relative_to: Path | None = None, place: Place | None = None) -> Path:
    """The file that a name or path stands for.

    Args:
        kind: "machine", "workload", "model", "runtime", a kind of part ("gpu", "pcie"), or "part" for any of these.
        relative_to: the folder that paths start from (default: the current one).
        place: where the name stands, for the message.

    Raises SpecError with the nearest names of the library.
    """
    if not _can_name(name):
        raise SpecError.of(place, f"a {kind} is called by name, not '{name[:40]}'")
    if kind == "workload" and name.endswith(_GRAPHS):
        raise SpecError.of(
            place, f"'{name}' is an op graph: it has its numbers put in, and nothing of it can be varied",
            "hwsim simulate, explain, compare and export take it",
        )  # fmt: skip
    path = located(kind, name, relative_to)
    if path is not None:
        return path
    if _is_path(name):
        path = _beside(name, relative_to)
        refuse_outside(path, place)
        if (thing := _other_thing(path)) is not None:
            hint = "what another program writes is read from standard input, as -" if thing == "a pipe" else None
            raise SpecError.of(place, f"'{name}' is {thing}, not a file", hint)
        raise SpecError.of(place, f"there is no file '{name}'" + (f" next to {place.file}" if place and place.file else ""))
    folder_of_paths = relative_to or Path()
    candidates = names(kind)
    hint = next(
        (f"a file is named with its ending: '{name}{end}'" for end in _ENDINGS if _is_file(folder_of_paths / (name + end))), None
    )
    ends = [candidate for candidate in candidates if candidate.rpartition("/")[2] == name]
    near = did_you_mean(ends[0], ends) if ends else did_you_mean(name, candidates)
    elsewhere = None if ends else _elsewhere(kind, name)
    hint = hint or elsewhere or near
    called = "file of failures" if kind == "failures" else kind
    raise SpecError.of(place, f"there is no {called} '{name[:60]}' in the library", hint)


def located(kind: str, name: str, relative_to: Path | None = None) -> Path | None:
    """The file that `find` finds, None if there is none."""
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
    where = [folder(each) for each in _ANY.get(kind, (kind,))]
    if kind == "part":
        parts = library_root() / "machines/parts"
        where = [parts, *sorted(parts.glob("*/"))]
    paths = (each / (name + ".yaml") for each in where)
    return next((path for path in paths if ".." not in path.parts and _is_file(path)), None)


def _can_name(name: str) -> bool:
    return bool(name) and len(name) <= 1000 and name.isprintable()


def _is_path(name: str) -> bool:
    return name.endswith((*_ENDINGS, ".json")) or name.startswith((".", "/", "~"))


def _beside(name: str, relative_to: Path | None) -> Path:
    try:
        return Path(name).expanduser() if name.startswith("~") else (relative_to or Path()) / name
    except RuntimeError:  # a user that is not known
        return (relative_to or Path()) / name


def _is_file(path: Path) -> bool:
    """Whether there is such a file, and it may be read."""
    try:
        return may_read(path) and path.is_file()
    except (OSError, ValueError):  # a name no file can have
        return False


def _other_thing(path: Path) -> str | None:
    """The kind of thing that lies there, in words, if it is no regular file."""
    try:
        if not may_read(path) or not path.exists():
            return None
        return "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else None if path.is_file() else "a device or a socket"
    except (OSError, ValueError):
        return None


def _elsewhere(kind: str, name: str) -> str | None:
    """Hint that the library has the name under another kind."""
    for other_kind in (*_FOLDERS, "part"):
        for candidate in names(other_kind) if other_kind != kind else ():
            if candidate == name or candidate.rpartition("/")[2] == name:
                trained = (
                    f": a workload trains it, `train: {{model: {candidate}, ...}}`" if (kind, other_kind) == _TRAINED else ""
                )
                return f"'{name}' is a {other_kind if other_kind != 'part' else candidate.rpartition('/')[0]}{trained}"
    return None
