"""`hwsim simulate`: run a workload on a machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from hwsim.cli import EXIT_VIOLATED
from hwsim.cli.arguments import MACHINE, WORKLOAD, once, settings_option

if TYPE_CHECKING:
    from hwsim.api import Run

_FIGURES: Final[dict[str, Literal["gantt", "latency", "memory", "queues", "serving"]]] = {
    "gantt": "gantt",
    "latency": "latency",
    "memory": "memory",
    "queues": "queues",
    "serving": "serving",
}


@click.command("simulate")
@click.argument("machine", type=MACHINE)
@click.argument("workload", type=WORKLOAD)
@settings_option
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: result/1).")
@click.option("--ops", is_flag=True, help="With --json: a row per op.")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", help="With --ops: those of rank N, simulated or not.")
@click.option("--fold/--no-fold", default=None,
              help="Simulate equal ranks once, whatever their number, or never (else: if they are many).")  # fmt: skip
@click.option("--fold-check", is_flag=True, help="Simulate twice, once with all ranks, and compare every op of every rank.")
@click.option("--requests", "requests", multiple=True, metavar="PART",
              help="Simulate this part request by request; can be repeated.")  # fmt: skip
@click.option("--steady", is_flag=True,
              help="Simulate long loops only until they repeat to the femtosecond, and write out the rest.")  # fmt: skip
@click.option("--engine", type=click.Choice(["auto", "simpy"]), default="auto",
              help="simpy: play every op as a SimPy process, slowly, with the same times to the femtosecond.")  # fmt: skip
@click.option("--trace", multiple=True, callback=once, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the timeline for ui.perfetto.dev (.json or .json.gz).")  # fmt: skip
@click.option("--plot", multiple=True, callback=once,
              type=(click.Choice(sorted(_FIGURES)), click.Path(path_type=Path, dir_okay=False)),
              metavar="gantt|latency|memory|queues|serving FILE", help="Write a figure (.png, .svg or .pdf).")  # fmt: skip
@click.option("--expect/--no-expect", default=None, help="Check what the workload expects always, or never.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but mistakes and warnings.")
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
    steady: bool,
    engine: Literal["auto", "simpy"],
    trace: Path | None,
    plot: tuple[str, Path] | None,
    expect: bool | None,
    quiet: bool,
) -> None:
    """Run WORKLOAD on MACHINE: how long it takes, and what limits it.

    Both are files or names of the library; one of them may be - (standard input).  What the
    workload expects is checked on the machine it names, with nothing set; if it is violated,
    or a device has too little memory for the values of the run, the exit code is 3.
    """
    if machine == workload == "-":
        raise click.UsageError("only one of the two files can be standard input")
    if ops and not as_json:
        raise click.UsageError("--ops goes with --json")
    if rank is not None and not ops:
        raise click.UsageError("--rank goes with --ops")
    if fold_check and (fold is False or steady or requests):
        raise click.UsageError("--fold-check does not go with --no-fold, --steady and --requests")
    _refuse_unwritable(trace, plot)
    from hwsim import api
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress

    violated = False
    with in_words(), progress(shown=not quiet and sys.stderr.isatty()) as report:
        try:
            run = api.simulate(
                machine,
                workload,
                set=settings,
                expect="auto" if expect is None else expect,
                requests=requests,
                latency=plot is not None and plot[0] == "latency",
                steady=steady,
                fold="always" if fold or fold_check else "auto" if fold is None else "never",
                progress=report,
                engine=engine,
            )
        except api.ExpectationFailed as failed:
            run, violated = failed.run, True
    if fold_check:
        violated |= not _is_alike(run, machine, workload, settings)
    if rank is not None and run.trainings and not run.jobs:
        said = "a training has no ranks to ask for: an op of a team stands for all its GPUs, and those of one copy that is "
        raise click.BadParameter(f"{said}simulated for all copies; --no-fold simulates every copy", param_hint="--rank")
    if rank is not None and rank >= run.ranks:
        raise click.BadParameter(f"there is no rank {rank}: they are 0 to {run.ranks - 1}", param_hint="--rank")
    _write_files(run, trace, plot, quiet=quiet)
    if not quiet:
        from hwsim.views.summary import document as json
        from hwsim.views.summary import say as summary

        click.echo(json.document(run, ops=ops, rank=rank) if as_json else summary.summary(run), nl=False)
    if quiet:
        for warning in run.warnings:
            click.echo(f"warning: {warning}", err=True)
    if violated:
        for memory in run.memory:
            if not memory.fits:
                click.echo(f"out of memory: {memory.verdict()}", err=True)
        for verdict in run.verdicts:
            if verdict.status == "violated":
                click.echo(f"expected {verdict.quantity} {verdict.wanted}: {verdict.reason}", err=True)
        click.get_current_context().exit(EXIT_VIOLATED)


def _is_alike(run: Run, machine: str, workload: str, settings: dict[str, str]) -> bool:
    """Say whether the run with all its ranks is the same."""
    from hwsim import api
    from hwsim.cli.errors import in_words
    from hwsim.results.alike import copies_differ, differences

    graph = run.timeline.flat.graph
    told = [each for each in run.trainings if each.told > 1]
    if graph.alike is None and not told:
        click.echo("fold check: nothing is folded" + (f"; {graph.unfolded}" if graph.unfolded else ""), err=True)
        return True
    with in_words():
        try:
            whole = api.simulate(machine, workload, set=settings, expect=False, fold="never")
        except api.ExpectationFailed as failed:
            whole = failed.run
    found = list((copies_differ if told else differences)(run.timeline, whole.timeline))
    for each in found:
        click.echo(f"fold check: {each}", err=True)
    simulated, all_ops = len(run.timeline), len(whole.timeline)
    if not found and told:
        copies = ", ".join(f"{each.told:,} copies of the model" for each in told)
        click.echo(f"fold check: {all_ops:,} ops of {copies} are those of the {simulated:,} simulated", err=True)
    elif not found:
        click.echo(f"fold check: {all_ops:,} ops of {run.ranks:,} ranks are those of the {simulated:,} simulated", err=True)
    return not found


def _refuse_unwritable(trace: Path | None, plot: tuple[str, Path] | None) -> None:
    """Better said before a long run than after it."""
    for option, path in (("--trace", trace), ("--plot", plot[1] if plot else None)):
        if path is not None and not path.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint=option)
    if trace is not None and not trace.name.endswith((".json", ".json.gz")):
        raise click.BadParameter(f"a trace is written as .json or .json.gz, not as '{trace.name}'", param_hint="--trace")
    if plot is not None and plot[1].suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise click.BadParameter(f"a figure is written as .png, .svg or .pdf, not as '{plot[1].name}'", param_hint="--plot")


def _write_files(run: Run, trace: Path | None, plot: tuple[str, Path] | None, *, quiet: bool) -> None:
    written = []
    if trace is not None:
        written.append(run.trace(trace))
    if plot is not None:
        if plot[0] == "memory" and not run.memory:
            raise click.BadParameter("no value of the run has a known size: say it as writes: {y: 2 MB}", param_hint="--plot")
        if plot[0] == "queues" and not run.timeline.flat.graph.lines:
            raise click.BadParameter("the workload has no pipeline, between whose stages batches could lie", param_hint="--plot")
        if plot[0] == "serving" and not run.serving:
            raise click.BadParameter("the workload has no `infer`: no service answers requests", param_hint="--plot")
        if plot[0] == "latency" and not run.curves:
            raise click.BadParameter("no part is simulated request by request: name one with --requests", param_hint="--plot")
        written.append(run.plot(_FIGURES[plot[0]], plot[1]))
    for path in written if not quiet else ():
        click.echo(f"wrote {path}", err=True)
