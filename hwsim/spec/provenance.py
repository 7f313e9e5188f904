"""Sources of the numbers of a file: `{value: 900 GB/s, source: datasheet, ref: "..."}`.

A `source:`/`ref:` of a mapping holds for every number in it that has none of its own, as far as the same file goes:
what a file takes from the library keeps the sources of the library.

The kinds, the surest first: `datasheet` and `standard` are read off the document named, `recalled` is what the document
named is remembered to say (without the document in hand), `measured` and `fitted` come from measurements, `guess` from neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hwsim.spec.shapes import NUMBER_KEYS, SOURCE_KEYS
from hwsim.spec.tree import Origin, Tree
from hwsim.units import Quantity, UnitError, parse

KINDS: Final = ("datasheet", "standard", "recalled", "measured", "fitted", "guess")


def origin_of(tree: Tree) -> Origin | None:
    """Origin stated by a mapping's own `source:` and `ref:`."""
    source, ref = (tree.text(key) for key in SOURCE_KEYS)
    if source is None:
        return Origin("stated", ref) if ref else None
    if source in KINDS:
        return Origin(source, ref or "")
    return Origin("stated", f"{source}, {ref}" if ref else source)


def with_origins(tree: Tree) -> Tree:
    """The tree with every value knowing its source; one that already knows keeps it."""
    return _stamp(tree, None, "")


def _stamp(tree: Tree, default: Origin | None, file: str) -> Tree:
    """`default` is what `file` says about the values in it."""
    if isinstance(tree.value, dict):
        default, file = _inside(tree, default, file)
        return replace(tree, value={key: _stamp(each, default, file) for key, each in tree.value.items()})
    if isinstance(tree.value, list):
        return replace(tree, value=[_stamp(each, default, file) for each in tree.value])
    return replace(tree, origin=default) if tree.origin is None and default is not None and tree.place.file == file else tree


def _inside(tree: Tree, default: Origin | None, file: str) -> tuple[Origin | None, str]:
    """The source that holds inside a mapping, and the file that says so."""
    stated = tree.get("source") or tree.get("ref")
    origin = origin_of(tree)
    if (
        origin is not None
        and tree.get("source") is None
        and default is not None
        and stated is not None
        and stated.place.file == file
    ):
        origin = Origin(default.kind, origin.ref)  # another reference of the same kind
    return (origin, stated.place.file) if origin is not None and stated is not None else (default, file)


def sources(tree: Tree) -> dict[str, Origin]:
    """Source of each number that has one, by path: `parts.gpu.memory.bandwidth`.

    The path of an element of a list ends in its `name:` where it has one, else in its index.
    """
    return {path: node.origin for path, node in _values(with_origins(tree)) if node.origin is not None and _is_number(node)}


def origins(tree: Tree) -> dict[str, str]:
    """Source of each value of a resolved mapping in words, by path; "as given" for a list, and for values without a source."""
    return {
        path: str(node.origin) if node.origin is not None and _is_number(node) else "as given"
        for path, node in _values(tree, into_lists=False)
    }


def _values(node: Tree, path: str = "", *, into_lists: bool = True) -> Iterator[tuple[str, Tree]]:
    """Path and node of each scalar (and list); a number with its source counts as one scalar."""
    if isinstance(node.value, dict):
        if "value" in node.value and set(node.value) <= set(NUMBER_KEYS):
            yield from _values(node.value["value"], path)
            return
        for key, child in node.value.items():
            if key not in SOURCE_KEYS and key != "hwsim":
                yield from _values(child, f"{path}.{key}" if path else key, into_lists=into_lists)
    elif isinstance(node.value, list) and into_lists:
        for index, child in enumerate(node.value):
            yield from _values(child, f"{path}.{child.text('name') or index}")
    else:
        yield path, node


def _is_number(tree: Tree) -> bool:
    if isinstance(tree.value, bool):
        return False
    if isinstance(tree.value, str) and tree.value[:1].isdigit():
        try:
            parse(tree.value)
        except UnitError:
            return False
        return True
    return isinstance(tree.value, int | float | Quantity)
