"""The page of scores: files of scores made from one half of a public source, applied to its other half.

A source is a group of rows (source, device, software) of one regime, with six works or more. The works are split into halves at
random, and in the order of the source, which separates sizes or models. Each half predicts the other half, with the interval of
`errors.yaml` and with the interval that `hwsim.results.errors.updated` makes of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import fmean, median
from typing import Final, NamedTuple

from hwsim.formats import percent
from hwsim.results.errors import FEWEST, Errors, table
from published.parts import declared
from published.residual import Residual
from published.summary import TOPICS_SHOWN

SPLITS: Final = 20  # random halves of each source
LEVEL: Final = 90
BOUNDS: Final = (3, 6, 12, 25, 50, 1000)  # numbers of runs
NAMED: Final = 3  # sources of a topic that are listed
HEAD: Final[str] = declared("scored")["head"]
RUNS: Final[str] = declared("scored")["runs"]
NAMED_TEXT: Final[str] = declared("scored")["named"]
Works = Mapping[str, Sequence[float]]  # ln(measured / predicted) by work


class Trial(NamedTuple):
    """One half, predicted from the other: shares inside without and with the scores, and the ratio of the half widths."""

    before: float
    after: float
    width: float


class ScoredSource(NamedTuple):
    """A source with its trials in random halves and in order."""

    topic: str
    case: str
    group: str
    rows: int
    runs: int
    drawn: Sequence[Trial]
    ordered: Sequence[Trial]


def scored_sources(found: Iterable[Residual]) -> Iterator[ScoredSource]:
    """Yield each source with enough works, by case of the prediction."""
    groups: dict[Residual, dict[str, list[float]]] = {}
    keys: dict[tuple[str, str, str, str], Residual] = {}
    for row in found:
        key = keys.setdefault((row.topic, row.regime, row.case, row.group), row)
        groups.setdefault(key, {}).setdefault(row.work or row.row, []).append(-row.log)
    for first, works in groups.items():
        errors = table().errors(f"{first.topic}/{first.regime}", first.case)
        if errors is None or len(works) < 2 * FEWEST:
            continue
        names, draw = list(works), random.Random(0)
        drawn = [trial for _ in range(SPLITS) for trial in trials(draw.sample(names, len(names)), works, errors)]
        ordered = list(trials(names, works, errors))
        rows = sum(map(len, works.values()))  # integers
        yield ScoredSource(first.topic, first.case, first.group, rows, len(names) // 2, drawn, ordered)


def trials(order: Sequence[str], works: Works, errors: Errors) -> Iterator[Trial]:
    """Yield the trials of both halves of the works in an order."""
    middle, half = len(order) // 2, errors.half[LEVEL]
    for known, held in ((order[:middle], order[middle:]), (order[middle:], order[:middle])):
        scores = {"": [fmean(works[name]) for name in known]}
        found = replace(table(), scores=scores).update("", errors, half, LEVEL)
        rows = [log for name in held for log in works[name]]
        after = fmean(abs(log - found.correction) <= found.half[LEVEL] for log in rows)
        yield Trial(fmean(abs(log) <= half for log in rows), after, found.half[LEVEL] / half)


def page(found: Iterable[Residual]) -> str:
    """Return the page in Markdown."""
    sources = sorted(scored_sources(found), key=lambda source: (source.case, source.topic, -source.rows))
    new = [source for source in sources if source.case != "known"]
    drawn = [trial for source in new for trial in source.drawn]
    after, before = (
        percent(fmean(inside), ".0f") for inside in ([part.after for part in drawn], [part.before for part in drawn])
    )
    width = median(trial.width for trial in drawn)
    lead = (
        f"**Sources that hwsim was not fitted to: {after} of the held-out rows are inside the 90 % interval with scores, "
        f"{before} without. The median width is {width:.2f} times that without scores.**"
    )
    by_runs = [
        _row(f"{least} to {above - 1}", "all but known", several)
        for least, above in pairwise(BOUNDS)
        if (several := [source for source in new if least <= source.runs < above])
    ]
    return HEAD.format(lead=lead) + "".join([*_by_topic(sources), RUNS, *by_runs, NAMED_TEXT, *_named(new)])


def _by_topic(sources: Sequence[ScoredSource]) -> Iterator[str]:
    for case, several in groupby(sources, key=lambda source: source.case):
        of_case = list(several)
        for topic, mine in groupby(of_case, key=lambda source: source.topic):
            yield _row(TOPICS_SHOWN.get(topic, topic), case, list(mine))
        yield _row("**all**", case, of_case)


def _named(sources: Sequence[ScoredSource]) -> Iterator[str]:
    """Yield the sources with the most rows of each topic and case, with all of their regimes."""
    for (case, topic), several in groupby(sources, key=lambda source: (source.case, source.topic)):
        groups: dict[str, list[ScoredSource]] = {}
        for source in several:
            groups.setdefault(source.group, []).append(source)
        largest = sorted(groups.items(), key=lambda pair: -sum(source.rows for source in pair[1]))  # integers
        for group, mine in largest[:NAMED]:
            yield _row(f"{TOPICS_SHOWN.get(topic, topic)}: {group}", case, mine)


def _row(name: str, case: str, sources: Sequence[ScoredSource]) -> str:
    drawn = [trial for source in sources for trial in source.drawn]
    ordered = [trial for source in sources for trial in source.ordered]
    rows = sum(source.rows for source in sources)  # integers
    cells = [name, case, f"{len(sources)}", f"{rows:,}", f"{median(source.runs for source in sources):g}"]
    cells.append(percent(fmean(trial.before for trial in drawn), ".0f"))
    for tried in (drawn, ordered):
        cells += [percent(fmean(trial.after for trial in tried), ".0f"), f"{median(trial.width for trial in tried):.2f}"]
    return f"| {' | '.join(cells)} |\n"
