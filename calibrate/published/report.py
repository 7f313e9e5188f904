"""Scores as text: one line per score on the terminal, and the pages of docs/validation."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Final, get_args

from hwsim.formats import percent
from published import TOPICS
from published.parts import declared
from published.score import Half, Miss, Score

TITLES: Final[Mapping[str, str]] = declared("report")["titles"]
HEAD: Final = declared("report")["head"]
REFERENCES: Final = frozenset(declared("report")["references"])
ABOUT: Final[Mapping[str, str]] = declared("report")["about"]
UNITS: Final[Mapping[str, Mapping[str, str]]] = declared("report")["units"]
EVALUATIONS: Final[tuple[Half, ...]] = get_args(Half)
UNSEEN: Final[Mapping[Half, str]] = {
    "cross-validated": "devices, GPU generations, machines or sources held out of the fit",
    "interpolated": "held-out sizes of devices used for fitting",
    "not fitted": "kinds of measurements never used for fitting",
}


def line(score: Score) -> str:
    """Return one line of text with a score, its bound and its metric."""
    mark = "ok  " if score.value <= score.bound else "MISS"
    figure = f"{mark} {_percent(score.value):>7} (bound {_percent(score.bound)})"
    return f"{figure}  {score.name}, {score.metric}, {score.rows} rows, {score.half}"


def page(name: str, found: Mapping[str, Sequence[Score]]) -> str:
    """Return a page in Markdown."""
    title, _, intro = TITLES[name].partition("\n\n")
    out = [title, "", _lead([score for topic, scores in found.items() if topic not in REFERENCES for score in scores])]
    out += ["", f"{intro}\n{HEAD}".rstrip("\n")]
    for topic, scores in found.items():
        out += [_row(topic, score) for score in sorted(scores, key=lambda score: EVALUATIONS.index(score.half))]
    for topic, scores in found.items():
        out += ["", f"## {TOPICS[topic][0].upper()}{TOPICS[topic][1:]}", "", ABOUT[topic]]
        for score in scores:
            out += _details(topic, score)
    return "\n".join(out) + "\n"


def _lead(scores: Sequence[Score]) -> str:
    """Return a list of the typical errors on rows not used for fitting: medians over the comparisons with real machines."""
    parts = ["**Errors on rows not used for fitting** (medians over the comparisons with real machines):", ""]
    for half, where in UNSEEN.items():
        ranked = [score.worst for score in scores if score.half == half and score.worst.groups]
        if ranked:
            median, tail = (
                statistics.median(values) for values in zip(*((rank.median, rank.tail) for rank in ranked), strict=True)
            )
            errors = f"median {_percent(median, '.2g')}, 90th percentile {_percent(tail, '.2g')}"
            parts.append(f"- {where} ({half}): {errors} ({len(ranked)} comparison{'s' * (len(ranked) > 1)})")
    return "\n".join(parts)


def _row(topic: str, score: Score) -> str:
    ranked = score.worst
    median, tail = (_percent(ranked.median), _percent(ranked.tail)) if ranked.groups else ("", "")
    return f"| {topic} | {score.name} | {score.half} | {score.rows} | {ranked.groups} | {median} | {tail} | {_held(score)} |"


def _held(score: Score) -> str:
    """Return the bound, with metric and value if the metric is not the group median or misses the bound."""
    bound, figure = _percent(score.bound), _percent(score.value)
    if score.value <= score.bound:
        return bound if score.metric == "group median" else f"{bound} ({score.metric}: {figure})"
    return f"{bound} ({score.metric}: **{figure}**)"


def _details(topic: str, score: Score) -> list[str]:
    figures = f"{score.rows:,} row{'s' * (score.rows != 1)}, {score.half}: {score.metric} {_percent(score.value)}"
    out = ["", f"### {score.name}", "", f"{figures} (bound {_percent(score.bound)}). {score.notes}".strip()]
    if shown := score.worst.furthest:
        unit = next(unit for begin, unit in UNITS[topic].items() if score.name.startswith(begin))
        unit = f" ({unit})" if unit else ""
        why = any(miss.reason for miss in shown)
        out += ["", f"| largest errors | group | predicted{unit} | measured{unit} | ratio |" + (" cause |" if why else "")]
        out += ["|---|---|---|---|---|" + ("---|" if why else "")]
        out += [_miss(miss, why=why) for miss in shown]
    return out


def _miss(row: Miss, *, why: bool) -> str:
    ratio = f"{row.predicted / row.measured:.2f}"
    reason = f" {row.reason} |" if why else ""
    return (
        f"| {_named(row.row)} | {row.group.replace(' | ', ', ')} | {row.predicted:.4g} | {row.measured:.4g} | {ratio} |{reason}"
    )


def _named(row: str) -> str:
    """Return the name of a row, with commas between columns and without the block counts `of N` of MoE kernels.

    >>> _named("aic_moe vllm l40s tokens 2048 pairs 16384 of 8 2112 of 16 1096")
    'aic_moe vllm l40s: tokens 2048, pairs 16384'
    """
    table = re.fullmatch(r"(aic_\w+ \w+ \w+)((?: \w+ [\d.e+]+)+)", re.sub(r" of \d+ \S+", "", row))
    if table is None:
        return row
    columns = re.findall(r"\w+ \S+", table[2])
    return f"{table[1]}: {', '.join(columns)}"


def _percent(value: float, digits: str = ".3g") -> str:
    if 1e-12 < value < 1e-6:
        return "below 0.0001 %"
    return percent(value, digits if value < 10 else ".0f") if value > 1e-12 else "0 %"
