"""A sweep as a table of text."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from string import ascii_letters
from typing import TYPE_CHECKING, Final

from hwsim.study.grid import written
from hwsim.study.measures import TIME, measure
from hwsim.units import format_quantity, format_share

if TYPE_CHECKING:
    from hwsim.study.measures import Measure
    from hwsim.study.table import Row, Sweep

WIDTH: Final = 100
CAUSE: Final = 24  # what the last column keeps, whatever the others need
ERRORS: Final = 8  # reasons told
MOST: Final = 600  # letters of a reason to fail; JSON and CSV have all of it
LEAST: Final = 6  # of a column of values


def text(sweep: Sweep) -> str:
    """The table, 100 columns wide, ending with a newline."""
    return "\n".join(_lines(sweep)) + "\n"


def _lines(sweep: Sweep) -> Iterator[str]:
    yield f"{sweep.workload}  on  {sweep.machine}"
    if sweep.settings:
        said = ", ".join(f"{path}={value}" for path, value in sweep.settings)
        yield from textwrap.wrap(
            said, WIDTH, initial_indent="  set          ", subsequent_indent=" " * 15, break_long_words=False
        )
    yield ""
    yield from _table(sweep)
    if ended := [*_end(sweep), *_warnings(sweep)]:
        yield ""
        for line in ended:
            yield from textwrap.wrap(
                line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
            )


def _table(sweep: Sweep) -> Iterator[str]:
    ranked = sweep.ranking
    times = ["-" if row.makespan_s is None else format_quantity(row.makespan_s, "s") for row in sweep.rows]
    speed_ups = ["-" if each is None else factor(each) for each in sweep.speed_ups]
    causes = [f"{row.limited_by} {format_share(row.share)}" if row.share is not None else row.limited_by for row in sweep.rows]
    causes = [f"failed: {row.error}" if row.error else cause for row, cause in zip(sweep.rows, causes, strict=True)]
    right = [_column("time", times, WIDTH, numbers=True)]
    if ranked.measure is not None and ranked.measure.is_pace:
        right.append(_column("speed-up", speed_ups, WIDTH, numbers=True))
    if ranked.unit and ranked.measure is not None and ranked.measure.column not in sweep.measured:
        cells = [ranked.measure.shown(value) for value in ranked.values]
        right.append(_column(ranked.measure.title, cells, WIDTH, numbers=True))
    for name in sweep.measured:
        cells = [measure(name).shown(dict(row.outcome.measures).get(name)) for row in sweep.rows]
        right.append(_column(_title(name), cells, WIDTH, numbers=True))
    marks = _marks(sweep)
    if marks:
        cells = ["".join(marks[code] for code in dict.fromkeys(each.code for each in row.warnings)) for row in sweep.rows]
        right.append(_column("warned", cells, WIDTH))
    room = WIDTH - CAUSE - sum(len(column[0]) + 2 for column in right) - 2
    widest = max(room // max(len(sweep.vary), 1) - 2, LEAST)
    columns = [
        _column(name, [written(row.values[place]) for row in sweep.rows], widest, numbers=_numbers(values))
        for place, (name, (_, values)) in enumerate(zip(_names(sweep.paths, widest), sweep.vary, strict=True))
    ]
    for *cells, cause in zip(*columns, *right, ["limited by", *causes], strict=True):
        line = "  " + "  ".join([*cells, cause])
        yield (line if len(line) <= WIDTH else line[: WIDTH - 3] + "...").rstrip()


def _column(title: str, cells: Sequence[str], widest: int, *, numbers: bool = False) -> list[str]:
    """Cells of one width under their title, numbers to the right."""
    shown = [title, *(_short(cell, widest) for cell in cells)]
    width = max(map(len, shown))
    return [cell.rjust(width) if numbers else cell.ljust(width) for cell in shown]


def _numbers(values: Sequence[object]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _short(cell: str, widest: int) -> str:
    cell = " ".join(cell.split())
    return cell if len(cell) <= widest else cell[: widest - 3] + "..."


def _names(paths: Sequence[str], widest: int) -> list[str]:
    """Paths, or where they are too long the ends that tell them apart.

    >>> _names(["machine.node.gpu.count", "machine.node.cpu.count", "workload.runtime.queue_depth"], 20)
    ['gpu.count', 'cpu.count', 'runtime.queue_depth']
    """
    if all(len(path) <= widest for path in paths):
        return list(paths)
    for steps in range(1, max(path.count(".") for path in paths) + 2):
        names = [".".join(path.split(".")[-steps:]) for path in paths]
        if len({*names}) == len(paths):
            return [name if len(name) <= widest else "..." + name[len(name) - widest + 3 :] for name in names]
    return list(paths)


def _title(column: str) -> str:
    """The heading of a measure; the end of a long path."""
    title = measure(column).title
    return title if len(title) <= CAUSE else "..." + title[3 - CAUSE :]


def _marks(sweep: Sweep) -> dict[str, str]:
    """A letter for each code of a warning, in the order of the rows."""
    codes = dict.fromkeys(warning.code for row in sweep.rows for warning in row.warnings)
    return dict(zip(codes, ascii_letters, strict=False))


def _warnings(sweep: Sweep) -> Iterator[str]:
    """Each code that a row was marked with, on how many rows, and what it says of the first of them."""
    for code, mark in _marks(sweep).items():
        said = [warning.message for row in sweep.rows for warning in row.warnings if warning.code == code]
        rows = sum(any(warning.code == code for warning in row.warnings) for row in sweep.rows)
        where = "every row" if rows == len(sweep.rows) else f"{rows} of {len(sweep.rows)} rows"
        more = ", and the like" if len(set(said)) > 1 else ""
        yield f"{mark}: warning {code}, {where}: {said[0]}{more}"


def factor(value: float) -> str:
    """How many times as fast.

    >>> factor(1), factor(0.0523), factor(16.26), factor(12345.6)
    ('1.00', '0.0523', '16.3', '12346')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3g}"


