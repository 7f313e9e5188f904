"""A sweep as a table of text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from string import ascii_letters
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity, format_share
from hwsim.studies.curves import called, numbers
from hwsim.studies.grid import value_text
from hwsim.studies.measures import TIME, measure
from hwsim.studies.ranking import AS_ASKED
from hwsim.views.interval.say import TITLE as INTERVAL
from hwsim.views.interval.say import relative_range, rough
from hwsim.views.kit.lines import LABEL, WIDTH, labelled_lines, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_end, cut_middle, free_width, wrap_column

if TYPE_CHECKING:
    from hwsim.results.ratio import Ratio
    from hwsim.studies.measures import StudyMeasure
    from hwsim.studies.point import StudyRow
    from hwsim.studies.table import Sweep

HEADING: Final = 24  # width of a measure's heading (characters)
BOTTLENECK: Final = 16  # minimum width of the last column, which wraps (characters)
ERRORS: Final = 8  # maximum number of distinct reasons printed
MAX_REASON_LETTERS: Final = 600  # maximum characters of a reason; JSON and CSV contain all of it
LEAST_HALF: Final = 5e-4  # half width below which an interval is not printed
LEAST: Final = 8  # minimum width of a column of values (characters)
FLAT: Final = 1.25  # largest remaining gain beyond a knee


def text(sweep: Sweep, most: int = 0, *, table: bool = True) -> str:
    """Return the answer, up to 100 columns wide.

    Args:
        sweep: sweep.
        most: maximum number of rows; 0 for all.
        table: whether to include the table.
    """
    return "\n".join(_lines(sweep, most, table)) + "\n"


def title(sweep: Sweep) -> str:
    """Return the title `WORKLOAD, on MACHINE: MEASURE by PARAMETER`."""
    measured = sweep.ranking.measure.title if sweep.ranking.measure is not None else "results"
    return f"{sweep.workload}, on {sweep.machine}: {measured} by {' and '.join(map(called, sweep.paths))}"


def _lines(sweep: Sweep, most: int, table: bool) -> Iterator[str]:
    yield from wrap_lines(title(sweep), 0)
    if sweep.settings:
        yield ""
        yield from labelled_lines("set", ", ".join(f"{path}={value}" for path, value in sweep.settings), LABEL)
    if table:
        shown = columns(sweep, most)
        last = len(shown) - 1
        yield ""
        yield from align_columns(wrap_column(shown, last, max(BOTTLENECK, free_width(shown, last))))
    if 0 < most < len(sweep.rows):
        yield f"  {len(sweep.rows) - most:,} more rows"
    if below := [line for label, line in end_text(sweep) for line in labelled_lines(label, line, LABEL)]:
        yield ""
        yield from below
    if warnings := [*warning_text(sweep)]:
        yield ""
        for warning in warnings:
            yield from wrap_lines(warning, 2)


def columns(sweep: Sweep, most: int = 0) -> list[Column]:
    """Return the columns of the table: varied quantities, time, measures and bottleneck; the speedup follows what it compares."""
    ranked = sweep.ranking
    rows = sweep.rows[: most or None]
    right = [Column("time", ["-" if row.makespan_s is None else format_quantity(row.makespan_s, "s") for row in rows])]
    if any(row.interval is not None and row.interval.half > LEAST_HALF for row in rows):
        right.append(Column(INTERVAL, ["-" if row.interval is None else relative_range(row.interval) for row in rows]))
    before = len(right)  # position of the speedup if it compares times
    if ranked.unit and ranked.measure is not None and ranked.measure.column not in sweep.measured:
        right.append(Column(ranked.measure.title, [ranked.measure.shown(value) for value in ranked.values[: len(rows)]]))
    right += [
        Column(_heading(name), [measure(name).shown(dict(row.measures).get(name)) for row in rows]) for name in sweep.measured
    ]
    if ranked.measure is not None and ranked.measure.is_pace:
        compared = (ranked.measure.title, _heading(ranked.measure.column))
        place = next((place for place, column in enumerate(right[before:], before + 1) if column.heading in compared), before)
        pairs = list(zip(sweep.speedups, sweep.over_first, strict=True))[: len(rows)]
        right.insert(place, Column(sweep.speedup_title, [_speed_up(*pair) for pair in pairs]))
    if marks := _marks(sweep):
        cells = ["".join(marks[code] for code in dict.fromkeys(warning.code for warning in row.warnings)) for row in rows]
        right.append(Column("warning", cells, right=False))
    left = WIDTH - BOTTLENECK - sum(max(map(len, column.texts)) + 2 for column in right) - 2  # integers
    widest = max(left // max(len(sweep.vary), 1) - 2, LEAST)
    names = _names(sweep.paths, widest, {column.heading for column in right})
    varied = [
        Column(name, [" ".join(value_text(row.values[place]).split()) for row in rows], numbers(values) != (), widest)
        for place, (name, (_, values)) in enumerate(zip(names, sweep.vary, strict=True))
    ]
    reasons = _reasons(sweep)
    return [*varied, *right, Column("bottleneck", [_cause(row, reasons) for row in rows], right=False)]


def _cause(row: StudyRow, reasons: Sequence[str]) -> str:
    """Return the bottleneck with its share; of a failed point, the number of its reason below the table."""
    if row.error:
        return f"failed ({reasons.index(row.error) + 1})"
    return f"{row.bottleneck} {format_share(row.share)}" if row.share is not None else row.bottleneck


def _reasons(sweep: Sweep) -> list[str]:
    """Return the distinct reasons of failures."""
    return list(dict.fromkeys(row.error for row in sweep.failed))


def _names(paths: Sequence[str], widest: int, others: Set[str] = frozenset()) -> list[str]:
    """Return the names of the varied quantities; if too long or ambiguous, the shortest distinct ends of the paths.

    >>> _names(["machine.node.gpu.count", "machine.node.cpu.count", "workload.runtime.queue_depth"], 20)
    ['node gpu count', 'node cpu count', 'runtime queue depth']
    >>> _names(["machine.links.slot.bandwidth", "machine.slot.bandwidth"], 20)
    ['links.slot.bandwidth', 'machine...bandwidth']
    """
    words = [called(path) for path in paths]
    if len({*words}) == len(paths) and not others & {*words} and all(len(name) <= widest for name in words):
        return words
    for steps in range(1, max(path.count(".") for path in paths) + 2):
        names = [".".join(path.split(".")[-steps:]) for path in paths]
        if len({*names}) == len(paths) and not others & {*names}:
            return [cut_middle(name, widest) for name in names]
    return list(paths)


def _heading(column: str) -> str:
    """Return the title of a measure, shortened in the middle if it is a long path."""
    return cut_middle(measure(column).title, HEADING)


def _marks(sweep: Sweep) -> dict[str, str]:
    """Return a letter for each warning code, in the order of the rows."""
    codes = dict.fromkeys(warning.code for row in sweep.rows for warning in row.warnings)
    return dict(zip(codes, ascii_letters, strict=False))


def warning_text(sweep: Sweep) -> Iterator[str]:
    """Yield a line for each warning code: its mark, the number of rows, and the first message."""
    for code, mark in _marks(sweep).items():
        messages = [warning.message for row in sweep.rows for warning in row.warnings if warning.code == code]
        rows = sum(any(warning.code == code for warning in row.warnings) for row in sweep.rows)
        where = "all rows" if rows == len(sweep.rows) else f"{rows} of {len(sweep.rows)} rows"
        more = " (first of several messages)" if len(set(messages)) > 1 else ""
        yield f"{mark}  warning[{code}], {where}: {messages[0]}{more}"


def factor(value: float) -> str:
    """Return a speedup with three digits.

    >>> factor(1), factor(0.0523), factor(16.26), factor(12345.6)
    ('1.00x', '0.0523x', '16.3x', '12,346x')
    """
    if value >= 100:
        return f"{value:,.0f}x"
    return f"{value:.1f}x" if value >= 9.995 else f"{value:.2f}x" if value >= 0.0995 else f"{value:.3g}x"


def _speed_up(value: float | None, over: Ratio | None) -> str:
    """Return a speedup, with a ~ if its interval includes 1."""
    may_be_none = over is not None and over.half > LEAST_HALF and not over.is_conclusive and value != 1
    return "-" if value is None else f"{'~' if may_be_none else ''}{factor(value)}"


def _best(sweep: Sweep, measure: StudyMeasure, ran: Sequence[tuple[float, StudyRow]]) -> str:
    """Return the best row and its warnings; of equal rows, the first with the fewest warnings."""
    most = _ahead(measure, ran)
    equal = [pair for pair in ran if math.isclose(pair[0], most, rel_tol=1e-9)]  # work a second is a quotient
    best_value, best = min(equal, key=lambda pair: len(pair[1].warnings))
    identical = f", identical in {len(equal)} rows" if len(equal) > 1 else ""
    values = ", ".join(f"{called(path)} {value_text(value)}" for path, value in zip(sweep.paths, best.values, strict=True))
    codes = ", ".join(dict.fromkeys(warning.code for warning in best.warnings))
    return f"{_with(measure, best_value)} at {values}{identical}" + (f" (warning {codes})" if codes else "")


def _told(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Whether the best row is ahead of all others beyond the uncertainty; shared errors of two rows cancel."""
    slower = [over for over in sweep.over_best if over is not None and over.value > 1.0 + 1e-9]
    unsure = [over for over in slower if not over.is_conclusive]
    if not any(over.half > LEAST_HALF for over in slower):
        return
    nearest = min(slower, key=lambda over: over.value)
    precise = f"{factor(nearest.value)} faster ({INTERVAL} {nearest.low:.3g}–{nearest.high:.3g}x)"
    apart = precise if nearest.high >= 1.005 else "less than 0.5 % faster"  # not 1.00x
    if not unsure:
        yield "vs runner-up", f"{apart}; fastest at 95 % confidence"
    elif any(over.outside for over in unsure):
        yield "vs runner-up", f"inconclusive: {_rows(len(unsure))} extrapolated beyond all measurements"
    else:
        yield "vs runner-up", f"{apart}; statistically tied with {_rows(len(unsure))}"


