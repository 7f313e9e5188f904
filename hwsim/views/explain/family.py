"""Names that differ only in the numbers of their devices."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hwsim.views.explain.critical import Share

_NUMBER: Final = re.compile(r"(?<=[A-Za-z_])\d+(?=$|[ .,:<>-])")  # gpu0.compute, slots:psw->gpu0


def family(name: str) -> str:
    """A name with the numbers of its devices left open.

    >>> family("slots:psw->gpu3"), family("node12.gpu0.compute"), family("pcie4.0")
    ('slots:psw->gpu*', 'node*.gpu*.compute', 'pcie*.0')
    """
    return _NUMBER.sub("*", name)


def families(shares: Iterable[Share]) -> list[tuple[str, int]]:
    """(cause, fs) with the members of a family as one, longest first; a family of one keeps its name."""
    found: dict[str, list[Share]] = {}
    for share in shares:
        found.setdefault(family(str(share.cause)), []).append(share)
    rows = [(str(each[0].cause) if len(each) == 1 else name, sum(one.time_fs for one in each)) for name, each in found.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))
