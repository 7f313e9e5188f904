"""`hwsim plan`: find the best machine, node count and parallel plan that meet requirements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hwsim.cli import EXIT_VIOLATED
from hwsim.cli.arguments import FILE, answered, folded, refuse_unwritable, settings_option, write_files
from hwsim.results.invariants import document


@click.command("plan")
@click.argument("sources", nargs=-1, required=True, metavar="FILE | MACHINE WORKLOAD")
@settings_option
@click.option("--vary", multiple=True, metavar="PATH=VALUES",
              help="Search space: let.nodes=16..640, machine.gpu.use=a10,l4, workload.train.parallel=auto, "
              "workload.infer=auto.")  # fmt: skip
@click.option("--require", multiple=True, metavar="'NAME at most|at least VALUE'",
              help="Requirement: 'training p90 at most 60 day', 'power at most 2 MW', 'memory at most 90 %'.")  # fmt: skip
@click.option(
    "--minimise",
    multiple=True,
    metavar="NAME",
    help="Objective to minimize: cost, time, energy, nodes; a second one breaks ties.",
)
@click.option("--maximise", multiple=True, metavar="NAME", help="Objective to maximize: tokens/s, samples/s, mfu.")
@click.option("--also", multiple=True, metavar="NAME", help="Additional axis of the Pareto frontier.")
@click.option("--prices", metavar="FILE", help="Price list that overrides the library's (hwsim: prices/1).")
@click.option("--provider", metavar="NAME", help="Use the offers of this provider only.")
@click.option("--failures", metavar="NAME", help="Failure rates: a file, a library name, or none.")
@click.option("--rent", type=click.Choice(("purchase", "on_demand", "1_year", "3_year", "spot", "block")), metavar="WAY",
              help="Payment that ranks options: purchase (default), on_demand, 1_year, 3_year, spot or block.")  # fmt: skip
@click.option("--period", metavar="TIME", help="Period of use, for workloads without an end: 1 year.")
@click.option("--simulate", type=click.IntRange(min=0), metavar="N",
              help="Simulate up to N options near the best (default: 20; 0: closed form only).")  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Add the best options, the Pareto frontier, all numbers, prices and reasons.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: plan/2, or deployments/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure of the Pareto frontier (.png, .svg or .pdf).")
@click.option("--report", type=FILE, metavar="FILE", help="Write an HTML page.")
@click.option("--journal", type=FILE, metavar="FILE", help="Save simulations in FILE, so that an interrupted search resumes.")
def command(
    sources: tuple[str, ...],
    settings: dict[str, str],
    as_json: bool,
    verbose: bool,
    plot: Path | None,
    report: Path | None,
    journal: Path | None,
    **options: Any,
) -> None:
    """Find the best machine, count and parallel plan that meet requirements: from a FILE (hwsim: plan/1), or from MACHINE,
    WORKLOAD and options.

    Rejected options are listed with the reason. Exit code 3 if no option meets the requirements; the closest is then shown.
    """
    refuse_unwritable(plot)
    refuse_unwritable(report, "--report", "page", (".html",))
    refuse_unwritable(journal, "--journal", suffixes=())
    if len(sources) > 2:
        raise click.UsageError(f"expected FILE, or MACHINE and WORKLOAD, got {len(sources)} arguments")
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.planning import DeploymentAnswer, PlanAnswer, plan, plan_deployment, read_question
    from hwsim.planning.flags import file_with_flags, question_from_flags

    with print_errors(), progress(shown=sys.stderr.isatty(), unit="simulations") as shown:
        tree = (
            question_from_flags(*sources, settings, options)
            if len(sources) == 2
            else file_with_flags(sources[0], settings, options)
        )
        question = read_question(tree)
        answer: PlanAnswer | DeploymentAnswer = (
            plan(question, journal=journal, progress=shown)
            if question.varied.deployments is None
            else plan_deployment(question, journal=journal, progress=shown)
        )

    def show() -> None:
        click.echo(document(answer.to_json()) if as_json else folded(answer.summary(verbose=verbose)), nl=False)

    with answered(show):
        write_files([(plot if answer.options else None, answer.plot), (report, answer.report)])
    if answer.best is None:
        click.get_current_context().exit(EXIT_VIOLATED)
