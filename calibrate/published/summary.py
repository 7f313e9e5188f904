"""The first page of validation: three lines a topic, and every bound with what the figure was before.

The lines are of residuals (`published.residual`): what was predicted of rows between those fitted, of rows whose device or source
was left out of the fit, and of rows with nothing alike in any fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import yaml

from hwsim.formats import percent
from hwsim.origins import Case
from published.parts import declared
from published.report import KINDS
from published.residual import Residual
from published.score import Score, group_median

TOPICS_SHOWN: Final[Mapping[str, str]] = declared("summary")["topics_shown"]
LINES: Final[tuple[tuple[str, tuple[tuple[Case, str], ...]], ...]] = (
    ("interpolated", (("known", "other sizes of the device"),)),
    ("left out", (("source", "source"), ("device", "device"), ("generation", "generation"))),
    ("never fitted", (("outside", "nothing alike"),)),
)
EARLIER: Final = Path(__file__).parent / "before.yaml"
HEAD: Final = declared("summary")["head"]
BOUNDS: Final = declared("summary")["bounds"]


def page(found: Sequence[Residual], scores: Mapping[str, Sequence[Score]]) -> str:
    """The page in Markdown."""
    by: dict[tuple[str, str], list[Residual]] = {}
    for each in found:
        by.setdefault((each.topic, each.case), []).append(each)
    topics = sorted({each.topic for each in found}, key=lambda topic: (*_place(topic), topic))
    out = [HEAD.rstrip("\n")]
    for topic in topics:
        for line, cases in LINES:
            for case, without in cases:
                if rows := by.get((topic, case)):
                    out.append(_line(topic, line, without, rows))
    out.append(BOUNDS.rstrip("\n"))
    before = yaml.safe_load(EARLIER.read_text("utf-8"))
    out += [_bound(topic, score, before.get(topic, {}).get(score.name)) for topic, mine in scores.items() for score in mine]
    return "\n".join(out) + "\n"


def _place(topic: str) -> tuple[int]:
    shown = list(TOPICS_SHOWN)
    return (shown.index(topic) if topic in shown else len(shown),)


def _line(topic: str, line: str, without: str, rows: Sequence[Residual]) -> str:
    misses = [row.miss for row in rows]
    median, tail = group_median(misses)
    groups = len({each.group for each in rows})
    what = TOPICS_SHOWN.get(topic, topic)
    return f"| {what} | {line} | {without} | {len(rows):,} | {groups} | {shown(median)} | {shown(tail)} |"


def _bound(topic: str, score: Score, before: float | None) -> str:
    was = shown(before) if before is not None else ""
    now = shown(score.value) if score.value <= score.bound else f"**{shown(score.value)}**"
    metric = score.metric.replace("|", "\\|")
    return f"| {topic} | {score.name} | {KINDS[score.seen]} | {score.rows:,} | {metric} | {was} | {now} | {shown(score.bound)} |"


def shown(value: float) -> str:
    """An error in per cent, three digits below 10 %.

    >>> shown(0.05634), shown(0.2), shown(0.0)
    ('5.6 %', '20 %', '0 %')
    """
    return percent(value, ".2g" if value < 0.1 else ".0f") if value > 1e-6 else "0 %"
