"""Forms in which a machine or a workload may be given, and the file behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hwsim.machine import Machine
from hwsim.spec import Mistakes, SpecError, Tree, Warning, find, read, tree_of

Source = str | Path | Tree | Mapping[str, Any]  # a library name or path, the text of a file, "-", or what a file would say


def tree_from(kind: str, source: Source, mistakes: Mistakes) -> Tree | None:
    """The file behind a machine or a workload as given; None once its mistakes are noted."""
    named = data_or_name(source)
    if isinstance(named, Tree):
        return named
    try:
        return read(named if isinstance(named, Path) or named == "-" or "\n" in named else find(kind, named))
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def data_or_name(source: Source) -> Tree | str | Path:
    """The content of a file that is given as data; else its name, path or text.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(source, Mapping):
        return tree_of(source)
    if not isinstance(source, Tree | str | Path):
        raise TypeError(f"a file is given by its path, a name of the library, its text or a dict, not by {type(source).__name__}")
    return source


def changed(
    machine: Tree, workload: Tree, settings: Mapping[str, object], mistakes: Mistakes, warnings: list[Warning]
) -> tuple[Tree, Tree]:
    """Both files with every setting applied; raises SpecError with all mistakes."""
    given: object = settings
    if not (isinstance(given, Mapping) and all(isinstance(path, str) for path in given)):
        raise TypeError(f"`set` is a dict of paths, which are texts, and values: not {settings!r:.80}")
    from hwsim.spec.paths import apply_set

    for path, value in settings.items():
        try:
            machine, workload, warning = apply_set(machine, workload, path, value)
        except SpecError as error:
            mistakes.extend(error.mistakes)
        else:
            warnings += [warning] if warning else []
    mistakes.raise_if_any()
    return machine, workload


def with_settings(machine: Source, workload: Source, settings: Mapping[str, object]) -> tuple[Tree, Tree]:
    """The files behind a run, settings put in.

    Raises:
        SpecError: all mistakes of both files, or of the settings.
    """
    mistakes = Mistakes()
    trees = [tree_from(kind, source, mistakes) for kind, source in (("machine", machine), ("workload", workload))]
    mistakes.raise_if_any()
    first, second = (tree for tree in trees if tree is not None)
    return changed(first, second, settings, Mistakes(), [])


def title(named: str, tree: Tree | None, otherwise: str) -> str:
    """The name in the file, else the file's."""
    file = tree.place.file if tree else ""
    return named or ("" if file.startswith("<") else Path(file).stem) or otherwise


def names_of_machine(built: Machine, source: object, tree: Tree | None) -> frozenset[str]:
    """Names that a machine may have in `expect: {machine: ...}`."""
    names = {built.name, str(source) if isinstance(source, str) else "", Path(tree.place.file).stem if tree else ""}
    return frozenset(names - {""})
