"""Sources of a machine or workload (library name, path, text or dict), and the tree of its file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hwsim.machine import Machine
from hwsim.spec import Mistakes, SpecError, Tree, Warning, find, read, tree_of

Source = str | Path | Tree | Mapping[str, Any]  # library name, path, text of a file, "-" (stdin), tree, or content as a dict


def tree_from(kind: str, source: Source, mistakes: Mistakes) -> Tree | None:
    """Return the tree of a machine or workload; None if a mistake was added."""
    name = data_or_name(source)
    if isinstance(name, Tree):
        return name
    try:
        return read(name if isinstance(name, Path) or name == "-" or "\n" in name else find(kind, name))
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def data_or_name(source: Source) -> Tree | str | Path:
    """Return the tree of a dict, or the name, path or text of a file unchanged.

    Raises:
        TypeError: the source has another type.
    """
    if isinstance(source, Mapping):
        return tree_of(source)
    if not isinstance(source, Tree | str | Path):
        raise TypeError(f"expected a library name, a path, the text of a file or a dict, got {type(source).__name__}")
    return source


def changed(
    machine: Tree, workload: Tree, settings: Mapping[str, object], mistakes: Mistakes, warnings: list[Warning]
) -> tuple[Tree, Tree]:
    """Return both trees with every setting applied; raise SpecError with all mistakes."""
    value: object = settings
    if not (isinstance(value, Mapping) and all(isinstance(path, str) for path in value)):
        raise TypeError(f"`set`: expected a dict from paths (str) to values, got {settings!r:.80}")
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
    """Return the trees of the machine and the workload with the settings applied.

    Raises:
        SpecError: all mistakes of both files, or of the settings.
    """
    mistakes = Mistakes()
    trees = [tree_from(kind, source, mistakes) for kind, source in (("machine", machine), ("workload", workload))]
    mistakes.raise_if_any()
    first, second = (tree for tree in trees if tree is not None)
    return changed(first, second, settings, Mistakes(), [])


def title(named: str, tree: Tree | None, otherwise: str) -> str:
    """Return the name in the file, else the stem of the file's path, else `otherwise`."""
    file = tree.place.file if tree else ""
    return named or ("" if file.startswith("<") else Path(file).stem) or otherwise


def names_of_machine(built: Machine, source: object, tree: Tree | None) -> frozenset[str]:
    """Return the names under which `expect: {machine: ...}` accepts a machine."""
    names = {built.name, str(source) if isinstance(source, str) else "", Path(tree.place.file).stem if tree else ""}
    return frozenset(names - {""})
