"""`hwsim simulate`: run a workload on a machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from hwsim.cli import EXIT_FAILED, EXIT_VIOLATED
from hwsim.cli.arguments import FILE, answered, folded, once, printed, refuse_unwritable, run_arguments, write_files
from hwsim.cli.cost_options import paying_options
from hwsim.families_interface import FAMILIES, family_report
from hwsim.results.invariants import document
from hwsim.views import FIGURES, SCENES
from hwsim.views.kit.lines import shell_command

if TYPE_CHECKING:
    from hwsim.api import Run
    from hwsim.costs.bill import Paying

# figure -> (attribute of a run that it draws, the message if the run has none)
DRAWN: Final = {
    "memory": ("memory", "no value of the run has a known size: say it as writes: {y: 2 MB}"),
    "latency": ("curves", "no part is simulated request by request: name one with --requests"),
}


@click.command("simulate")
@run_arguments
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: result/2).")
@click.option("--ops", is_flag=True, help="With --json: add a row per op.")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="With --ops: only the ops of rank N.")
@click.option("--fold/--no-fold", default=None,
              help="Simulate one of identical ranks, or all (default: one if there are many).")  # fmt: skip
@click.option("--fold-check", is_flag=True, help="Simulate with and without folding, and compare every op of every rank.")
@click.option("--requests", "requests", multiple=True, metavar="PART",
              help="Simulate this memory or disk request by request; repeatable.")  # fmt: skip
@click.option("--engine", type=click.Choice(["auto", "simpy"]), default="auto",
              help="simpy: run every op as a SimPy process; slow, with identical results.")  # fmt: skip
@click.option("--interval/--no-interval", "interval", default=None,
              help="Compute the 90 % interval by two more runs, or omit it (default: from the critical path).")  # fmt: skip
@click.option("--trace", multiple=True, callback=once, type=FILE, metavar="FILE",
              help="Write a trace for ui.perfetto.dev (.json or .json.gz).")  # fmt: skip
@click.option("--plot", multiple=True, callback=once,
              type=(click.Choice(sorted(FIGURES)), FILE), metavar=f"{'|'.join(sorted(FIGURES))} FILE",
              help="Write a figure (.png, .svg or .pdf).")  # fmt: skip
@click.option("--animate", multiple=True, callback=once, type=(click.Choice(sorted(SCENES)), FILE),
              metavar=f"{'|'.join(sorted(SCENES))} FILE", help="Write an animation (.svg).")  # fmt: skip
@click.option("--report", multiple=True, callback=once, type=FILE, metavar="FILE", help="Write an HTML page.")
@paying_options
@click.option("--expect/--no-expect", default=None, help="Check the `expect:` of the workload always, or never.")
@click.option("--find", metavar="rate|clients|NAME",
              help="Find the largest value that meets every expectation: a rate, a parameter or a path.")  # fmt: skip
@click.option(
    "-v", "--verbose", is_flag=True, help="Add causes, all resources, collective algorithms and sources of uncertainty."
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors and warnings only.")
def command(
    machine: str,
    workload: str,
    settings: dict[str, str],
    as_json: bool,
    ops: bool,
    rank: int | None,
    fold: bool | None,
    fold_check: bool,
    requests: tuple[str, ...],
    engine: Literal["auto", "simpy"],
    interval: bool | None,
    trace: Path | None,
    plot: tuple[str, Path] | None,
    animate: tuple[str, Path] | None,
    report: Path | None,
    expect: bool | None,
    find: str | None,
    verbose: bool,
    quiet: bool,
    paying: Paying | None,
) -> None:
    """Run WORKLOAD on MACHINE: time, bottleneck and utilization.

    Each is a file or a library name; one of them may be - (standard input). The `expect:` of the workload is checked on the
    machine that it names, unless a value is changed. Exit code 3 if it is violated, or if a device runs out of memory.
    """
    if find is not None:
        others = [trace, plot, animate, report, rank, paying, fold, interval, expect, *requests]
        if any(other is not None for other in others) or ops or fold_check or engine != "auto":
            raise click.UsageError("--find can be combined only with --set, --json and --quiet")
        _find(machine, workload, find, settings, as_json=as_json, quiet=quiet)
        return
    if ops and not as_json:
        raise click.UsageError("--ops requires --json")
    if rank is not None and not ops:
        raise click.UsageError("--rank requires --ops")
    if fold_check and (fold is False or requests):
        raise click.UsageError("--fold-check cannot be combined with --no-fold or --requests")
    refuse_unwritable(trace, "--trace", "trace", (".json", ".json.gz"))
    figure, figure_file = plot or (None, None)
    refuse_unwritable(figure_file)
    refuse_unwritable(None if animate is None else animate[1], "--animate", "animation", (".svg",))
    refuse_unwritable(report, "--report", "page", (".html",))
    from hwsim import api
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress

    violated = False
    with print_errors(), progress(shown=not quiet and sys.stderr.isatty()) as shown:
        try:
            run = api.simulate(
                machine,
                workload,
                set=settings,
                expect="auto" if expect is None else expect,
                requests=requests,
                latency=figure == "latency",
                fold="always" if fold or fold_check else "auto" if fold is None else "never",
                progress=shown,
                engine=engine,
                interval=True if interval is None else "runs" if interval else False,
                paying=paying,
            )
        except api.ExpectationFailed as failed:
            run, violated = failed.run, True
    if fold_check:
        violated |= not _is_alike(run, machine, workload, settings)
    if rank is not None and run.simulated.flat.graph.trainings and not run.jobs:
        message = "a training has no ranks: an op represents all GPUs of a stage group, and one replica represents all"
        raise click.BadParameter(f"{message}; --no-fold simulates every replica", param_hint="--rank")
    if rank is not None and rank >= run.ranks:
        raise click.BadParameter(f"expected a rank from 0 to {run.ranks - 1}, got {rank}", param_hint="--rank")
    if why := _undrawn(run, figure):
        raise click.BadParameter(why, param_hint="--plot")

    def show() -> None:
        if as_json and not quiet:
            from hwsim.views.summary.document import as_dict

            click.echo(document(as_dict(run, ops=ops, rank=rank)), nl=False)
        elif not quiet:
            click.echo(folded(run.summary(verbose=verbose)), nl=False)
        if not (quiet or as_json or "-" in (machine, workload)):  # a hint can be pasted
            words = ["hwsim", "explain", machine, workload]
            click.echo("\n" + shell_command("  next: ", words, settings, "   (why, and what would help)"))

    with answered(show):
        _write(run, quiet=quiet, trace=trace, animate=animate, plot=plot, report=report)
    if quiet:
        for warning in run.warnings:
            click.echo(f"warning[{warning.code}]: {warning.message}", err=True)
    if violated:
        for memory in run.memory:
            if not memory.fits:
                click.echo(f"out of memory: {memory.verdict()}", err=True)
        for verdict in run.verdicts:
            if verdict.status == "violated":
                click.echo(f"expected {verdict.quantity} {verdict.expected}: {verdict.reason}", err=True)
        click.get_current_context().exit(EXIT_VIOLATED)
    if any(told.endless for told in run.told.values()):
        click.get_current_context().exit(EXIT_FAILED)  # requests wait for each other for ever


def _undrawn(run: Run, figure: str | None) -> str:
    """Return the reason why a run lacks this figure; "" if it has it, or if drawing raises the error."""
    if figure in DRAWN and not getattr(run, DRAWN[figure][0]):
        return DRAWN[figure][1]
    missing = (key for key, family in FAMILIES.items() if family.figure == figure and key not in run.told)
    return next((family_report(key).undrawn for key in missing), "")


def _write(
    run: Run,
    *,
    quiet: bool,
    trace: Path | None,
    animate: tuple[str, Path] | None,
    plot: tuple[str, Path] | None,
    report: Path | None,
) -> None:
    """Write the files that were requested."""
    scene, scene_file = animate or ("", None)
    figure, figure_file = plot or ("gantt", None)
    for option, file, write in (
        ("--animate", scene_file, lambda path: run.animate(scene, path)),
        ("--trace", trace, run.trace),
        ("--plot", figure_file, lambda path: run.plot(figure, path)),
        ("--report", report, run.report),
    ):
        try:
            write_files([(file, write)], quiet=quiet)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint=option) from error


def _find(machine: str, workload: str, target: str, settings: dict[str, str], *, as_json: bool, quiet: bool) -> None:
    """Find a value and print it; exit code 3 if no value meets the expectations."""
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.studies.bisection import find

    with print_errors(), progress(shown=not quiet and sys.stderr.isatty(), unit="runs") as shown:
        answer = find(machine, workload, target, set=settings, progress=shown)
    if as_json or not quiet:
        click.echo(document(answer.to_json()) if as_json else printed(str(answer)), nl=False)
    if answer.value is None:
        click.get_current_context().exit(EXIT_VIOLATED)


def _is_alike(run: Run, machine: str, workload: str, settings: dict[str, str]) -> bool:
    """Simulate all ranks, print the differences from the folded run, and return whether there are none."""
    from hwsim.api import simulated
    from hwsim.cli.errors import print_errors
    from hwsim.results.differences import differences, replicas_differ

    graph = run.timeline.flat.graph
    replicas = [training.replicas for training in run.simulated.flat.graph.trainings if training.replicas > 1]
    if graph.alike is None:
        click.echo("fold check: nothing is folded" + (f"; {graph.unfolded}" if graph.unfolded else ""), err=True)
        return True
    with print_errors():
        unfolded = simulated(machine, workload, set=settings, fold="never")
    lines = list((replicas_differ if replicas else differences)(run.timeline, unfolded.timeline))
    equal = not lines
    if equal:
        ranks = ", ".join(f"{replica:,} replicas" for replica in replicas) if replicas else f"{run.ranks:,} ranks"
        lines = [f"{len(unfolded.timeline):,} ops of {ranks} are those of the {len(run.timeline):,} simulated"]
    for line in lines:
        click.echo(f"fold check: {line}", err=True)
    return equal
