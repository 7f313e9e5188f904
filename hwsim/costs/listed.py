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
    parts = _listed(layout.file) if layout.file else None
    if parts is None:
        return True
    mine = {part.family: (part.use, len(part.names)) for part in layout.parts if not part.made and part.kind != "volume"}
    return parts.keys() == mine.keys() and all(
        use == mine[name][0] and count in (None, mine[name][1]) for name, (use, count) in parts.items()
    )


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
