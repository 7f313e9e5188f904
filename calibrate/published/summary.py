"""The summary page of the validation: the errors of each quantity by evaluation, and the scores that miss their bound.

The errors come from residuals (`published.residual`) of interpolated, cross-validated and not fitted rows.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.formats import percent
from hwsim.origins import Case
from published.parts import declared
from published.residual import Residual
from published.score import Score, group_median

TOPICS_SHOWN: Final[Mapping[str, str]] = declared("summary")["topics_shown"]
LINES: Final[tuple[tuple[str, tuple[tuple[Case, str], ...]], ...]] = (
    ("interpolated", (("known", "sizes"),)),
    ("cross-validated", (("source", "source"), ("device", "device"), ("generation", "generation"))),
    ("not fitted", (("outside", ""),)),
)
HEAD: Final = declared("summary")["head"]
BOUNDS: Final = declared("summary")["bounds"]


def page(found: Sequence[Residual], scores: Mapping[str, Sequence[Score]]) -> str:
    """Return the page in Markdown."""
    by: dict[tuple[str, str], list[Residual]] = {}
    for residual in found:
        by.setdefault((residual.topic, residual.case), []).append(residual)
    topics = sorted({residual.topic for residual in found}, key=lambda topic: (*_place(topic), topic))
    out = [HEAD.format(lead=_lead(by)).rstrip("\n")]
    for topic in topics:
        for line, cases in LINES:
            for case, without in cases:
                if rows := by.get((topic, case)):
                    out.append(_line(topic, line, without, rows))
    missed = [_bound(topic, score) for topic, mine in scores.items() for score in mine if score.value > score.bound]
    out += [BOUNDS.format(missed=len(missed), count=sum(map(len, scores.values()))).rstrip("\n"), *missed]
    return "\n".join(out) + "\n"


def _place(topic: str) -> tuple[int]:
    shown = list(TOPICS_SHOWN)
    return (shown.index(topic) if topic in shown else len(shown),)


def _line(topic: str, line: str, without: str, rows: Sequence[Residual]) -> str:
    misses = [row.miss for row in rows]
    median, tail = group_median(misses)
    groups = len({residual.group for residual in rows})
    what = TOPICS_SHOWN.get(topic, topic)
    return f"| {what} | {line} | {without} | {len(rows):,} | {groups} | {shown(median)} | {shown(tail)} |"


def _lead(found: Mapping[tuple[str, str], Sequence[Residual]]) -> str:
    """Return a list of the typical errors of each evaluation: medians over the quantities."""
    words: dict[Case, str] = {
        "known": "held-out sizes of devices used for fitting",
        "source": "held-out sources",
        "device": "held-out devices",
        "generation": "held-out GPU generations",
    }
    parts = ["**Errors on rows not used for fitting** (medians over the quantities in the table):", ""]
    for case, where in words.items():
        if errors := [group_median([row.miss for row in rows]) for (_, other), rows in found.items() if other == case]:
            median, tail = map(statistics.median, zip(*errors, strict=True))
            parts.append(f"- {where}: median {shown(median)}, 90th percentile {shown(tail)} ({len(errors)} quantities)")
    return "\n".join(parts)


def _bound(topic: str, score: Score) -> str:
    values = f"**{shown(score.value)}** | {shown(score.bound)}"
    return f"| {topic} | {score.name} | {score.half} | {score.rows:,} | {score.metric} | {values} |"


def shown(value: float) -> str:
    """Return an error in per cent, with two digits.

    >>> shown(0.05634), shown(0.2), shown(0.0)
    ('5.6 %', '20 %', '0 %')
    """
    return percent(value, ".2g" if value < 0.1 else ".0f") if value > 1e-6 else "0 %"
