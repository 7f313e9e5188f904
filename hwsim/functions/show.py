"""Print a file with everything that it uses, and the source of each number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hwsim.formats import precise
from hwsim.functions.files import any_tree, resolved
from hwsim.spec import Tree, names
from hwsim.spec.yaml_writer import flow, scalar
from hwsim.units import Quantity, UnitError, parse
from hwsim.workload.sources import Source

WIDTH: Final = 110  # maximum characters of a list element on one line


def show(name: Source = "", *, expect: bool = True) -> str:
    """Return a machine, part, workload or model as YAML, with used files filled in and the source of each number.

    Args:
        name: library name, path, text or data; "": return the contents of the library.
        expect: whether to include the expected results of a workload.

    Raises:
        SpecError: the file does not exist, or has mistakes.

    >>> print(show("d2l-gpu").splitlines()[0])
    hwsim: part/1
    """
    if isinstance(name, str) and not name:
        return "\n".join(library()) + "\n"
    return "\n".join(show_lines(any_tree(name), expect=expect)) + "\n"


def library() -> Iterator[str]:
    """Yield the names in the library, by kind."""
    for kind in ("machine", "workload", "model", "part", "runtime", "framework", "failures"):
        yield f"{kind.removesuffix('s')}s:"
        yield from (f"  {name}" for name in names(kind))


def show_lines(tree: Tree, *, expect: bool = True) -> Iterator[str]:
    """Yield the lines of a parsed file with everything filled in, with or without the expected results."""
    section = f"  # {tree.text('source')}" if tree.text("hwsim") == "workload/1" else ""  # not the source of each number
    shown = resolved(_with_parameters(tree) if section else tree)
    yield from (line.removesuffix(section) for line in _lines(shown, "", leaving_out="" if expect else "expect"))
    if tree.text("hwsim") == "model/1":
        from hwsim.models.library import describe_model, read_model

        yield from (f"# {line}" for line in describe_model(read_model(tree)))


def _with_parameters(tree: Tree) -> Tree:
    """Return a workload in which parameters such as `$batch` are not replaced by their values."""
    if isinstance(tree.value, dict):
        return tree.having({
            key: child if key in ("let", "use") else _with_parameters(child) for key, child in tree.value.items()
        })  # fmt: skip
    if isinstance(tree.value, list):
        return tree.having([_with_parameters(child) for child in tree.value])
    return tree.having(tree.value.replace("$", "$$")) if isinstance(tree.value, str) else tree


def _lines(tree: Tree, indent: str, leaving_out: str = "") -> Iterator[str]:
    """Yield YAML lines, with the source of each number as a comment; the key `leaving_out` is omitted."""
    for key, value in sorted(tree.items(), key=lambda item: item[0] != "hwsim"):  # the first line of a file comes first
        if key in {"source", "ref"} and indent:
            continue  # in the comments
        if key == leaving_out:
            continue
        if value.is_mapping:
            value = value.get("value") or value
        if _is_default(value):  # as a comment: read again, the printed file has it from its class again
            yield from (f"{indent}# {line}" for line in _with_source(key, value, ""))
        elif value.is_mapping and value.items():
            yield f"{indent}{scalar(key)}:"
            yield from _lines(value, indent + "  ")
        elif value.is_list and any(element.is_mapping for element in value.elements()):
            yield f"{indent}{scalar(key)}:"
            for element in value.elements():
                yield from _element(element, indent + "  ")
        else:
            yield from _with_source(key, value, indent)


def _with_source(key: str, value: Tree, indent: str) -> Iterator[str]:
    """Yield a key with its value; if the value is a mapping, with its content."""
    if value.is_mapping and value.items():
        yield f"{indent}{scalar(key)}:"
        for inner, place in value.items():
            yield from _with_source(inner, place, indent + "  ")
    else:
        origin = f"  # {value.origin!s}" if value.origin is not None and _is_number(value) else ""
        yield f"{indent}{scalar(key)}: {_rounded(value) if _is_default(value) else _flow(value)}{origin}"


def _rounded(tree: Tree) -> str:
    """Return a computed number, rounded for reading."""

    return precise(tree.value.value, tree.value.dimension.unit) if isinstance(tree.value, Quantity) else _flow(tree)


def _is_default(tree: Tree) -> bool:
    """Whether a value, or every value of a mapping, is a class default."""
    if tree.is_mapping:
        return bool(tree.items()) and all(_is_default(child) for _, child in tree.items())
    return tree.origin is not None and tree.origin.kind == "default"


def _element(tree: Tree, indent: str) -> Iterator[str]:
    """Yield a list element on one line, or on several lines if it is long or its numbers have sources."""
    inside = list(_lines(tree, indent + "  ")) if tree.is_mapping else []
    line = f"{indent}- {_flow(tree)}"
    if inside and (len(line) > WIDTH or any("  # " in line for line in inside)):
        yield f"{indent}- {inside[0].lstrip()}"
        yield from inside[1:]
    else:
        yield line


def _flow(tree: Tree) -> str:
    return flow(tree.plain())


def _is_number(tree: Tree) -> bool:
    if isinstance(tree.value, bool) or not str(tree.value)[:1].isdigit():
        return False
    try:
        parse(str(tree.value))
    except UnitError:
        return False
    return True
