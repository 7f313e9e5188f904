"""`hwsim sweep`: the same workload with other values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_MISTAKE
from hwsim.cli.arguments import FILE, refuse_unwritable, run_arguments, write_files
from hwsim.results.invariants import CONTRADICTS, document, printed

if TYPE_CHECKING:
    from hwsim.study import Sweep

MOST: Final = 600  # letters of a reason
ERRORS: Final = 3  # different reasons that are printed when every point failed


@click.command("sweep")
@run_arguments
@click.option("--vary", multiple=True, required=True, metavar="PATH=VALUES",
              help="Values to take: n=10,20,40 or n=1..64:x2 or n=1..1000:log. Several --vary make a grid.")  # fmt: skip
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

    A point that cannot be simulated is a row with the reason; if all fail, the exit code is 2.
    Ctrl-C prints (and writes) the points that are done.
    """
    refuse_unwritable(csv_file, "--csv", suffixes=())
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim.study import Interrupted, sweep
    from hwsim.views.kit.table import shortened
    from hwsim.views.kit.writing import write

    stopped = False
    with in_words(), progress(shown=sys.stderr.isatty(), unit="points") as report:
        try:
            study = sweep(machine, workload, _varied(vary), set=settings, workers=workers, progress=report, resume=resume, by=by)
        except Interrupted as interrupted:
            study, stopped = interrupted.sweep, True
    all_failed = len(study.failed) == len(study.rows)
    write_files([
        (csv_file, lambda path: write(path, [study.to_csv().encode()])),
        (None if all_failed else plot, study.plot),
    ])  # fmt: skip
    if as_json:
        click.echo(document(study.to_json()), nl=False)
    elif stopped or not all_failed:
        click.echo(printed(str(study)), nl=False)
    if stopped:
        click.echo(f"interrupted: {len(study.rows)} of {study.points} points are done" + _how_to_go_on(study, csv_file), err=True)
        click.get_current_context().exit(EXIT_INTERRUPTED)
    broken = next((row.error for row in study.failed if row.error.startswith(CONTRADICTS)), "")
    if broken:
        click.echo(broken, err=True)
        click.get_current_context().exit(EXIT_BROKEN)
    if all_failed:
        errors = [shortened(error, MOST) for error in dict.fromkeys(row.error for row in study.failed)]
        more = [f"and {len(errors) - ERRORS} other reasons"] if len(errors) > ERRORS else []
        click.echo("\n".join(["every point failed:", *errors[:ERRORS], *more]), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)


def _varied(texts: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    from hwsim.study.grid import parse_vary

    varied: dict[str, tuple[object, ...]] = {}
    for text in texts:
        path, values = parse_vary(text)
        if path in varied:
            raise click.BadParameter(
                f"'{path}' is varied twice; its values can be given together, after one =", param_hint="--vary"
            )
        varied[path] = values
    return varied


def _how_to_go_on(study: Sweep, csv_file: Path | None) -> str:
    if csv_file is None or len(study.rows) == study.points:
        return ""
    return f"; the same command with --resume {csv_file} runs the rest"
