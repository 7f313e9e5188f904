"""`hwsim sensitivity`: rank uncertain inputs by their effect on a result, or on the choice between two machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hwsim.cli.arguments import FILE, MACHINE, answered, as_settings, printed, refuse_unwritable, run_arguments, write_files
from hwsim.cli.cost_options import paying_options
from hwsim.results.invariants import document

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying


@click.command("sensitivity")
@run_arguments
@click.option(
    "--against", type=MACHINE, metavar="MACHINE", help="Second machine: find what the choice between the two depends on."
)
@click.option("--set-b", "set_b", multiple=True, metavar="PATH=VALUE", callback=as_settings,
              help="Change one value of the second option only.")  # fmt: skip
@click.option(
    "--by", default="", metavar="MEASURE", help="Result to vary: time (default), step, tokens/s, ttft_p95, ... as in sweep."
)
@click.option("-v", "--verbose", is_flag=True, help="Print every uncertain input that has an effect.")
@paying_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: sensitivity/2).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write the tornado diagram (.png, .svg or .pdf).")
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    against: str | None,
    set_b: dict[str, str],
    by: str,
    verbose: bool,
    paying: Paying | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Vary each uncertain input of MACHINE and WORKLOAD over its range, and rank them by their effect on the result.

    With --against or --set-b, compare two options A and B: the probability that the choice is wrong, what to measure first,
    and the break-even values and prices.
    """
    refuse_unwritable(plot)
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.sensitivities.analysis import sensitivity

    second = [(against, workload)] if against else []
    with print_errors(), progress(shown=sys.stderr.isatty(), unit="numbers") as report:
        answer = sensitivity(machine, workload, against=second, set=settings, set_b=set_b, by=by, paying=paying, progress=report)
    with answered(lambda: click.echo(document(answer.to_json()) if as_json else printed(answer.text(verbose=verbose)), nl=False)):
        write_files([(plot, answer.plot)])
