"""The `collectives:` of a machine file: with which libraries its devices exchange data.

collectives: {use: h200}                              what was measured of NCCL on such a machine
collectives: {nccl: {use: p4de}, mpi: {use: openmpi-ucx-edr}}
collectives: {start: 10 us, step: 2 us, efficiency: 80 %}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from hwsim.machine.placed import within
from hwsim.machine.schema import PART_KEYS
from hwsim.spec import Mistakes, Tree, decode, did_you_mean

if TYPE_CHECKING:
    from hwsim.machine.libraries.kinds import Library

Libraries = Mapping[str, "Library"]  # by kind
_BESIDE: Final = ("source", "ref")


def read_libraries(tree: Tree, mistakes: Mistakes) -> Libraries:
    """By kind; those that can be read, once what is wrong is noted."""
    from hwsim.machine.libraries.kinds import KINDS  # few machines say it, and many are read

    keys = [key for key, _ in tree.items() if key not in _BESIDE]
    if not tree.is_mapping:
        mistakes.add(tree.place, f"'collectives' is a mapping, not {tree.what()}", "such as collectives: {use: h200}")
        return {}
    if keys and all(key in KINDS for key in keys):
        entries = {
            key: entry.put("kind", entry.get("kind") or Tree(key, entry.place)) for key, entry in tree.items() if key in KINDS
        }
    else:
        entries = {tree.text("kind") or "overheads": tree}
    libraries: dict[str, Library] = {}
    for key, entry in entries.items():
        kind = entry.text("kind") or key
        if kind not in KINDS or kind != key:
            at = entry.get("kind") or entry
            mistakes.add(at.place, f"'{kind}' is not a kind of library" if kind not in KINDS else f"this is {kind}, not {key}",
                         did_you_mean(kind, KINDS))  # fmt: skip
            continue
        library = decode(entry, KINDS[kind], mistakes, ignore=PART_KEYS, sourced=True)
        if library is not None:
            libraries[kind] = library
    return libraries


def library_of(libraries: Mapping[str, Libraries], nodes: Sequence[str], kinds: Sequence[str]) -> Library | None:
    """The first of the kinds that the innermost machine around all these nodes has; else what all the nodes have alike.

    Args:
        libraries: by full name of a machine inside the machine, "" for the whole.
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
        if inside and inside[0] is not None and all(each is inside[0] or each == inside[0] for each in inside):
            return inside[0]
    return None


def _common(nodes: Sequence[str]) -> str:
    """The machine around them all.

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
