"""`hwsim explain`: explain why a run takes as long as it does."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hwsim.cli.arguments import FILE, answered, folded, refuse_unwritable, run_arguments, write_files


@click.command("explain")
@run_arguments
@click.option("--op", metavar="NAME", help="Print the derivation of the time of the ops of this name instead.")
@click.option("--path", "pieces", is_flag=True, help="Print the critical path op by op instead.")
@click.option("-v", "--verbose", is_flag=True, help="Add causes, the critical path, derivations and the --set of every change.")
@click.option("--what-if/--no-what-if", "again", default=None,
              help="Simulate again with one parameter at a time twice as good (default: up to 200,000 ops).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON (hwsim: explain/2).")
@click.option("--plot", type=FILE, metavar="FILE",
              help="Write the critical path as a figure (.png, .svg or .pdf).")  # fmt: skip
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    op: str | None,
    pieces: bool,
    verbose: bool,
    again: bool | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Show why WORKLOAD takes as long as it does on MACHINE, and what would speed it up.

    The critical path by bound and by activity adds up to the time of the run exactly. The `expect:` of the workload is not
    checked.
    """
    refuse_unwritable(plot)
    from hwsim import api
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.results.invariants import document
    from hwsim.spec import did_you_mean
    from hwsim.spec.memo import shared
    from hwsim.views.explain.document import as_dict
    from hwsim.views.explain.explanation import NoSuchOp
    from hwsim.views.explain.say import text

    shown = sys.stderr.isatty()
    with print_errors(), shared({}):
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

    def show() -> None:
        if as_json:
            click.echo(document(as_dict(explained, path=pieces)), nl=False)
        else:
            click.echo(folded(text(explained, path=pieces, op=op is not None, verbose=verbose)), nl=False)

    with answered(show):
        write_files([(plot, explained.plot)])
