"""`hwsim calibrate`: this machine as a file, from measurements."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from hwsim.cli import EXIT_INTERRUPTED
from hwsim.cli.arguments import WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwsim.calibration.fit import Fitted
    from hwsim.calibration.session import Plan
    from hwsim.calibration.store import Measurements
    from hwsim.calibration.validate import Report

FILE: Final = click.Path(path_type=Path, dir_okay=False)
FOLDER: Final = click.Path(path_type=Path, file_okay=False, exists=True)
AFTER: Final = 2.0  # seconds before progress is shown
VALIDATION: Final = 45.0  # seconds of timing programs
F = TypeVar("F", bound=Callable[..., Any])


@click.group("calibrate")
def command() -> None:
    """Turn this computer into a machine file: measure it, fit the parameters, say how far predictions are off.

    Nothing needs root or a compiler. `run` does all of it in less than three minutes.
    """


def measuring_options(function: F) -> F:
    """The options of whatever measures."""
    for option in (
        click.option("--folder", type=FOLDER, metavar="FOLDER", help="Where `storage` makes its file."),
        click.option("--seed", type=int, default=0, show_default=True, help="Of the order in which cases are measured."),
        click.option("--for", "workload", type=WORKLOAD, metavar="WORKLOAD",
                     help="Measure exactly the ops of this workload, instead of all suites or beside those of --suite."),
        click.option("--budget", type=click.FloatRange(min=1), metavar="SECONDS", help="How long to measure."),
        click.option("--suite", "suites", multiple=True, metavar="NAME",
                     help="kernels, allocation, memory, threads, storage, network, ipc or gpu; several add up (default: all)."),
    ):  # fmt: skip
        function = option(function)
    return function


@command.command("run")
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="The machine file to write, such as here.yaml.")
@measuring_options
@click.option("--fresh", is_flag=True, help="Measure anew, whatever an earlier run has left.")
def run(
    output: Path, suites: tuple[str, ...], budget: float | None, workload: str | None, seed: int, folder: Path | None, fresh: bool
) -> None:
    """Measure, fit and validate: all of it.

    The measurements go beside the machine file, into FILE.measurements.json.gz without its .yaml; a run that was
    interrupted goes on from there.
    """
    from hwsim.calibration.session import RUN_BUDGET

    store = output.with_name(output.name.removesuffix(".yaml") + ".measurements.json.gz")
    refuse_no_folder(output)
    if fresh:
        store.unlink(missing_ok=True)
    found = _measured(store, suites, RUN_BUDGET if budget is None else budget, workload, seed, folder, beside=True)
    _fitted(found, output, output.stem, seed, validated=True)


@command.command("measure")
@click.option("-o", "--output", type=FILE, metavar="FILE",
              help="Keep the measurements: m.json or m.json.gz. A file that is there is gone on from.")  # fmt: skip
@measuring_options
@click.option("--cases", is_flag=True, help="Print a line for each case.")
def measure(
    output: Path | None,
    suites: tuple[str, ...],
    budget: float | None,
    workload: str | None,
    seed: int,
    folder: Path | None,
    cases: bool,
) -> None:
    """Time kernels, memory, threads, files, networks and a GPU, in rounds spread over the whole run."""
    from hwsim.calibration import text
    from hwsim.calibration.session import BUDGET

    refuse_no_folder(output)
    found = _measured(output, suites, BUDGET if budget is None else budget, workload, seed, folder)
    click.echo(text.measured(found, every=cases), nl=False)


@command.command("fit")
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the machine file (default: print it).")
@click.option("--name", metavar="NAME", help="What the machine is called (default: as the file).")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resampling behind the intervals.")
def fit(files: tuple[str, ...], output: Path | None, name: str | None, seed: int) -> None:
    """Fit the parameters of a machine to FILES of measurements; rows of later files replace those of earlier ones.

    A file is a path, or the name of measurements that come with hwsim.
    """
    refuse_no_folder(output)
    _fitted(_merged(files), output, name or _stem(output or files[0]), seed, validated=False)


@command.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--programs/--no-programs", default=True, help="Also time small programs here that no fit has seen (default), or not."
)
@click.option("--budget", type=click.FloatRange(min=1), default=VALIDATION, show_default=True, metavar="SECONDS",
              help="How long to time programs.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of the resampling behind the intervals.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: validation/1).")
def validate(files: tuple[str, ...], programs: bool, budget: float, seed: int, as_json: bool) -> None:
    """How far predictions are off that come from FILES of measurements: at sizes held out, and of programs never seen."""
    import json

    from hwsim.calibration import text
    from hwsim.calibration.environment import differences, fingerprint
    from hwsim.cli.errors import in_words

    found = _merged(files)
    elsewhere = differences(found.environment, fingerprint()) if programs else ()
    if elsewhere:
        click.echo(f"no programs are timed: {elsewhere[0]} (as --no-programs)", err=True)
    with in_words():
        report = _report(found, _stem(files[0]), seed, budget if programs and not elsewhere else 0.0)[1]
    click.echo(json.dumps(report.to_json(), indent=1) + "\n" if as_json else text.validated(report), nl=False)


@command.command("diff")
@click.argument("before")
@click.argument("after")
@click.option("--all", "every", is_flag=True, help="Print every number.")
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON (hwsim: difference/1).")
def diff(before: str, after: str, every: bool, as_json: bool) -> None:
    """What changed between two files of measurements, or between two machine files: number by number."""
    import json

    from hwsim.calibration import text
    from hwsim.calibration.diff import diff as compare
    from hwsim.cli.errors import in_words

    with in_words():
        found = compare(before, after)
    click.echo(
        json.dumps(found.to_json(), indent=1, allow_nan=False) if as_json else text.changed(found, every=every).rstrip("\n")
    )


@command.command("show")
@click.argument("file")
@click.option("--cases", is_flag=True, help="Print a line for each case.")
def show(file: str, cases: bool) -> None:
    """What a file of measurements holds, what disturbed it, and what is missing."""
    from hwsim.calibration import text
    from hwsim.calibration.store import load
    from hwsim.cli.errors import in_words

    with in_words():
        found = load(file)
    click.echo(text.measured(found, every=cases), nl=False)


@command.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print the fingerprint of this machine and all findings as JSON.")
def doctor(as_json: bool) -> None:
    """What makes this machine noisy or unusual for measuring, and what would help. It needs no root."""
    import json
    from dataclasses import asdict

    from hwsim.calibration import text
    from hwsim.calibration.doctor import examine
    from hwsim.calibration.environment import fingerprint

    here = fingerprint()
    found = examine(here)
    if as_json:
        click.echo(json.dumps({"environment": here, "findings": [asdict(each) for each in found]}, indent=1))
    else:
        click.echo(text.examined(found), nl=False)


def refuse_no_folder(output: Path | None) -> None:
    """Better said before two minutes of measuring than after."""
    if output is not None and not output.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")


def _measured(
    path: Path | None,
    suites: tuple[str, ...],
    budget: float,
    workload: str | None,
    seed: int,
    folder: Path | None,
    *,
    beside: bool = False,
) -> Measurements:
    """Measure what the options say; an interruption leaves what is known in the file."""
    from hwsim.calibration.demanded import cases_for
    from hwsim.calibration.session import Plan, measure
    from hwsim.calibration.suites import SUITES
    from hwsim.cli.errors import in_words

    with in_words():
        more, left = cases_for(workload) if workload else ((), {})
        for op, reason in left.items():
            click.echo(f"not measured: {op}: {reason}", err=True)
        chosen = tuple(SUITES) if beside and workload and not suites else suites
        plan = Plan(chosen, more, budget, seed, folder=str(folder) if folder else None)
        try:
            with _progress(plan) as report:
                return measure(plan, path, report=report)
        except KeyboardInterrupt:
            known = f"; what is measured is in {path}, and the same command goes on from there" if path else ""
            click.echo(f"interrupted{known}", err=True)
            click.get_current_context().exit(EXIT_INTERRUPTED)
            raise


def _progress(plan: Plan) -> Any:
    from contextlib import contextmanager

    from hwsim.cli.progress import progress

    @contextmanager
    def shown() -> Iterator[Any]:
        with progress(shown=sys.stderr.isatty(), what="seconds", after=AFTER) as tell:
            total = round(plan.budget)
            yield None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)

    return shown()


def _merged(files: tuple[str, ...]) -> Measurements:
    """One after another; of a case that is in several, the last."""
    from hwsim.calibration.store import load
    from hwsim.cli.errors import in_words

    with in_words():
        first, *others = [load(each) for each in files]
        for each in others:
            first = first.with_rows(each.rows)
    return first


def _stem(path: str | Path) -> str:
    return Path(path).name.partition(".")[0]


def _fitted(found: Measurements, output: Path | None, name: str, seed: int, *, validated: bool) -> None:
    """Fit, write, and say how far off it is."""
    from hwsim.calibration import text
    from hwsim.calibration.fit import fit
    from hwsim.cli.errors import in_words
    from hwsim.reports.writing import write

    with in_words():
        if validated:
            fitted, report = _report(found, name, seed, VALIDATION)
            click.echo(text.validated(report), nl=False)
        else:
            fitted = fit(found, name=name, seed=seed)
    if output is None:
        click.echo(fitted.yaml(), nl=False)
    else:
        click.echo(f"wrote {write(output, [fitted.yaml().encode()])}", err=True)


def _report(found: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """What was fitted and how far it is off; a budget of 0 times no programs."""
    from hwsim.calibration.fit import fit
    from hwsim.calibration.validate import PROGRAMS
    from hwsim.calibration.validate import validate as validation

    fitted = fit(found, name=name, seed=seed)
    return fitted, validation(fitted, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)
