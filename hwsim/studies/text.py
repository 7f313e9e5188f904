"""A sweep as a table of text."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from string import ascii_letters
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity, format_share, percent
from hwsim.studies.grid import written
from hwsim.studies.measures import TIME, measure
from hwsim.studies.ranking import AS_ASKED
from hwsim.views.interval.say import rough, within
from hwsim.views.kit.lines import WIDTH, titled
from hwsim.views.kit.table import Column, aligned, shortened

if TYPE_CHECKING:
    from hwsim.results.ratio import Ratio
    from hwsim.studies.measures import Measure
    from hwsim.studies.point import Row
    from hwsim.studies.table import Sweep

CAUSE: Final = 24  # letters that the last column keeps, however wide the others are
ERRORS: Final = 8  # different reasons of failures that are shown
MOST: Final = 600  # letters of such a reason; JSON and CSV have all of it
FAR: Final = 4.0  # ratio from which on it is not said in per cent
LEAST_HALF: Final = 5e-4  # half widths below are none
LEAST: Final = 8  # letters of a column of values


def text(sweep: Sweep, most: int = 0) -> str:
    """The table, 100 columns wide, ending with a newline.  most: rows that are shown; 0: all."""
    return "\n".join(_lines(sweep, most)) + "\n"


def _lines(sweep: Sweep, most: int) -> Iterator[str]:
    yield f"{sweep.workload}  on  {sweep.machine}"
    if sweep.settings:
        yield from titled("set", ", ".join(f"{path}={value}" for path, value in sweep.settings))
    yield ""
    lines = list(_table(sweep))
    few = 0 < most < len(sweep.rows)
    yield from lines[: most + 1] if few else lines
    if few:
        yield f"  and {len(sweep.rows) - most:,} more rows"
    if below := [*ended(sweep), *warned(sweep)]:
        yield ""
        for line in below:
            yield from textwrap.wrap(
                line, WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
            )


def _table(sweep: Sweep) -> Iterator[str]:
    ranked = sweep.ranking
    right = [Column("time", ["-" if row.makespan_s is None else format_quantity(row.makespan_s, "s") for row in sweep.rows])]
    if any(row.interval is not None and row.interval.half > LEAST_HALF for row in sweep.rows):
        right.append(Column("9 of 10", ["-" if row.interval is None else within(row.interval) for row in sweep.rows]))
    if ranked.measure is not None and ranked.measure.is_pace:
        right.append(Column("speed-up", [_speed_up(*each) for each in zip(sweep.speed_ups, sweep.over_first, strict=True)]))
    if ranked.unit and ranked.measure is not None and ranked.measure.column not in sweep.measured:
        right.append(Column(ranked.measure.title, [ranked.measure.shown(value) for value in ranked.values]))
    right += [
        Column(_heading(name), [measure(name).shown(dict(row.measures).get(name)) for row in sweep.rows])
        for name in sweep.measured
    ]
    if marks := _marks(sweep):
        cells = ["".join(marks[code] for code in dict.fromkeys(each.code for each in row.warnings)) for row in sweep.rows]
        right.append(Column("warned", cells, right=False))
    room = WIDTH - CAUSE - sum(max(map(len, column.texts)) + 2 for column in right) - 2  # integers
    widest = max(room // max(len(sweep.vary), 1) - 2, LEAST)
    names = _names(sweep.paths, widest, {column.heading for column in right})
    varied = [
        Column(name, [" ".join(written(row.values[place]).split()) for row in sweep.rows], _are_numbers(values), widest)
        for place, (name, (_, values)) in enumerate(zip(names, sweep.vary, strict=True))
    ]
    yield from aligned([*varied, *right, Column("limited by", list(map(_cause, sweep.rows)), right=False)], widest=WIDTH)


def _cause(row: Row) -> str:
    if row.error:
        return f"failed: {row.error}"
    return f"{row.limited_by} {format_share(row.share)}" if row.share is not None else row.limited_by


def _are_numbers(values: Sequence[object]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _names(paths: Sequence[str], widest: int, others: Set[str] = frozenset()) -> list[str]:
    """Paths, or where they are too long the shortest ends that differ from each other and from other columns.

    >>> _names(["machine.node.gpu.count", "machine.node.cpu.count", "workload.runtime.queue_depth"], 20)
    ['gpu.count', 'cpu.count', 'runtime.queue_depth']
    >>> _names(["workload.program.0.busy.time"], 20, {"time"})
    ['busy.time']
    """
    if all(len(path) <= widest for path in paths):
        return list(paths)
    for steps in range(1, max(path.count(".") for path in paths) + 2):
        names = [".".join(path.split(".")[-steps:]) for path in paths]
        if len({*names}) == len(paths) and not others & {*names}:
            return [name if len(name) <= widest else "..." + name[len(name) - widest + 3 :] for name in names]
    return list(paths)


def _heading(column: str) -> str:
    """The title of a measure; the end of a long path."""
    title = measure(column).title
    return title if len(title) <= CAUSE else "..." + title[3 - CAUSE :]


def _marks(sweep: Sweep) -> dict[str, str]:
    """A letter for each code of a warning, in the order of the rows."""
    codes = dict.fromkeys(warning.code for row in sweep.rows for warning in row.warnings)
    return dict(zip(codes, ascii_letters, strict=False))


def warned(sweep: Sweep) -> Iterator[str]:
    """A line for each code of a warning: its mark, the number of rows, and the first message."""
    for code, mark in _marks(sweep).items():
        messages = [warning.message for row in sweep.rows for warning in row.warnings if warning.code == code]
        rows = sum(any(warning.code == code for warning in row.warnings) for row in sweep.rows)
        where = "every row" if rows == len(sweep.rows) else f"{rows} of {len(sweep.rows)} rows"
        more = ", and the like" if len(set(messages)) > 1 else ""
        yield f"{mark}: warning {code}, {where}: {messages[0]}{more}"


def factor(value: float) -> str:
    """A speed-up with three digits.

    >>> factor(1), factor(0.0523), factor(16.26), factor(12345.6)
    ('1.00', '0.0523', '16.3', '12346')
    """
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3g}"


def _speed_up(value: float | None, over: Ratio | None) -> str:
    """A speed-up, with a ~ where it may as well be none."""
    may_be_none = over is not None and over.half > LEAST_HALF and not over.is_told and value != 1
    return "-" if value is None else f"{'~' if may_be_none else ''}{factor(value)}"


def _best(title: str, sweep: Sweep, measure: Measure, ran: Sequence[tuple[float, Row]]) -> str:
    """The best of some rows, and its warnings; of equal ones the first with the fewest warnings."""
    most = _ahead(measure, ran)
    equal = [pair for pair in ran if math.isclose(pair[0], most, rel_tol=1e-9)]  # work a second is a quotient
    best_value, best = min(equal, key=lambda pair: len(pair[1].warnings))
    alike = len(equal) - 1
    values = ", ".join(f"{path}={written(value)}" for path, value in zip(sweep.paths, best.values, strict=True))
    codes = ", ".join(dict.fromkeys(warning.code for warning in best.warnings))
    warned = f" (warning {codes})" if codes else ""
    return f"{title}: {values} with {_with(measure, best_value)}" + (f", and {alike} alike" if alike else "") + warned


def _told(sweep: Sweep) -> Iterator[str]:
    """Whether the best row is surely ahead of the others: what two rows do alike makes them wrong alike."""
    slower = [over for over in sweep.over_best if over is not None and over.value > 1.0 + 1e-9]
    unsure = [over for over in slower if not over.is_told]
    if any(over.half > LEAST_HALF for over in slower):
        nearest = min(slower, key=lambda over: over.value)
        if nearest.value > FAR:
            apart = f"{nearest.value:.3g} times as long, 9 of 10 within {nearest.low:.3g} to {nearest.high:.3g}"
        else:
            ends = (nearest.low - 1, nearest.high - 1)
            low, high = (percent(end, "+.0f") for end in ends)
            low, high = (low, high) if low != high else tuple(percent(end, "+.1f") for end in ends)
            apart = f"{rough(nearest.value - 1)} apart, 9 of 10 within {low} to {high}"
        if not unsure:
            best = min(over.value for over in sweep.over_best if over is not None)
            alike = sum(over is not None and over.value <= best + 1e-9 for over in sweep.over_best) > 1  # integers
            subject = "they are faster than every other row" if alike else "it is faster than every other row"
            yield f"{subject}, 95 % sure (the next is {apart})"
        elif any(over.outside for over in unsure):
            yield f"which is the fastest cannot be told: {len(unsure)} of the others are outside of everything measured"
        else:
            yield f"{len(unsure)} of the others cannot be told from it (the next is {apart})"


def _with(measure: Measure, value: float) -> str:
    """A value with its unit, or with the name of the things counted."""
    shown = measure.shown(value)
    return f"{shown} {measure.title}" if measure.unit == "1" and measure.title.endswith("/s") else shown


def _ahead(measure: Measure, ran: Sequence[tuple[float, Row]]) -> float:
    values = [value for value, _ in ran]
    return max(values) if measure.most else min(values)


def ended(sweep: Sweep) -> Iterator[str]:
    """Lines below the table: the best point, why rows are compared by that measure, failures, points that did not run."""
    compared, why = sweep.ranking.measure, sweep.ranking.why
    ran = [(value, row) for value, row in zip(sweep.ranking.values, sweep.rows, strict=True) if value is not None]
    if len(ran) > 1 and compared is not None:
        word = (
            ("fastest" if sweep.is_told else "lowest time")
            if compared.column == TIME
            else f"{'highest' if compared.most else 'lowest'} {compared.title}"
        )
        yield _best(word, sweep, compared, ran)
        sound = [pair for pair in ran if not any(warning.exceeds for warning in pair[1].warnings)]
        if sound and len(sound) < len(ran) and not math.isclose(_ahead(compared, ran), _ahead(compared, sound), rel_tol=1e-9):
            yield _best(f"{word} that the machine can do", sweep, compared, sound)
        yield from _told(sweep)
        if any(cell.startswith("~") for cell in map(_speed_up, sweep.speed_ups, sweep.over_first)):
            yield "~ cannot be told from 1"
    if len(sweep.rows) > 1 and why and why != AS_ASKED:
        by_time = "compared by time: " if compared is not None and compared.column == TIME else ""
        yield (by_time if compared is None or by_time else f"compared by {compared.title}, not by time: ") + why
    if sweep.failed:
        yield f"{len(sweep.failed)} of {len(sweep.rows)} points failed"
        times = Counter(row.error for row in sweep.failed)
        for error, many in list(times.items())[:ERRORS]:
            yield shortened(f"{many} x {error}" if len(times) > 1 else error, MOST)
        if len(times) > ERRORS:
            yield f"and {len(times) - ERRORS} other reasons"
        if sweep.rows[0].makespan_s is None and ran and compared is not None and compared.is_pace:
            yield "speed-ups are relative to the first point that did not fail"
    if len(sweep.rows) < sweep.points:
        yield f"{sweep.points - len(sweep.rows)} of {sweep.points} points were not run"
