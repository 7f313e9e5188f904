"""`hwsim sensitivity`: what an answer, or the choice between two, hangs on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hwsim.cli.arguments import (
    FILE,
    MACHINE,
    answered,
    as_settings,
    printed,
    refuse_unwritable,
    run_arguments,
    write_files,
)
from hwsim.cli.paying import paying_options
from hwsim.results.invariants import document

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying


@click.command("sensitivity")
@run_arguments
@click.option("--against", type=MACHINE, metavar="MACHINE", help="Another machine: what does the choice between the two hang on?")
@click.option("--set-b", "set_b", multiple=True, metavar="PATH=VALUE", callback=as_settings,
              help="Change one value of the second option.")  # fmt: skip
@click.option("--by", default="", metavar="MEASURE", help="The number, as in a sweep: time, step, tokens/s, ttft_p95, ...")
@paying_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: sensitivity/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write the tornado (.png, .svg or .pdf).")
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    against: str | None,
    set_b: dict[str, str],
    by: str,
    paying: Paying | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Move every unsure number of MACHINE and WORKLOAD to both ends of its range: a bar for each that moves the answer.

    With --against or --set-b there are two options, A and B: how probably the choice is wrong, what to measure first, and at
    which value of a number, or at which price, the order changes.
    """
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim.sensitivities.analysis import sensitivity

    second = [(against, workload)] if against else []
    with in_words(), progress(shown=sys.stderr.isatty(), unit="numbers") as report:
        answer = sensitivity(machine, workload, against=second, set=settings, set_b=set_b, by=by, paying=paying, progress=report)
    with answered(lambda: click.echo(document(answer.to_json()) if as_json else printed(str(answer)), nl=False)):
        write_files([(plot, answer.plot)])
