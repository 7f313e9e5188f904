"""Whether a machine is the one of the library by its name: what is known of that as a whole holds for no other."""

from __future__ import annotations

from functools import cache

from hwsim.machine.layout import Layout
from hwsim.spec import Tree, find, merge, names, read

_DEEPEST = 20  # files that use one another


def is_as_listed(layout: Layout) -> bool:
    """Whether a machine has the parts, and as many, as the one of the library by its name; True of the user's own.

    Parameters of the machine and values inside its parts are not looked at, nor are volumes, which have a rent of their own.
    """
    return swapped(layout) == {}


def swapped(layout: Layout) -> dict[str, str] | None:
    """Parts that stand in place of others of the machine of the library by its name: the library's part by family.

    None if it has other families of parts than that one, or another number of some.
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
    """Use and count of each part of a machine of the library, by its name there; None if there is no such machine.

    A count that parameters set is None.
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
