"""`hwsim explain`: why a run takes as long as it does."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hwsim.cli.arguments import FILE, answered, folded, refuse_unwritable, run_arguments, write_files


@click.command("explain")
@run_arguments
@click.option("--op", metavar="NAME", help="Derive how long the ops of this name take (default: those on the critical path).")
@click.option("--path", "pieces", is_flag=True, help="The critical path piece by piece, equal steps not put together.")
@click.option("--what-if/--no-what-if", "again", default=None,
              help="Run again with one number twice as good at a time (default: up to 200,000 ops).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (hwsim: explain/1).")
@click.option("--plot", type=FILE, metavar="FILE",
              help="Write the critical path as a figure (.png, .svg or .pdf).")  # fmt: skip
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    op: str | None,
    pieces: bool,
    again: bool | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Say why WORKLOAD takes as long as it does on MACHINE: where the time goes, how long each op takes and
    why, what hides behind what, and what one number of the files that is twice as good would change.

    The times of the causes add up to the time of the run exactly. The `expect:` of the workload is not checked.
    """
    refuse_unwritable(plot)
    from hwsim import api
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim.results.invariants import document
    from hwsim.spec import did_you_mean
    from hwsim.spec.shelf import shared
    from hwsim.views.explain.document import as_dict
    from hwsim.views.explain.explanation import NoSuchOp
    from hwsim.views.explain.say import text

    shown = sys.stderr.isatty()
    with in_words(), shared({}):
        with progress(shown=shown) as report:
            try:
                run = api.simulate(machine, workload, set=settings, expect=False, progress=report)
            except api.ExpectationFailed as failed:
                run = failed.run
                click.echo(f"note: {failed}", err=True)
        with progress(shown=shown) as report:
            try:
                explained = run.explain(op=op, what_if=again, progress=report)
            except NoSuchOp as error:
                hint = did_you_mean(error.name, error.names)
                raise click.BadParameter(f"{error}" + (f"; {hint}" if hint else ""), param_hint="--op") from error
    shown_text = document(as_dict(explained, path=pieces)) if as_json else folded(text(explained, path=pieces))
    with answered(lambda: click.echo(shown_text, nl=False)):
        write_files([(plot, explained.plot)])
