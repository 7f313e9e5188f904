"""The scores as text: one line each, and the page of docs/validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.formats import percent
from published import TOPICS
from published.score import Miss, Score

TITLES: Final[Mapping[str, str]] = {
    "components": """# Components beside measurements

What the models of single parts come to beside reference simulators and published measurements.""",
    "collectives": """# Collectives beside the text, measurements and other simulators

What all-reduces and their kin take: the text's own numbers, NCCL and MPI as others measured them, a recorded training step, the
small cases of other simulators, and hwsim's own two levels beside each other.""",
    "models": """# Models beside measurements

What the closed forms of whole networks come to beside published runs: steps of training transformers, passes of inference,
encoders, and networks of convolutions.""",
}
HEAD: Final = """Written by
`python -m published --data DIR --write`; the rows behind it are other people's and not shipped with hwsim.

- **held out**: parameters were fitted on other rows of the same devices (alternate sizes), these were never seen.
- **not fitted**: nothing was fitted to these devices; datasheet numbers and constants from elsewhere.
- **all**: every row there is; the parameters are the reference's own settings, or were fitted on some of the rows.
- "group median" is the mean over source x device of the median of |ln(predicted / measured)|.
- A figure in **bold** misses its bound; the notes say why.

| topic | what | rows | half | metric | figure | bound |
|---|---|---|---|---|---|---|
"""


def line(score: Score) -> str:
    """One score in a line of text."""
    mark = "ok  " if score.value <= score.bound else "MISS"
    figure = f"{mark} {_percent(score.value):>7} (bound {_percent(score.bound)})"
    return f"{figure}  {score.name}, {score.metric}, {score.rows} rows {score.half}"


def page(name: str, found: Mapping[str, Sequence[Score]]) -> str:
    """The whole page in Markdown."""
    out = [f"{TITLES[name]} {HEAD}".rstrip("\n")]
    out += [_row(topic, score) for topic, scores in found.items() for score in scores]
    for topic, scores in found.items():
        out += ["", f"## {TOPICS[topic]}"]
        for score in scores:
            out += _details(score)
    return "\n".join(out) + "\n"


def _row(topic: str, score: Score) -> str:
    figure = _percent(score.value)
    shown = figure if score.value <= score.bound else f"**{figure}**"
    metric = score.metric.replace("|", "\\|")  # or it would end the cell
    return f"| {topic} | {score.name} | {score.rows} | {score.half} | {metric} | {shown} | {_percent(score.bound)} |"


def _details(score: Score) -> list[str]:
    out = [
        "",
        f"### {score.name}",
        "",
        f"{_percent(score.value)} {score.metric}, bound {_percent(score.bound)}, {score.rows} rows, {score.half}.",
    ]
    if score.notes:
        out += ["", score.notes]
    if score.worst:
        out += ["", "| furthest off | of | predicted | measured | ratio | why |", "|---|---|---|---|---|---|"]
        out += [_miss(each) for each in score.worst]
    return out


def _miss(row: Miss) -> str:
    ratio = f"{row.predicted / row.measured:.2f}"
    return f"| {row.row} | {row.group} | {row.predicted:.4g} | {row.measured:.4g} | {ratio} | {row.reason} |"


def _percent(value: float) -> str:
    if 1e-12 < value < 1e-6:
        return "below 0.0001 %"
    return percent(value, ".3g" if value < 10 else ".0f") if value > 1e-12 else "0 %"
