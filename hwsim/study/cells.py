"""Warnings in a cell of CSV, and back: `--resume` must not lose them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim.spec import CODES, Place, Warning

_NEXT: Final = re.compile(r" \| (?=(?:" + "|".join(CODES) + "): )")
_ONE: Final = re.compile(r"(?P<code>[a-z-]+): (?:(?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): )?(?P<text>.*)")


def written_warnings(warnings: Sequence[Warning]) -> str:
    """All warnings in one line.

    >>> written_warnings([Warning("lone-barrier", "x"), Warning("idle-workers", "y", Place("a.yaml", 3, 5))])
    'lone-barrier: x | idle-workers: a.yaml:3:5: y'
    """
    return " | ".join(map(str, warnings))


def read_warnings(cell: str) -> tuple[Warning, ...]:
    """The warnings of a cell that `written_warnings` wrote.

    Raises:
        ValueError: it wrote no such cell.

    >>> [(each.code, str(each.place)) for each in read_warnings("lone-barrier: x | idle-workers: a.yaml:3:5: y")]
    [('lone-barrier', 'None'), ('idle-workers', 'a.yaml:3:5')]
    """
    found = []
    for text in _NEXT.split(cell) if cell else ():
        one = _ONE.fullmatch(text)
        if one is None:
            raise ValueError(f"'{text:.60}' is no warning")
        place = Place(one["file"], int(one["line"]), int(one["column"])) if one["file"] else None
        found.append(Warning(one["code"], one["text"], place))
    return tuple(found)
