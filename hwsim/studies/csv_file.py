"""The rows of a study as CSV, and back: `--resume` reads what `--csv` wrote and loses nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from hwsim.graph.files.typed import refuse_unfit
from hwsim.results.interval import Interval, Part
from hwsim.results.work import Work
from hwsim.spec import CODES, Place, SpecError, Warning
from hwsim.spec.tree import unprintable
from hwsim.studies.cells import Column
from hwsim.studies.measures import UNITS
from hwsim.studies.point import Outcome, Row, refuse_impossible, refuse_wide

REQUESTED: Final = "by:"  # before the name of a column that `by` requested
LAST: Final = (  # columns after the varied paths and the measures
    "makespan_s", "low_s", "high_s", "speed_up", "work", "limited_by", "share", "warnings", "error", "interval", "fingerprint",
)  # fmt: skip
_NEXT: Final = re.compile(r" \| (?=(?:" + "|".join(CODES) + "): )")
_WARNING: Final = re.compile(r"(?P<code>[a-z-]+): (?:(?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): )?(?P<text>.*)")


def heading(name: str) -> str:
    """Heading of a measure's column."""
    return name if name in UNITS else f"{REQUESTED}{name}"


def to_csv(paths: Sequence[Column], measured: Sequence[str], rows: Iterable[tuple[Row, float | None]]) -> str:
    """A line per (row, speed-up) under a line of headings. Numbers are written so that reading them back is exact."""
    buffer = io.StringIO()
    lines = csv.writer(buffer, lineterminator="\n")
    lines.writerow((*(path.heading for path in paths), *map(heading, measured), *LAST))
    for row, speed_up in rows:
        values = dict(row.measures)
        warnings, work = " | ".join(map(str, row.warnings)), write_work(row.work)
        sure = row.interval
        ends = (sure.low, sure.high, write_interval(sure)) if sure is not None else (None, None, None)
        last = (
            row.makespan_s,
            *ends[:2],
            speed_up,
            work,
            row.limited_by,
            row.share,
            warnings,
            row.error,
            ends[2],
            row.fingerprint,
        )
        cells = (*(values.get(name) for name in measured), *last)
        varied = [path.cell(value) for path, value in zip(paths, row.values, strict=True)]
        lines.writerow([*varied, *("" if cell is None else cell for cell in cells)])
    return buffer.getvalue()


def earlier_points(path: str | Path) -> dict[str, Outcome]:
    """Outcomes in a file that `to_csv` wrote, by fingerprint; failed points are left out.

    Raises:
        SpecError: the file is no table of a sweep.
        OSError: it cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            lines = printable(csv.reader(file, strict=True))
            return {outcome.fingerprint: outcome for outcome in _outcomes(lines, str(path))}
    except (csv.Error, UnicodeDecodeError) as error:
        raise _wrong(str(path), 0, f"it cannot be read as CSV ({error})") from None


def printable(lines: Iterable[list[str]]) -> Iterator[list[str]]:
    """Rows of a CSV; raises csv.Error at a text that would command a terminal."""
    for line in lines:
        if (bad := unprintable("".join(line))) is not None:
            raise csv.Error(f"the control character U+{ord(bad):04X} does not belong in a text")
        yield line


def _outcomes(lines: Iterator[list[str]], file: str) -> Iterator[Outcome]:
    header = next(lines, [])
    if tuple(header[-len(LAST) :]) != LAST:
        raise _wrong(file, 1, "its columns are not those that a sweep writes")
    names = header[: -len(LAST)]
    measured = [(name.removeprefix(REQUESTED), at) for at, name in enumerate(names) if at and all(map(_is_measure, names[at:]))]
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            raise _wrong(file, number, f"{len(line)} columns instead of {len(header)}")
        makespan, _, _, _, work, limited_by, share, warnings, error, interval, fingerprint = line[-len(LAST) :]
        if error or not fingerprint:
            continue
        try:
            outcome = Outcome(
                makespan_s=float(makespan),
                limited_by=limited_by,
                share=float(share) if share else None,
                fingerprint=fingerprint,
                measures=tuple((name, float(line[at])) for name, at in measured if line[at]),
                warnings=read_warnings(warnings),
                work=read_work(work),
                interval=read_interval(interval, float(makespan)) if interval else None,
            )
            refuse_impossible(outcome)
        except ValueError:
            raise _wrong(
                file,
                number,
                "a time or share is no number that it can be, an interval is not one, or a warning has no known code",
            ) from None
        yield outcome


def _is_measure(name: str) -> bool:
    return name in UNITS or name.startswith(REQUESTED)


def _wrong(file: str, line: int, message: str) -> SpecError:
    return SpecError.of(Place(file, line, 1), f"no result of an earlier sweep: {message}", "it is what --csv has written")


def read_warnings(cell: str) -> tuple[Warning, ...]:
    """Warnings of a cell.

    Raises:
        ValueError: the cell holds no warnings.

    >>> [(warning.code, str(warning.place)) for warning in read_warnings("lone-barrier: x | idle-workers: a.yaml:3:5: y")]
    [('lone-barrier', 'None'), ('idle-workers', 'a.yaml:3:5')]
    """
    warnings = []
    for text in _NEXT.split(cell) if cell else ():
        parts = _WARNING.fullmatch(text)
        if parts is None:
            raise ValueError(f"'{text:.60}' is no warning")
        place = Place(parts["file"], int(parts["line"]), int(parts["column"])) if parts["file"] else None
        warnings.append(Warning(parts["code"], parts["text"], place))
    return tuple(warnings)


def write_work(work: Sequence[Work]) -> str:
    """Amounts, each with its pace, in one cell.

    >>> write_work([Work("samples", 64.0, 12.5)]), read_work("64.0 samples at 12.5/s")
    ('64.0 samples at 12.5/s', (Work(unit='samples', amount=64.0, per_s=12.5),))
    """
    return " | ".join(f"{unit.amount!r} {unit.unit} at {unit.per_s!r}/s" for unit in work)


def read_work(cell: str) -> tuple[Work, ...]:
    """Amounts of a cell that `write_work` wrote.

    Raises:
        ValueError: the cell holds no amounts.
    """
    amounts = []
    for text in cell.split(" | ") if cell else ():
        amount, unit, at, pace = text.split(" ")
        if at != "at" or not pace.endswith("/s"):
            raise ValueError(f"'{text:.60}' is no amount of work")
        amounts.append(Work(unit, float(amount), float(pace.removesuffix("/s"))))
    return tuple(amounts)


def write_interval(interval: Interval) -> str:
    """An interval in one cell: all of it but the answer."""
    return json.dumps({**asdict(interval), "value": None}, separators=(",", ":"))


def read_interval(cell: str, value: float) -> Interval:
    """The interval around `value` of a cell that `write_interval` wrote.

    Raises:
        ValueError: the cell holds no interval.
    """
    try:
        fields = json.loads(cell)
        interval = Interval(**{**fields, "value": value, "parts": tuple(Part(**part) for part in fields["parts"])})
        refuse_unfit(interval)
        refuse_wide(interval)
        return interval
    except (TypeError, KeyError) as error:
        raise ValueError(f"'{cell:.60}' is no interval") from error