def _best(title: str, sweep: Sweep, measure: Measure, ran: Sequence[tuple[float, Row]]) -> str:
    """The best of some rows, and its warnings; of equal ones the first without any."""
    most = _ahead(measure, ran)
    equal = [each for each in ran if math.isclose(each[0], most, rel_tol=1e-9)]  # work a second is a quotient
    best_value, best = min(equal, key=lambda each: len(each[1].warnings))
    alike = len(equal) - 1
    values = ", ".join(f"{path}={written(value)}" for path, value in zip(sweep.paths, best.values, strict=True))
    codes = ", ".join(dict.fromkeys(each.code for each in best.warnings))
    said = f" (warning {codes})" if codes else ""
    return f"{title}: {values} with {_with(measure, best_value)}" + (f", and {alike} alike" if alike else "") + said


def _with(measure: Measure, value: float) -> str:
    """A value with its unit, or with the name of what is counted."""
    shown = measure.shown(value)
    return f"{shown} {measure.title}" if measure.unit == "1" and measure.title.endswith("/s") else shown


def _ahead(measure: Measure, ran: Sequence[tuple[float, Row]]) -> float:
    values = [value for value, _ in ran]
    return max(values) if measure.most else min(values)


def _end(sweep: Sweep) -> Iterator[str]:
    """The best point by what rows are compared by, and what is missing."""
    asked, why = sweep.ranking.measure, sweep.ranking.why
    ran = [(value, row) for value, row in zip(sweep.ranking.values, sweep.rows, strict=True) if value is not None]
    if len(ran) > 1 and asked is not None:
        word = "fastest" if asked.column == TIME else f"{'highest' if asked.most else 'lowest'} {asked.title}"
        yield _best(word, sweep, asked, ran)
        sound = [each for each in ran if not any(warning.exceeds for warning in each[1].warnings)]
        if sound and len(sound) < len(ran) and not math.isclose(_ahead(asked, ran), _ahead(asked, sound), rel_tol=1e-9):
            yield _best(f"{word} that the machine can do", sweep, asked, sound)
    if len(sweep.rows) > 1 and why and not sweep.by:
        by = (
            "" if asked is None else "compared by time: " if asked.column == TIME else f"compared by {asked.title}, not by time: "
        )
        yield f"{by}{why}"
    if sweep.failed:
        yield f"{len(sweep.failed)} of {len(sweep.rows)} points failed"
        times = Counter(row.error for row in sweep.failed)
        for error, many in list(times.items())[:ERRORS]:
            said = f"{many} x {error}" if len(times) > 1 else error
            yield said if len(said) <= MOST else said[: MOST - 3] + "..."
        if len(times) > ERRORS:
            yield f"and {len(times) - ERRORS} other reasons"
        if sweep.rows[0].makespan_s is None and ran and asked is not None and asked.is_pace:
            yield "speed-ups are relative to the first point that did not fail"
    if len(sweep.rows) < sweep.points:
        yield f"{sweep.points - len(sweep.rows)} of {sweep.points} points were not run"
