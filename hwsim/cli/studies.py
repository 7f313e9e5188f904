"""Shared options of `sweep` and `study`: worker processes, handling of signals, and output."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import click

from hwsim.cli import EXIT_BROKEN, EXIT_MISTAKE, system_error
from hwsim.cli.arguments import FILE, decorated, printed, refuse_unwritable, write_files
from hwsim.results.invariants import CONTRADICTS, document

if TYPE_CHECKING:
    from hwsim.studies.table import Sweep

F = TypeVar("F", bound=Callable[..., Any])
Run = Callable[..., "Sweep"]  # of workers and progress
MOST: Final = 600  # maximum characters of a reason
ERRORS: Final = 3  # maximum number of distinct reasons if every point failed


class StudyOptions(NamedTuple):
    """The options shared by `sweep` and `study`: worker processes and output files."""

    as_json: bool
    plot: Path | None
    report: Path | None
    workers: int | None


def study_options(function: F) -> F:
    """Add the options --json, --plot, --report and --workers, passed on as one argument `wanted`."""

    @wraps(function)
    def command(*names: str, **given: Any) -> None:
        wanted = StudyOptions(**{name: given.pop(name) for name in StudyOptions._fields})
        refuse_unwritable(wanted.plot)
        refuse_unwritable(wanted.report, "--report", "page", (".html",))
        function(*names, wanted=wanted, **given)

    figure = "Write a figure: the compared quantity over the first numeric path (.png, .svg or .pdf)."
    options = (
        click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: sweep/2)."),
        click.option("--plot", type=FILE, metavar="FILE", help=figure),
        click.option("--report", type=FILE, metavar="FILE", help="Write an HTML page."),
        click.option(
            "--workers", type=click.IntRange(min=1), help="Worker processes (default: one per core for runs over a second)."
        ),
    )
    return cast(F, decorated(command, options))


def run_study(run: Run, wanted: StudyOptions) -> tuple[Sweep, int]:
    """The rows of a study, and the exit status of an interrupted one, else 0; mistakes end the command, errors of its journal
    are printed.
    """
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.studies.processes import collect_rarely
    from hwsim.studies.study_run import Interrupted

    with print_errors(), ended_by_signals(), progress(shown=sys.stderr.isatty(), unit="points") as report:
        collect_rarely()
        try:
            return run(workers=wanted.workers, progress=report), 0
        except Interrupted as interrupted:
            if interrupted.error is not None:
                click.echo(system_error(interrupted.error), err=True)
            return interrupted.sweep, interrupted.status


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Context in which SIGTERM and SIGHUP act like Ctrl-C, so finished points are kept; ignored signals stay ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 (what signal calls)
        raise KeyboardInterrupt(number)

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _written(study: Sweep, journal: Path | None, path: Path) -> Path:
    from hwsim.views.kit.file_output import write

    written = write(path, [study.to_csv().encode()])
    if journal is not None and len(study.rows) == study.points:
        journal.unlink(missing_ok=True)
    return written


def finish(
    study: Sweep, wanted: StudyOptions, *, stopped: int, rows: Path | None, go_on: str, most: int = 0, journal: Path | None = None
) -> None:
    """Write the rows and figures, print the table or JSON, and exit with the status of the study.

    Args:
        study: rows of the study.
        wanted: options.
        stopped: exit status of an interrupted study, else 0.
        rows: CSV file to write; None: no file.
        go_on: text on how to resume after an interruption; "" if it is impossible.
        most: maximum number of printed rows; 0: all.
        journal: journal to remove once all rows are written.
    """
    from hwsim.studies.grid import value_text
    from hwsim.studies.text import text

    all_failed = len(study.failed) == len(study.rows)
    try:  # the rows first: figures of them can be drawn again
        write_files([(rows, partial(_written, study, journal))])
    finally:  # what a full disk does not take is at least shown
        if wanted.as_json:
            click.echo(document(study.to_json()), nl=False)
        elif stopped or not all_failed:
            varied = (value_text(value) for _, values in study.vary for value in values)
            click.echo(printed(text(study, most), varied), nl=False)
    write_files([(None if all_failed else wanted.plot, study.plot), (wanted.report, study.report)])
    if stopped:
        more = f"; {go_on}" if go_on and len(study.rows) < study.points else ""
        click.echo(f"interrupted: {len(study.rows)} of {study.points} points are done{more}", err=True)
        click.get_current_context().exit(stopped)
    broken = next((row.error for row in study.failed if row.error.startswith(CONTRADICTS)), "")
    if broken:
        click.echo(broken, err=True)
        click.get_current_context().exit(EXIT_BROKEN)
    if all_failed:
        from hwsim.views.kit.table import cut_end

        errors = [cut_end(error, MOST) for error in dict.fromkeys(row.error for row in study.failed)]
        more = f"and {len(errors) - ERRORS} other reasons"
        click.echo("\n".join(["every point failed:", *errors[:ERRORS], *([more] if len(errors) > ERRORS else [])]), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
