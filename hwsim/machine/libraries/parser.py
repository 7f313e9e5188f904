"""Parser of `collectives:` in a machine file: the communication libraries of its devices.

collectives: {use: h200}                              constants of NCCL measured on such a machine
collectives: {nccl: {use: p4de}, mpi: {use: openmpi-ucx-edr}}
collectives: {start: 10 us, step: 2 us, efficiency: 80 %}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.machine.contents import within
from hwsim.machine.schema import PART_KEYS
from hwsim.spec import Mistakes, Tree, decode, did_you_mean

if TYPE_CHECKING:
    from hwsim.machine.libraries.kinds import Library

Libraries = Mapping[str, "Library"]  # by kind
_BESIDE: Final = ("source", "ref")


def read_libraries(tree: Tree, mistakes: Mistakes) -> Libraries:
    """Return the libraries by kind; add mistakes for those that cannot be read, and omit them."""
    from hwsim.machine.libraries.kinds import KINDS  # imported late: few machines state a library

    keys = [key for key, _ in tree.items() if key not in _BESIDE]
    if not tree.is_mapping:
        mistakes.add(tree.place, f"`collectives` is {tree.what()}: expected a mapping", "collectives: {use: h200}")
        return {}
    if keys and all(key in KINDS for key in keys):
        kinds = [(key, entry) for key, entry in tree.items() if key in KINDS]
        entries = {key: entry.put("kind", entry.get("kind") or Tree(key, entry.place)) for key, entry in kinds}
    else:
        entries = {tree.text("kind") or "overheads": tree}
    libraries: dict[str, Library] = {}
    for key, entry in entries.items():
        kind = entry.text("kind") or key
        if kind not in KINDS or kind != key:
            message = f"expected kind {key}, got {kind}" if kind in KINDS else f"unknown kind of library '{kind}'"
            hint = f"write it under `{kind}:`" if kind in KINDS else did_you_mean(kind, KINDS)
            mistakes.add((entry.get("kind") or entry).place, message, hint)
            continue
        library = decode(entry, KINDS[kind], mistakes, ignore=PART_KEYS, sourced=True)
        if library is not None:
            libraries[kind] = library
    return libraries


def library_of(libraries: Mapping[str, Libraries], nodes: Sequence[str], kinds: Sequence[str]) -> Library | None:
    """Return the library of the innermost machine around all nodes, by the first kind found; else one that all nodes share.

    Args:
        libraries: libraries by full name of a machine inside the machine; "": the whole machine.
        nodes: full names of the nodes.
        kinds: kinds of libraries, most wanted first.
    """
    if not libraries:
        return None
    distinct = tuple(dict.fromkeys(nodes))
    around = _common(distinct)
    for kind in kinds:
        scope = around
        while True:
            if (library := libraries.get(scope, {}).get(kind)) is not None:
                return library
            if not scope:
                break
            scope, _ = within(scope)
    for kind in kinds:
        inside = [libraries.get(node, {}).get(kind) for node in distinct]
        if inside and inside[0] is not None and all(library is inside[0] or library == inside[0] for library in inside):
            return inside[0]
    return None


def _common(nodes: Sequence[str]) -> str:
    """Return the innermost machine around all nodes.

    >>> _common(("pod0.node1", "pod0.node2")), _common(("node0",)), _common(("node0", "node1"))
    ('pod0', 'node0', '')
    """
    parts = [node.split(".") for node in nodes if node] if all(nodes) else []
    shared: list[str] = []
    for step in zip(*parts, strict=False):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    return ".".join(shared)
