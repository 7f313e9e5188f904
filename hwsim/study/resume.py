"""The points of an earlier study, from its CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from hwsim.spec import Mistake, Place, SpecError
from hwsim.study.cells import read_warnings, read_work
from hwsim.study.measures import UNITS
from hwsim.study.point import Outcome
from hwsim.study.table import ASKED, FOUND


def known_points(path: str | Path) -> dict[str, Outcome]:
    """What came of the points of a file that `Sweep.to_csv` wrote, by fingerprint; failed points are left out.

    Raises:
        SpecError: the file is no table of a sweep.
        OSError: it cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return {outcome.fingerprint: outcome for outcome in _outcomes(csv.reader(file, strict=True), str(path))}
    except (csv.Error, UnicodeDecodeError) as error:
        raise _wrong(str(path), 0, f"it cannot be read as CSV ({error})") from None


def _outcomes(lines: Iterator[list[str]], file: str) -> Iterator[Outcome]:
    header = next(lines, [])
    if tuple(header[-len(FOUND) :]) != FOUND:
        raise _wrong(file, 1, "its columns are not those that a sweep writes")
    names = header[: -len(FOUND)]
    measured = [(name.removeprefix(ASKED), at) for at, name in enumerate(names) if at and all(map(_is_measure, names[at:]))]
    for number, line in enumerate(lines, 2):
        if len(line) != len(header):
            raise _wrong(file, number, f"{len(line)} columns instead of {len(header)}")
        makespan, _, work, limited_by, share, warnings, error, fingerprint = line[-len(FOUND) :]
        if error or not fingerprint:
            continue
        try:
            more = tuple((name, float(line[place])) for name, place in measured if line[place])
            outcome = Outcome(
                float(makespan),
                limited_by,
                float(share) if share else None,
                "",
                fingerprint,
                more,
                read_warnings(warnings),
                read_work(work),
            )
        except ValueError:
            raise _wrong(file, number, "a time or share is not a number, or a warning has no known code") from None
        if not math.isfinite(outcome.makespan_s or 0.0):
            raise _wrong(file, number, "a time is not a finite number")
        yield outcome


def _is_measure(name: str) -> bool:
    return name in UNITS or name.startswith(ASKED)


def _wrong(file: str, line: int, message: str) -> SpecError:
    return SpecError([Mistake(Place(file, line, 1), f"no result of an earlier sweep: {message}", "it is what --csv has written")])
