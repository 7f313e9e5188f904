"""`hwsim study`: run the points of a study file, with a journal of finished points."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli.arguments import FILE, refuse_unwritable, settings_option
from hwsim.cli.cost_options import paying_options
from hwsim.cli.studies import StudyOptions, finish, run_study, study_options

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

FEW: Final = 20  # maximum printed rows if a file contains all rows


@click.command("study")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@settings_option
@click.option("-o", "--rows", type=FILE, metavar="FILE", help="Write the rows as .csv (default: `rows:` of FILE).")
@click.option("--journal", type=FILE, metavar="FILE",
              help="Save finished points in FILE (default: beside the rows or FILE, .journal.jsonl).")  # fmt: skip
@study_options
@paying_options
def command(
    file: Path, settings: dict[str, str], rows: Path | None, journal: Path | None, wanted: StudyOptions, paying: Paying | None
) -> None:
    """Run the points of FILE (`hwsim: study/1`): a grid, a list, or random samples.

    Finished points are saved in a journal: after Ctrl-C or a crash, the same command resumes and writes the same rows. A point
    that cannot be simulated is a row with the reason; if all fail, the exit code is 2.
    """
    from hwsim.cli.errors import print_errors
    from hwsim.studies.file import load_study
    from hwsim.studies.sweeps import study

    with print_errors():
        parsed = load_study(str(file) if str(file) == "-" else file)
        rows = rows or parsed.rows
        refuse_unwritable(rows, "--rows", "table", (".csv",))
        parsed = replace(parsed, settings={**parsed.settings, **settings})
        journal = journal or parsed.journal or _beside(rows, file)
        refuse_unwritable(journal, "--journal", suffixes=())
        if rows is not None and journal is not None and rows.absolute() == journal.absolute():
            raise click.BadParameter(f"'{journal}' is the file of the rows; choose another journal", param_hint="--journal")
    run = partial(study, parsed, journal=journal, paying=paying)
    table, stopped = run_study(run, wanted)
    finish(
        table,
        wanted,
        stopped=stopped,
        rows=None if stopped else rows,
        go_on="" if journal is None else "the same command goes on",
        most=FEW if rows is not None else 0,
    )


def _beside(rows: Path | None, file: Path) -> Path | None:
    """Return the default journal, next to the rows, else next to the study file; None if neither is a file."""
    named = rows or (None if str(file) == "-" else file)
    return None if named is None else named.with_suffix(".journal.jsonl")
