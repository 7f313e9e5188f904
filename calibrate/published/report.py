"""The scores as text: one line each, and the page of docs/validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.formats import percent
from published import TOPICS
from published.parts import declared
from published.score import Miss, Score

TITLES: Final[Mapping[str, str]] = declared("report")["titles"]
HEAD: Final = declared("report")["head"]
KINDS: Final[Mapping[str, str]] = {
    "held out": "interpolated",
    "left out": "left out",
    "not fitted": "never fitted",
    "all": "all",
}
ORDER: Final = tuple(KINDS)


def line(score: Score) -> str:
    """One score in a line of text."""
    mark = "ok  " if score.value <= score.bound else "MISS"
    figure = f"{mark} {_percent(score.value):>7} (bound {_percent(score.bound)})"
    return f"{figure}  {score.name}, {score.metric}, {score.rows} rows {score.half}"


def page(name: str, found: Mapping[str, Sequence[Score]]) -> str:
    """The whole page in Markdown."""
    out = [f"{TITLES[name]} {HEAD}".rstrip("\n")]
    for topic, scores in found.items():
        out += [_row(topic, score) for score in sorted(scores, key=lambda score: ORDER.index(score.seen))]
    for topic, scores in found.items():
        out += ["", f"## {TOPICS[topic]}"]
        for score in scores:
            out += _details(score)
    return "\n".join(out) + "\n"


def _row(topic: str, score: Score) -> str:
    ranked = score.worst
    median, tail = (_percent(ranked.median), _percent(ranked.tail)) if ranked.groups else ("", "")
    return (
        f"| {topic} | {score.name} | {KINDS[score.seen]} | {score.rows} | {ranked.groups} | {median} | {tail} | {_held(score)} |"
    )


def _held(score: Score) -> str:
    """The figure that a test holds, and its bound: the bound alone where the figure is the group median."""
    bound = _percent(score.bound)
    figure = _percent(score.value) if score.value <= score.bound else f"**{_percent(score.value)}**"
    if score.metric == "group median":
        return bound if score.value <= score.bound else f"{figure} of {bound}"
    return f"{figure} of {bound} ({score.metric})".replace("|", "\\|")  # or it would end the cell


def _details(score: Score) -> list[str]:
    out = [
        "",
        f"### {score.name}",
        "",
        f"{_percent(score.value)} {score.metric}, bound {_percent(score.bound)}, {score.rows} rows, {KINDS[score.seen]}.",
    ]
    if score.notes:
        out += ["", score.notes]
    if shown := score.worst.furthest:
        why = any(each.reason for each in shown)
        out += ["", "| furthest off | group | predicted | measured | ratio |" + (" why |" if why else "")]
        out += ["|---|---|---|---|---|" + ("---|" if why else "")]
        out += [_miss(each, why=why) for each in shown]
    return out


def _miss(row: Miss, *, why: bool) -> str:
    ratio = f"{row.predicted / row.measured:.2f}"
    reason = f" {row.reason} |" if why else ""
    return f"| {row.row} | {row.group} | {row.predicted:.4g} | {row.measured:.4g} | {ratio} |{reason}"


def _percent(value: float) -> str:
    if 1e-12 < value < 1e-6:
        return "below 0.0001 %"
    return percent(value, ".3g" if value < 10 else ".0f") if value > 1e-12 else "0 %"
