"""`hwsim calibrate`: commands that measure this computer and fit a machine file to the measurements."""

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
    """Measure this computer, fit a machine file to the measurements, and report the errors of its predictions.

    Root is not required. `run` performs all steps in less than three minutes.
    """


def measuring_options(function: F) -> F:
    """Add the options of all commands that measure."""
    for option in (
        click.option("--gpu", type=click.IntRange(min=0), default=0, show_default=True, metavar="NUMBER",
                     help="Index of the GPU that the suite `gpu` measures, from 0."),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random order of the cases."),
        click.option("--for", "workload", type=WORKLOAD, metavar="WORKLOAD",
                     help="Measure the ops of this workload and the few cases that every machine file requires, "
                          "instead of all suites. Suites of --suite are measured in addition."),
        click.option("--budget", type=click.FloatRange(min=1), metavar="SECONDS",
                     help="Time limit for measuring (default: 80 s for `run`, 120 s for `measure`)."),
        click.option("--suite", "suites", multiple=True, metavar="NAME",
                     help="Suite to measure: kernels, allocation, memory or gpu. Repeatable (default: all)."),
    ):  # fmt: skip
        function = option(function)
    return function


@command.command("run")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="The machine file to write, such as here.yaml.")
@measuring_options
@click.option("--fresh", is_flag=True, help="Discard the measurements of an earlier run instead of resuming.")
def run(output: Path, budget: float | None, seed: int, fresh: bool, **options: Any) -> None:
    """Measure, fit and validate in one command.

    The measurements are saved next to the machine file: for here.yaml, in here.measurements.json.gz. An interrupted
    run resumes from that file.
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
        click.echo(f"resuming from {store}; `--fresh` starts over", err=True)
    measurements = steps.measure(store, budget=RUN_BUDGET if budget is None else budget, seed=seed, **options)
    machine, report = steps.fit_and_validate(measurements, output.stem, seed, steps.VALIDATION)
    click.echo(text.format_report(report), nl=False)
    steps.write_or_print(machine.yaml(), output)


@command.command("measure")
@click.option("-o", "--output", type=FILE, metavar="FILE",
              help="Save the measurements: m.json or m.json.gz. If the file exists, resume from it.")  # fmt: skip
@measuring_options
@click.option("--cases", is_flag=True, help="Print one line per case.")
def measure(output: Path | None, budget: float | None, cases: bool, **options: Any) -> None:
    """Time numpy kernels, memory and a GPU.

    Every case is timed in several rounds, which are spread over the whole run.
    """
    from hwsim_calibrate import text
    from hwsim_calibrate.session import BUDGET

    refuse_unwritable_outputs(output)
    measurements = steps.measure(output, budget=BUDGET if budget is None else budget, **options)
    click.echo(text.format_measurements(measurements, every=cases), nl=False)


@command.command("fit")
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the machine file (default: print it).")
@click.option("--name", metavar="NAME", help="Name of the machine (default: the name of the file).")
def fit(files: tuple[str, ...], output: Path | None, name: str | None) -> None:
    """Fit a machine file to FILES of measurements.

    A file is a path, or the name of measurements that are bundled with hwsim. If several files contain the same case,
    the last file is used. `hwsim import` converts logs of other benchmarks.
    """
    from hwsim.cli.errors import print_errors

    refuse_unwritable_outputs(output)
    refuse_replacing(output, "fitted file", steps.is_fitted)
    with print_errors():
        import hwsim_calibrate.fit as fitting

        text = fitting.fit(steps.load_merged(files), name=name or _stem(output or files[0])).yaml()
    steps.write_or_print(text, output)


def _stem(path: str | Path) -> str:
    return Path(path).name.partition(".")[0]


@command.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option("--programs/--no-programs", default=True, help="Time small programs that no fit has used (default), or skip them.")
@click.option("--budget", type=click.FloatRange(min=1), default=steps.VALIDATION, show_default=True, metavar="SECONDS",
              help="Time limit for the programs.")  # fmt: skip
def validate(files: tuple[str, ...], programs: bool, budget: float) -> None:
    """Report the prediction errors of a fit to FILES.

    The errors are taken at sizes that are held out of a second fit, and for small programs that no fit has used.
    """
    from hwsim_calibrate import text
    from hwsim_calibrate.environment import differences, fingerprint

    measurements = steps.load_merged(files)
    elsewhere = differences(measurements.environment, fingerprint()) if programs else ()
    if elsewhere:
        click.echo(f"programs are not timed, because the measurements are from another machine: {elsewhere[0]}", err=True)
    report = steps.fit_and_validate(measurements, _stem(files[0]), 0, budget if programs and not elsewhere else 0.0)[1]
    click.echo(text.format_report(report), nl=False)


@command.command("show")
@click.argument("file")
@click.option("--cases", is_flag=True, help="Print one line per case.")
def show(file: str, cases: bool) -> None:
    """Print a file of measurements.

    The output includes the disturbances, and the suites that were not measured.
    """
    from hwsim_calibrate import text

    click.echo(text.format_measurements(steps.load_merged((file,)), every=cases), nl=False)


@command.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the machine's fingerprint and all findings as JSON.")
def doctor(as_json: bool) -> None:
    """Report noise and unusual settings of this machine.

    Each finding has its effect on measurements and a remedy. Root is not required.
    """
    from dataclasses import asdict

    from hwsim_calibrate import text
    from hwsim_calibrate.doctor import examine, observe

    observation = observe()
    findings = examine(observation)
    if as_json:
        entries = [asdict(finding) for finding in findings]
        click.echo(json.dumps({"environment": observation.fingerprint, "findings": entries}, indent=1))
    else:
        click.echo(text.format_findings(findings), nl=False)
