"""`hwsim calibrate`: this machine as a file, from measurements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from hwsim.cli.arguments import FILE, WORKLOAD, refuse_replacing, refuse_unwritable_outputs
from hwsim_calibrate.cli import steps

F = TypeVar("F", bound=Callable[..., Any])


@click.group("calibrate")
def command() -> None:
    """Turn this computer into a machine file: measure it, fit the parameters, say how far predictions are off.

    Nothing needs root or a compiler. `run` does all of it in less than three minutes.
    """


def measuring_options(function: F) -> F:
    """The options of commands that measure."""
    for option in (
        click.option("--gpu", type=click.IntRange(min=0), default=0, show_default=True, metavar="NUMBER",
                     help="The GPU that `gpu` measures, counted from 0."),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of the order in which cases are measured."),
        click.option("--for", "workload", type=WORKLOAD, metavar="WORKLOAD",
                     help="Measure the ops of this workload and the few cases that a machine file needs, "
                          "instead of all suites or in addition to those of --suite."),
        click.option("--budget", type=click.FloatRange(min=1), metavar="SECONDS", help="How long to measure."),
        click.option("--suite", "suites", multiple=True, metavar="NAME",
                     help="kernels, allocation, memory or gpu; several add up (default: all)."),
    ):  # fmt: skip
        function = option(function)
    return function


@command.command("run")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="The machine file to write, such as here.yaml.")
@measuring_options
@click.option("--fresh", is_flag=True, help="Measure anew instead of going on from an earlier run.")
def run(output: Path, budget: float | None, seed: int, fresh: bool, **options: Any) -> None:
    """Measure, fit and validate: all of it.

    The measurements go next to the machine file, into FILE.measurements.json.gz without its .yaml; a run that was
    interrupted goes on from there.
    """
    from hwsim_calibrate import text
    from hwsim_calibrate.session import RUN_BUDGET

    store = output.with_name(output.name.removesuffix(".yaml") + ".measurements.json.gz")
    refuse_unwritable_outputs(output, store)
    if not store.exists():
        refuse_replacing(output, "fitted file", steps.is_fitted)
    if fresh:
        store.unlink(missing_ok=True)
    elif store.exists():
        click.echo(f"going on from {store}; --fresh measures anew", err=True)
    measurements = steps.measured(store, budget=RUN_BUDGET if budget is None else budget, seed=seed, **options)
    machine, report = steps.reported(measurements, output.stem, seed, steps.VALIDATION)
    click.echo(text.validated(report), nl=False)
    steps.written(machine.yaml(), output)


@command.command("measure")
@click.option("-o", "--output", type=FILE, metavar="FILE",
              help="Keep the measurements: m.json or m.json.gz. A file that exists is gone on from.")  # fmt: skip
@measuring_options
@click.option("--cases", is_flag=True, help="Print a line for each case.")
def measure(output: Path | None, budget: float | None, cases: bool, **options: Any) -> None:
    """Time kernels, memory and a GPU, in rounds spread over the whole run."""
    from hwsim_calibrate import text
    from hwsim_calibrate.session import BUDGET

    refuse_unwritable_outputs(output)
    measurements = steps.measured(output, budget=BUDGET if budget is None else budget, **options)
    click.echo(text.measured(measurements, every=cases), nl=False)


@command.command("fit")
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the machine file (default: print it).")
@click.option("--name", metavar="NAME", help="Name of the machine (default: the file's).")
def fit(files: tuple[str, ...], output: Path | None, name: str | None) -> None:
    """Fit the parameters of a machine to FILES of measurements; a row of a later file replaces the same row of an earlier one.

    A file is a path, or the name of measurements that come with hwsim. Logs of other benchmarks become parts by `hwsim import`.
    """
    from hwsim.cli.errors import print_errors

    refuse_unwritable_outputs(output)
    refuse_replacing(output, "fitted file", steps.is_fitted)
    with print_errors():
        import hwsim_calibrate.fit as fitting

        text = fitting.fit(steps.merged(files), name=name or _stem(output or files[0])).yaml()
    steps.written(text, output)


def _stem(path: str | Path) -> str:
    return Path(path).name.partition(".")[0]


@command.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--programs/--no-programs", default=True, help="Also time small programs here that no fit has seen (default), or not."
)
@click.option("--budget", type=click.FloatRange(min=1), default=steps.VALIDATION, show_default=True, metavar="SECONDS",
              help="How long to time programs.")  # fmt: skip
def validate(files: tuple[str, ...], programs: bool, budget: float) -> None:
    """Errors of predictions from FILES of measurements: at sizes held out, and of programs that no fit has seen."""
    from hwsim_calibrate import text
    from hwsim_calibrate.environment import differences, fingerprint

    measurements = steps.merged(files)
    elsewhere = differences(measurements.environment, fingerprint()) if programs else ()
    if elsewhere:
        click.echo(f"no programs are timed: {elsewhere[0]} (as --no-programs)", err=True)
    report = steps.reported(measurements, _stem(files[0]), 0, budget if programs and not elsewhere else 0.0)[1]
    click.echo(text.validated(report), nl=False)


@command.command("show")
@click.argument("file")
@click.option("--cases", is_flag=True, help="Print a line for each case.")
def show(file: str, cases: bool) -> None:
    """Content of a file of measurements, what disturbed it, and what is missing."""
    from hwsim_calibrate import text

    click.echo(text.measured(steps.merged((file,)), every=cases), nl=False)


@command.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the fingerprint of this machine and all findings as JSON.")
def doctor(as_json: bool) -> None:
    """Noise and unusual settings of this machine for measuring, and remedies. It needs no root."""
    from dataclasses import asdict

    from hwsim_calibrate import text
    from hwsim_calibrate.doctor import examine, look

    seen = look()
    findings = examine(seen)
    if as_json:
        click.echo(json.dumps({"environment": seen.here, "findings": [asdict(finding) for finding in findings]}, indent=1))
    else:
        click.echo(text.examined(findings), nl=False)
