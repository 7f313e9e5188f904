"""`hwsim sweep`: the same workload with other values."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_MISTAKE
from hwsim.cli.arguments import MACHINE, WORKLOAD, settings_option
from hwsim.invariants import CONTRADICTS, document, printed

if TYPE_CHECKING:
    from hwsim.study import Sweep

AFTER: Final = 1.0  # seconds before progress is shown
EVERY: Final = 0.1  # seconds between two updates of it
MOST: Final = 600  # letters of a reason
ERRORS: Final = 3  # different ones said when every point failed
FIGURES: Final = (".png", ".svg", ".pdf")
FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("sweep")
@click.argument("machine", type=MACHINE)
@click.argument("workload", type=WORKLOAD)
@click.option("--vary", multiple=True, required=True, metavar="PATH=VALUES",
              help="Values to take: n=10,20,40 or n=1..64:x2 or n=1..1000:log.  Several --vary make a grid.")  # fmt: skip
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: sweep/1).")
@click.option("-o", "--csv", "csv_file", type=FILE, metavar="FILE", help="Write the rows as CSV.")
@click.option(
    "--plot", type=FILE, metavar="FILE", help="Write a figure: what rows are compared by over the first path that takes numbers."
)
@click.option("--by", default="", metavar="MEASURE",
              help="Compare rows by it: time, samples/s, tokens/s, ttft_p95, mfu, peak_memory, busy:CAPACITY, or a path into "
              "`simulate --json` (default: time; where rows do different work, work a second).")  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="A CSV of an earlier sweep: points that it has, files unchanged, are not run again.")  # fmt: skip
@click.option("--workers", type=click.IntRange(min=1), help="Processes (default: one per core for studies of over a second).")
def command(
    machine: str,
    workload: str,
    vary: tuple[str, ...],
    settings: dict[str, str],
    as_json: bool,
    csv_file: Path | None,
    plot: Path | None,
    by: str,
    resume: Path | None,
    workers: int | None,
) -> None:
    """Run WORKLOAD on MACHINE at every combination of the values, and print a row for each.

    A point that cannot be simulated is a row that says why; if all fail, the exit code is 2.
    Ctrl-C prints (and writes) the points that are done.
    """
    if machine == workload == "-":
        raise click.UsageError("only one of the two files can be standard input")
    _refuse_unwritable(csv_file, plot)
    from hwsim.cli.errors import in_words
    from hwsim.study import Interrupted, sweep

    stopped = False
    with in_words():
        varied = _varied(vary)
        report = _Progress() if sys.stderr.isatty() else None
        try:
            found = sweep(machine, workload, varied, set=settings, workers=workers, progress=report, resume=resume, by=by)
        except Interrupted as interrupted:
            found, stopped = interrupted.sweep, True
        finally:
            if report is not None:
                report.clear()
    _write_files(found, csv_file, plot)
    useless = not stopped and len(found.failed) == len(found.rows)
    if as_json or not useless:
        _print(found, as_json=as_json)
    if stopped:
        click.echo(f"interrupted: {len(found.rows)} of {found.points} points are done" + _how_to_go_on(found, csv_file), err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)
    broken = next((row.error for row in found.failed if row.error.startswith(CONTRADICTS)), "")
    if broken:
        click.echo(broken, err=True)
        click.get_current_context().exit(EXIT_BROKEN)
    if useless:
        reasons = dict.fromkeys(row.error for row in found.failed)
        errors = [each if len(each) <= MOST else each[: MOST - 3] + "..." for each in reasons]
        more = [f"and {len(errors) - ERRORS} other reasons"] if len(errors) > ERRORS else []
        click.echo("\n".join(["every point failed:", *errors[:ERRORS], *more]), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)


def _varied(texts: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    from hwsim.study.grid import parse_vary

    found: dict[str, tuple[object, ...]] = {}
    for text in texts:
        path, values = parse_vary(text)
        if path in found:
            raise click.BadParameter(
                f"'{path}' is varied twice; its values can be given together, after one =", param_hint="--vary"
            )
        found[path] = values
    return found


def _refuse_unwritable(csv_file: Path | None, plot: Path | None) -> None:
    """Better said before a long study than after it."""
    for option, path in (("--csv", csv_file), ("--plot", plot)):
        if path is not None and not path.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint=option)
    if plot is not None and plot.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"a figure is written as .png, .svg or .pdf, not as '{plot.name}'", param_hint="--plot")


def _write_files(found: Sweep, csv_file: Path | None, plot: Path | None) -> None:
    from hwsim.views.kit.writing import write

    written = []
    if csv_file is not None:
        written.append(write(csv_file, [found.to_csv().encode()]))
    if plot is not None and len(found.failed) < len(found.rows):  # a figure of nothing helps nobody
        written.append(found.plot(plot))
    for path in written:
        click.echo(f"wrote {path}", err=True)


def _print(found: Sweep, *, as_json: bool) -> None:
    if as_json:
        click.echo(document(found.to_json()), nl=False)
    else:
        click.echo(printed(str(found)), nl=False)


def _how_to_go_on(found: Sweep, csv_file: Path | None) -> str:
    if csv_file is None or len(found.rows) == found.points:
        return ""
    return f"; the same command with --resume {csv_file} runs the rest"


class _Progress:
    """`37 of 64 points`, on one line of a terminal that is cleared afterwards."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + AFTER
        self._shown = ""

    def __call__(self, done: int, points: int) -> None:
        if self._clock() >= self._next:
            self._next = self._clock() + EVERY
            self._shown = f"{done} of {points} points"
            click.echo(f"\r{self._shown}", nl=False, err=True)

    def clear(self) -> None:
        if self._shown:
            click.echo("\r" + " " * len(self._shown) + "\r", nl=False, err=True)
