"""Warnings and amounts of work in a cell of CSV, and back: `--resume` must not lose them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from hwsim.spec import CODES, Place, Warning
from hwsim.study.work import Work

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


def written_work(work: Sequence[Work]) -> str:
    """Amounts, each with its pace, in one line.

    >>> written_work([Work("samples", 64.0, 12.5)]), read_work("64.0 samples at 12.5/s")
    ('64.0 samples at 12.5/s', (Work(unit='samples', amount=64.0, per_s=12.5),))
    """
    return " | ".join(f"{each.amount!r} {each.unit} at {each.per_s!r}/s" for each in work)


def read_work(cell: str) -> tuple[Work, ...]:
    """The amounts of a cell that `written_work` wrote.

    Raises:
        ValueError: it wrote no such cell.
    """
    found = []
    for text in cell.split(" | ") if cell else ():
        amount, unit, at, pace = text.split(" ")
        if at != "at" or not pace.endswith("/s"):
            raise ValueError(f"'{text:.60}' is no amount of work")
        found.append(Work(unit, float(amount), float(pace.removesuffix("/s"))))
    return tuple(found)
