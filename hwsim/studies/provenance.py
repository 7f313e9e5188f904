"""Warn about rows of a study whose machines have data of different quality: measurements, or class defaults.

The interval of each row rests on such data. If parts are compared, rows with worse data get a warning that names the row with the
best data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hwsim.origins import Case
from hwsim.results.interval import Interval
from hwsim.spec import Warning, distinct_warnings
from hwsim.studies.grid import value_text
from hwsim.studies.point import StudyRow

_RANKS: Final[dict[Case, int]] = {"stated": 0, "known": 0, "source": 0, "device": 1, "generation": 1, "outside": 2}
_WORDS: Final[dict[Case, str]] = {
    "stated": "inputs",
    "known": "measurements",
    "source": "measurements",
    "device": "class defaults",
    "generation": "defaults of other GPU generations",
    "outside": "extrapolation beyond all measurements",
}


def rank_of(case: Case) -> int:
    """Return 0 for measured or stated values, 1 for class defaults, 2 for extrapolation."""
    return _RANKS[case]


def known_alike(paths: Sequence[str], rows: Sequence[StudyRow]) -> list[StudyRow]:
    """Return the rows, with a warning on rows with worse data than the best; unchanged if no part or machine is varied."""
    at = [
        place for place, path in enumerate(paths) if path.split(".")[0] == "machine" and path.split(".")[-1] in ("use", "class")
    ]
    ranks = [None if row.interval is None else _RANKS[row.interval.case] for row in rows]
    intervals = [rank for rank in ranks if rank is not None]
    if not at or not intervals or min(intervals) == max(intervals):
        return list(rows)
    warned = provenance_warnings([(", ".join(value_text(row.values[place]) for place in at), row.interval) for row in rows])
    return [row if warning is None else replace(row, warnings=distinct_warnings(row.warnings, [warning]))
            for row, warning in zip(rows, warned, strict=True)]  # fmt: skip


def provenance_warnings(answers: Sequence[tuple[str, Interval | None]]) -> list[Warning | None]:
    """Return a warning for each answer (name, interval) with worse data than the best; None for other answers."""
    ranks = [None if sure is None else _RANKS[sure.case] for _, sure in answers]
    least = min((rank for rank in ranks if rank is not None), default=0)
    best = next((_said(*answer) for answer, rank in zip(answers, ranks, strict=True) if rank == least), "")
    return [
        Warning("mixed-provenance", f"{_said(*answer)}, {best}: part of the difference may come from the data")
        if rank is not None and rank > least
        else None
        for answer, rank in zip(answers, ranks, strict=True)
    ]


def _said(name: str, sure: Interval | None) -> str:
    """ "a100 rests on measurements (±7 %)"."""
    if sure is None:
        return f"{name} has no interval"
    return f"{name} rests on {_WORDS[sure.case]} (±{math.expm1(sure.half):.0%})".replace("%", " %")


__all__ = ["known_alike", "provenance_warnings", "rank_of"]
