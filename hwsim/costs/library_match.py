"""Compare a machine with the library machine of the same name, whose price and measured power apply only to equal machines."""

from __future__ import annotations

from functools import cache

from hwsim.machine.layout import Layout
from hwsim.spec import Tree, find, merge, names, read

_DEEPEST = 20  # maximum depth of `use`


def is_as_listed(layout: Layout) -> bool:
    """Whether a machine has the same parts and counts as the library machine of its name; True for other machines.

    Parameters, values inside parts, and volumes (which have their own rent) are ignored.
    """
    return swapped_parts(layout) == {}


def swapped_parts(layout: Layout) -> dict[str, str] | None:
    """Return the library parts that the machine replaces by other parts, by family.

    None if the families of parts or their counts differ from the library machine.
    """
    parts = _listed(layout.file) if layout.file else None
    if parts is None:
        return {}
    mine = {part.family: part for part in layout.parts if not part.made and part.kind != "volume"}
    if parts.keys() != mine.keys() or any(count not in (None, len(mine[name].names)) for name, (_, count) in parts.items()):
        return None
    return {name: use for name, (use, _) in parts.items() if use != mine[name].use}


@cache
def _listed(name: str) -> dict[str, tuple[str, int | None]] | None:
    """Return `use` and `count` of each part of a library machine, by name; None if there is no such machine.

    A count that depends on parameters is None.
    """
    if name not in names("machine"):
        return None
    tree = read(find("machine", name))
    for _ in range(_DEEPEST):
        base = tree.text("use")
        if base is None or base not in names("machine"):
            break
        tree = merge(read(find("machine", base)), tree.without("use"))
    parts = tree.get("parts")
    entries = parts.items() if parts is not None else ()
    return {
        family: (part.text("use") or "", _count(part))
        for family, part in entries
        if part.is_mapping and part.text("kind") != "volume"
    }


def _count(part: Tree) -> int | None:
    count = part.get("count")
    if count is None:
        return 1
    return count.value if isinstance(count.value, int) else None
