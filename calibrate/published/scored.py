"""The page of scores: files of scores made from one half of a public source, applied to its other half.

A source is a group of rows (source, device, software) of one regime, with six works or more. The works are split into halves at
random, and in the order of the source, which separates sizes or models. Each half predicts the other half, with the interval of
`errors.yaml` and with the interval that `hwsim.results.errors.updated` makes of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Final, NamedTuple

from hwsim.formats import percent
from hwsim.results.errors import FEWEST, Errors, table
from published.parts import declared
from published.residual import Residual
from published.summary import TOPICS_SHOWN

SPLITS: Final = 20  # random halves of each source
LEVEL: Final = 90
HEAD: Final[str] = declared("scored")["head"]
Works = Mapping[str, Sequence[float]]  # ln(measured / predicted) by work


class Tried(NamedTuple):
    """One half, predicted from the other.

    Args:
        before, after: share of its rows inside the interval without and with the scores.
        half: half width without the scores.
        narrowed: half width with the scores.
        corrected: whether the median is corrected.
    """

    before: float
    after: float
    half: float
    narrowed: float
    corrected: bool


class ScoredSource(NamedTuple):
    """A source with its trials in random halves and in order."""

    topic: str
    case: str
    group: str
    rows: int
    drawn: Sequence[Tried]
    ordered: Sequence[Tried]


def scored_sources(found: Iterable[Residual]) -> Iterator[ScoredSource]:
    """Yield each source with enough works, by case of the prediction."""
    groups: dict[tuple[str, str, str, str], dict[str, list[float]]] = {}
    for row in found:
        key = (row.topic, row.regime, row.case, row.group)
        groups.setdefault(key, {}).setdefault(row.work or row.row, []).append(-row.log)
    for (topic, regime, case, group), works in sorted(groups.items()):
        errors = table().errors(f"{topic}/{regime}", case)  # type: ignore[arg-type]
        if errors is None or len(works) < 2 * FEWEST:
            continue
        names, draw = list(works), random.Random(0)
        orders = [draw.sample(names, len(names)) for _ in range(SPLITS)]
        drawn = [tried for order in orders for tried in halves(order, works, errors)]
        count = sum(map(len, works.values()))
        yield ScoredSource(f"{topic}/{regime}", case, group, count, drawn, list(halves(names, works, errors)))


def halves(order: Sequence[str], works: Works, errors: Errors) -> Iterator[Tried]:
    """Yield the trials of both halves of the works in an order."""
    middle, half = len(order) // 2, errors.half[LEVEL]
    for known, held in ((order[:middle], order[middle:]), (order[middle:], order[:middle])):
        scores = {"": [fmean(works[name]) for name in known]}
        found = replace(table(), scores=scores).update("", errors, half, LEVEL)
        rows = [log for name in held for log in works[name]]
        before = fmean(abs(log) <= half for log in rows)
        after = fmean(abs(log - found.correction) <= found.half[LEVEL] for log in rows)
        yield Tried(before, after, half, found.half[LEVEL], found.correction != 0)


def page(found: Iterable[Residual]) -> str:
    """Return the page in Markdown."""
    sources = list(scored_sources(found))
    out = [HEAD]
    for case in dict.fromkeys(source.case for source in sources):
        of_case = [source for source in sources if source.case == case]
        topics = dict.fromkeys(source.topic.partition("/")[0] for source in of_case)
        out += [_row(topic, case, [source for source in of_case if source.topic.startswith(f"{topic}/")]) for topic in topics]
        out.append(_row("all", case, of_case))
    return "".join(out)


def _row(topic: str, case: str, sources: Sequence[ScoredSource]) -> str:
    bold = "**" if topic == "all" else ""
    cells = [
        f"{bold}{TOPICS_SHOWN.get(topic, topic)}{bold}",
        case,
        str(len(sources)),
        f"{sum(source.rows for source in sources):,}",
    ]
    for trials in (
        [tried for source in sources for tried in source.drawn],
        [tried for source in sources for tried in source.ordered],
    ):
        cells += [percent(fmean(tried.before for tried in trials), ".0f"), percent(fmean(tried.after for tried in trials), ".0f")]
        cells.append(f"{median(tried.narrowed / tried.half for tried in trials):.2f}")
    return f"| {' | '.join(cells)} |\n"
