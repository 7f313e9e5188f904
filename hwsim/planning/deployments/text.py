"""The answer of a search for deployments as text and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwsim.families_interface import SummaryLine
from hwsim.formats import format_count, format_share, pluralized
from hwsim.planning.answer import values_text
from hwsim.planning.deployments.answer import PER_GPU, PER_USER, DeploymentAnswer, DeploymentRow, between, shown
from hwsim.planning.deployments.search import RULES, miss
from hwsim.planning.deployments.space import NOT_SEARCHED
from hwsim.planning.reasons import relative_miss
from hwsim.planning.requirements import MEASURES
from hwsim.results import invariants
from hwsim.views.kit.lines import LABEL, labelled_lines
from hwsim.views.kit.table import Column, align_columns
from hwsim.views.report.sections import Cell, FigureSection, Lines, Page, ReportColumn, TableSection


@invariants.check_report
def text(answer: DeploymentAnswer, *, verbose: bool = False) -> str:
    """Return the answer in a screenful; `verbose` adds all simulated options, and all deployments that do not fit."""
    out = [answer.heading, ""]
    for fact in facts(answer, verbose=verbose):
        out += labelled_lines(fact.label, fact.text, LABEL)
    if answer.best is not None and answer.question.requirements:
        out += ["", *_requirements(answer, answer.best)]
    out += ["", f"frontier: {PER_GPU} over {PER_USER} and over TTFT", *align_columns(_columns(answer, answer.frontier))]
    if verbose and len(answer.options) > len(answer.frontier):
        rest = [row for row in answer.options if row not in answer.frontier]
        out += ["", "beaten in both", *align_columns(_columns(answer, rest))]
    return "\n".join(out) + "\n"


def facts(answer: DeploymentAnswer, *, verbose: bool) -> Iterator[SummaryLine]:
    """Yield the labelled lines: the best deployment, its numbers, and the search."""
    best = answer.best
    if best is None:
        yield SummaryLine("best", "no deployment meets the requirements")
        if (nearest := answer.nearest) is not None:
            missed = max(miss(limit, nearest.numbers) for limit in answer.question.requirements)
            yield SummaryLine("closest", f"{_named(nearest)}, off by {relative_miss(missed)}")
    else:
        yield SummaryLine("best", f"{_named(best)}: {pluralized(best.option.gpus, 'GPU')}")
        yield SummaryLine("load", _load(best))
        yield SummaryLine("throughput", f"{best.numbers.per_gpu:,.0f} output tokens/s per GPU")
        low, high = between(best, "tpot", 1.0)
        speeds = best.numbers.per_user / high, best.numbers.per_user / low
        interval = f" (90 % interval {format_count(speeds[0])} to {format_count(speeds[1])})" if high > low else ""
        yield SummaryLine("user", f"{format_count(best.numbers.per_user)} output tokens/s{interval}, TTFT p95 {_delay(best)}")
        if best.numbers.kv is not None:
            yield SummaryLine("KV cache", f"at most {format_share(best.numbers.kv)} in use")
    yield SummaryLine("simulation", "one replica with its share of the load; replicas do not share requests")
    cut = ", ".join(f"{answer.counts[rule]:,} {rule}" for rule in RULES)
    yield SummaryLine("search", f"{answer.counts.total():,} combinations of {', '.join(answer.axes)}: {cut}")
    if answer.open_count:
        more = answer.simulations + answer.open_count
        fewer = "" if answer.is_settled else "; fewer GPUs may meet the requirements"
        found = f"{pluralized(answer.open_count, 'estimate')} that may extend the frontier{fewer} (--simulate {more})"
        yield SummaryLine("not simulated", found)
    for deployment, reason in answer.unfit[: None if verbose else 1]:
        yield SummaryLine("does not fit", f"{deployment}: {reason}")
    yield SummaryLine("not searched", NOT_SEARCHED)
    for label, note in answer.question.keys.compare.items():
        yield SummaryLine(label, note)


def page(answer: DeploymentAnswer) -> Page:
    """Return the answer as a page."""
    lines = [f"{fact.label}: {fact.text}" for fact in facts(answer, verbose=True)]
    columns = _columns(answer, answer.options)
    rows = [[Cell(cell, cell) for cell in cells] for cells in zip(*(column.cells for column in columns), strict=True)]
    heads = [ReportColumn(column.heading, column.right) for column in columns]
    marked = frozenset(place for place, row in enumerate(answer.options) if row in answer.frontier)
    return Page(answer.heading, lines[0], [], (), [
        FigureSection("Frontier", b"".join(answer.figure(".svg")), f"{PER_GPU} over {PER_USER}"),
        TableSection("Options", heads, rows, marked, "Marked: frontier."),
        Lines("Summary", lines[1:]),
    ])  # fmt: skip


def _named(row: DeploymentRow) -> str:
    place = values_text(row.option.site.point.shown)
    return f"{place + ' ' if place else ''}{pluralized(row.option.replicas, 'replica')} of {row.option.deployment}"


def _load(row: DeploymentRow) -> str:
    site, replicas = row.option.site, row.option.replicas
    if site.clients:
        return f"{site.clients:,} users, {site.users_of(replicas):,} per replica"
    return f"{format_count(site.per_s)} requests/s, {format_count(site.per_s / replicas)} per replica"


def _delay(row: DeploymentRow) -> str:
    value = row.numbers.values["ttft_p95"]
    return shown("ttft_p95", value) if row.how == "simulation" else "not simulated"


def _requirements(answer: DeploymentAnswer, best: DeploymentRow) -> list[str]:
    rows = []
    for limit in answer.question.requirements:
        measure, value = limit.quantity.measure, best.numbers.values[limit.quantity.measure.name]
        low, high = between(best, measure.name, value)
        status = "missed" if limit.excess(value) else "likely met" if limit.excess(high) else "met"
        interval = measure.between(low, high) if high > low else "-"
        rows.append((measure.title, measure.shown(value), interval, f"<= {measure.shown(limit.high)}", status))
    names = ("requirement", "value", "90 % interval", "limit", "status")
    cells = zip(names, zip(*rows, strict=True), strict=True)
    return align_columns([Column(name, column, right=name not in ("requirement", "status")) for name, column in cells])


def _columns(answer: DeploymentAnswer, rows: Sequence[DeploymentRow]) -> list[Column]:
    delay = answer.delay
    several = len({row.option.site.point for row in answer.options}) > 1
    columns = [
        Column("GPUs", [f"{row.option.gpus:,}" for row in rows]),
        Column("per GPU", [f"{row.numbers.per_gpu:,.0f}" for row in rows]),
        Column("per user", [format_count(row.numbers.per_user) for row in rows]),
        Column("90 % interval", [_speeds(row) for row in rows]),
        Column(MEASURES[delay].title, [shown(delay, row.numbers.values[delay]) for row in rows]),
        Column("KV cache", ["-" if row.numbers.kv is None else format_share(row.numbers.kv) for row in rows]),
        Column("replicas", [f"{row.option.replicas:,}" for row in rows]),
        Column("deployment", [_row_text(row, several=several) for row in rows], right=False),
    ]
    return columns if any(row.numbers.ranges for row in rows) else [*columns[:3], *columns[4:]]


def _speeds(row: DeploymentRow) -> str:
    low, high = between(row, "tpot", 1.0)
    return f"{format_count(row.numbers.per_user / high)} to {format_count(row.numbers.per_user / low)}" if high > low else "-"


def _row_text(row: DeploymentRow, *, several: bool) -> str:
    place = f"{values_text(row.option.site.point.shown)} " if several else ""
    marks = [
        *(["estimate"] if row.how == "estimate" else []),
        *(["TTFT only"] if not row.is_front and row.is_delay_front else []),
    ]
    return f"{place}{row.option.deployment}{'; ' if marks else ''}{', '.join(marks)}"