def _rows(count: int) -> str:
    return f"{count} other row{'s' if count > 1 else ''}"


def _with(measure: StudyMeasure, value: float) -> str:
    """Return a value with its unit, or with the name of the counted items."""
    shown = measure.shown(value)
    return f"{shown} {measure.title}" if measure.unit == "1" and measure.title.endswith("/s") else shown


def _ahead(measure: StudyMeasure, ran: Sequence[tuple[float, StudyRow]]) -> float:
    values = [value for value, _ in ran]
    return max(values) if measure.most else min(values)


def knee(sweep: Sweep) -> str:
    """Return the knee: the value of a single varied number at which the bottleneck changes, and the gain beyond it; or "".

    At a knee, the bottleneck changes once, and larger values gain little compared with smaller ones.
    """
    compared = sweep.ranking.measure
    if len(sweep.vary) != 1 or not numbers(sweep.vary[0][1]) or compared is None or not compared.is_pace or len(sweep.rows) < 3:
        return ""
    values = [value or 0.0 for value in sweep.ranking.values]
    changes = [index for index in range(1, len(values)) if sweep.rows[index].bottleneck != sweep.rows[index - 1].bottleneck]
    if len(changes) != 1 or min(values) <= 0:
        return ""
    at = changes[0]
    before, after = (
        pair[0] / pair[1] if compared.most else pair[1] / pair[0] for pair in ((values[at], values[0]), (values[-1], values[at]))
    )
    if not (1.0 <= after <= FLAT < before):
        return ""
    names = [row.bottleneck for row in sweep.rows[at - 1 : at + 1]]
    left = f"; {value_text(sweep.rows[-1].values[0])} gains {rough(after - 1)}" if at < len(values) - 1 else ""
    return f"{value_text(sweep.rows[at].values[0])}: bottleneck moves from {names[0]} to {names[1]}{left}"


