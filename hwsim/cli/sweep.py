"""`hwsim sweep`: a workload with every combination of values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli.arguments import FILE, refuse_unwritable, run_arguments
from hwsim.cli.cost_options import paying_options
from hwsim.cli.studies import StudyOptions, finish, run_study, study_options

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying


SUFFIX: Final = ".journal.jsonl"


@click.command("sweep")
@run_arguments
@click.option("--vary", multiple=True, required=True, metavar="PATH=VALUES",
              help="Values: n=10,20,40, n=1..64:x2, n=0..64:+8 or n=1..99:log. Several --vary form a grid.")  # fmt: skip
@click.option("-o", "--csv", "csv_file", type=FILE, metavar="FILE", help="Write the rows as CSV.")
@click.option("--by", default="", metavar="MEASURE",
              help="Quantity to compare: time, samples/s, tokens/s, ttft_p95, mfu, peak_memory, energy, cost, busy:CAPACITY, or "
              "a path into `simulate --json` (default: time, or throughput if the work differs).")  # fmt: skip
@study_options
@paying_options
def command(
    machine: str,
    workload: str,
    vary: tuple[str, ...],
    settings: dict[str, str],
    csv_file: Path | None,
    by: str,
    wanted: StudyOptions,
    paying: Paying | None,
) -> None:
    """Run WORKLOAD on MACHINE for every combination of the values, and print a row for each.

    A point that cannot be simulated is a row with the reason; if all fail, the exit code is 2. Ctrl-C prints the finished
    points. With --csv they are saved in a journal, so that the same command resumes. `hwsim study` does the same from a file.
    """
    refuse_unwritable(csv_file, "--csv", suffixes=())
    journal = None if csv_file is None or (csv_file.exists() and not csv_file.is_file()) else csv_file.with_suffix(SUFFIX)
    from hwsim.cli.errors import print_errors
    from hwsim.studies.sweeps import sweep

    with print_errors():
        varied = _varied(vary)
    run = partial(sweep, machine, workload, varied, set=settings, journal=journal, by=by, paying=paying)
    table, stopped = run_study(run, wanted)
    finish(
        table,
        wanted,
        stopped=stopped,
        rows=csv_file,
        go_on="" if journal is None else "the same command goes on",
        journal=journal,
    )


def _varied(texts: tuple[str, ...]) -> dict[str, tuple[object, ...]]:
    from hwsim.studies.grid import parse_vary

    varied: dict[str, tuple[object, ...]] = {}
    for text in texts:
        path, values = parse_vary(text)
        if path in varied:
            raise click.BadParameter(f"'{path}' is varied twice; list all values after one =", param_hint="--vary")
        varied[path] = values
    return varied
