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
from published.report import KINDS
from published.residual import Residual
from published.score import Score, group_median

TOPICS_SHOWN: Final[Mapping[str, str]] = {
    "step": "training steps",
    "infer": "passes of inference",
    "product": "matrix products, 16 and 32 bit",
    "product8": "matrix products, 8 bit",
    "product4": "matrix products, 4 bit",
    "weightonly": "matrix products, weights alone in 4 or 8 bit",
    "cpuproduct": "matrix products of CPUs",
    "conv": "convolutions",
    "attention": "attention",
    "moe": "experts",
    "elementwise": "norms, activations and other kernels without products",
    "launch": "starts of kernels",
    "stream": "memory bandwidth",
    "cache": "bandwidth of caches",
    "latency": "latency",
    "copy": "copies between host and GPU",
    "nccl": "collectives of NCCL over NVLink and networks",
    "pcie": "collectives of NCCL over PCIe",
    "reduce": "all-reduces of frameworks",
    "send": "sends",
    "mpi": "MPI",
    "disk": "disks",
    "program": "recorded programs",
}
LINES: Final[tuple[tuple[str, tuple[tuple[Case, str], ...]], ...]] = (
    ("interpolated", (("known", "other sizes of the device"),)),
    ("left out", (("source", "source"), ("device", "device"), ("generation", "generation"))),
    ("never fitted", (("outside", "nothing alike"),)),
)
EARLIER: Final = Path(__file__).parent / "before.yaml"
HEAD: Final = """# How far predictions are from measurements

Written by `python -m published --data DIR --write`. Three lines a topic: rows at sizes between those that were fitted; rows of a
device, a generation or a source that the fit did not see; rows with nothing alike in any fit. Median and p90 of
|ln(predicted / measured)| in each group (source x device), then the mean over the groups. Six of the nine GPUs of serving tables
are twins of another one: with a *device* left out its twin may stay in the fit, with a *generation* left out it may not.

[Components](components.md), [models](models.md) and [collectives](collectives.md) have each topic's scores and the rows furthest
off; [intervals](intervals.md) judge what answers say of their own error; [sources](sources.md) name the source of every row, and
the rows that are in no score.

| topic | line | without | rows | groups | median | p90 |
|---|---|---|---|---|---|---|
"""
BOUNDS: Final = """
## Bounds

What a test holds each figure to. "Before" is the same figure when what a part left out was ideal, where there was one. Bounds are
stated before a figure is known and are not loosened. Where honest attempts did not reach one (**bold**), its page says why.

| topic | what | kind of row | rows | metric | before | now | bound |
|---|---|---|---|---|---|---|---|
"""


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
    misses = [each.miss for each in rows]
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