def end_text(sweep: Sweep) -> Iterator[tuple[str, str]]:
    """Yield labelled lines below the table: the best point, the ranking measure, failures, points that did not run."""
    compared, why = sweep.ranking.measure, sweep.ranking.why
    ran = [(value, row) for value, row in zip(sweep.ranking.values, sweep.rows, strict=True) if value is not None]
    if len(ran) > 1 and compared is not None:
        word = "highest" if compared.most else "lowest"
        word = ("fastest" if sweep.is_conclusive else "lowest time") if compared.column == TIME else word
        named = "" if compared.column == TIME or compared.title in _with(compared, 1.0) else f"{compared.title} "
        yield word, f"{named}{_best(sweep, compared, ran)}"
        sound = [pair for pair in ran if not any(warning.exceeds for warning in pair[1].warnings)]
        if sound and len(sound) < len(ran) and not math.isclose(_ahead(compared, ran), _ahead(compared, sound), rel_tol=1e-9):
            yield "", f"within the limits of the machine: {_best(sweep, compared, sound)}"
        yield from _told(sweep)
        if found := knee(sweep):
            yield "knee", found
        if any(cell.startswith("~") for cell in map(_speed_up, sweep.speedups, sweep.over_first)):
            yield "~", f"the {INTERVAL} of this speedup includes 1"
    if len(sweep.rows) > 1 and why and why != AS_ASKED:
        yield ("not ranked", why) if compared is None else ("ranked by", f"{compared.title}, because {why}")
    if sweep.failed:
        yield "failed", f"{len(sweep.failed)} of {len(sweep.rows)} points"
        reasons = _reasons(sweep)
        for number, reason in enumerate(reasons[:ERRORS], 1):
            yield "", f"({number}) {cut_end(reason, MAX_REASON_LETTERS)}"
        if len(reasons) > ERRORS:
            yield "", f"{len(reasons) - ERRORS} other reasons (--json)"
        if sweep.rows[0].makespan_s is None and ran and compared is not None and compared.is_pace:
            yield "", "speedups are relative to the first point that did not fail"
    if len(sweep.rows) < sweep.points:
        yield "incomplete", f"{sweep.points - len(sweep.rows)} of {sweep.points} points were not run"
