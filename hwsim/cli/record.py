"""`hwsim record`: a script of numpy becomes a workload."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from hwsim.cli import EXIT_FAILED

FILE: Final = click.Path(path_type=Path, dir_okay=False)
SCRIPT: Final = click.Path(path_type=Path, dir_okay=False, exists=True, readable=True)


@click.command("record")
@click.argument("script", type=SCRIPT)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS...]")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="The workload to write (default: the script's name with .yaml).")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, metavar="N",
              help="Run the script so often: the first says what is called, the others what it takes (median).")  # fmt: skip
@click.option("--loops/--no-loops", default=True, help="Write calls that repeat as `repeat` (default), or all of them.")
def command(script: Path, arguments: tuple[str, ...], output: Path | None, runs: int, loops: bool) -> None:
    """Run SCRIPT, and write what it asks numpy for as a workload: a statement for each call.

    What each call took goes into a file beside it, for `hwsim compare`. The script sees numpy as it always is; calls that
    hwsim has no op for are written as `busy` with the time they took, and said.
    """
    output = Path(f"{script.stem}.yaml") if output is None else output
    from hwsim.calibration.recording import writing
    from hwsim.reports.writing import write

    beside = writing.measured_path(output)
    _refuse_unwritable(output, beside)
    from hwsim.calibration.recording.script import NothingRecorded, ScriptFailed, record_script

    try:
        found = record_script(script, arguments, runs=runs)
    except (ScriptFailed, NothingRecorded) as error:
        click.echo(f"{error}\nnothing is written", err=True)
        click.get_current_context().exit(EXIT_FAILED)
    text, measured = writing.document(found, loops=loops)
    write(beside, [writing.packed(measured)])
    write(output, [text.encode()])
    click.echo(writing.summary(found, measured), nl=False, err=True)
    click.echo(f"wrote {output} and {beside}", err=True)


def _refuse_unwritable(*paths: Path) -> None:
    """Better said before the script runs than after it."""
    for path in paths:
        folder = path.absolute().parent
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint="--output")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise click.BadParameter(f"'{path}' cannot be written", param_hint="--output")
