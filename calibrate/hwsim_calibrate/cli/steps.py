"""Steps that several subcommands of `hwsim calibrate` share: measuring with progress, fitting, writing files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli import EXIT_MISTAKE

if TYPE_CHECKING:
    from hwsim_calibrate.case import Case
    from hwsim_calibrate.fit import Fitted
    from hwsim_calibrate.store import Measurements
    from hwsim_calibrate.validate import Report

AFTER: Final = 2.0  # seconds until progress is shown
VALIDATION: Final = 25.0  # seconds for timing programs


def is_fitted(path: Path) -> bool:
    """Return whether a fit wrote the file: its numbers have `points`, or its name says that it was measured."""
    text = path.read_text("utf-8")
    name = text.partition("\nname: ")[2].partition("\n")[0]
    return text.startswith("hwsim: ") and ("points:" in text or " measured " in name)


def require_cases(suites: tuple[str, ...], more: Sequence[Case], workload: str | None, left: Mapping[str, str]) -> None:
    """Exit if none of the named suites and ops can be timed.

    Args:
        suites: names of the suites to measure.
        more: the cases of the workload.
        workload: path or name of the workload, if any.
        left: op of the workload -> why it has no case.
    """
    from hwsim_calibrate.suites import SUITES, missing

    for reason in dict.fromkeys(left.values()):
        first, *others = [name for name, why in left.items() if why == reason]
        count = f" (and {len(others)} more)" if others else ""
        click.echo(f"not measured: {first}{count}: {reason}", err=True)
    reasons = {name: missing(name) for name in suites if name in SUITES}
    if workload and not more and not suites:
        click.echo(f"{workload} contains no op that can be timed", err=True)
    elif suites and not more and len(reasons) == len(suites) and all(reasons.values()):
        for name, reason in reasons.items():
            click.echo(f"the suite {name} cannot be measured: {reason}", err=True)
    else:
        return
    click.echo("nothing was measured", err=True)
    click.get_current_context().exit(EXIT_MISTAKE)


def measure(path: Path | None, suites: tuple[str, ...], budget: float, workload: str | None, seed: int, gpu: int) -> Measurements:
    """Measure, with progress on a terminal. An interrupted run leaves its measurements in the file."""
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.cli.studies import ended_by_signals
    from hwsim_calibrate.session import Plan
    from hwsim_calibrate.session import measure as measure_plan
    from hwsim_calibrate.workload_cases import cases_for

    with print_errors():
        more, left = cases_for(workload) if workload else ((), {})
        require_cases(suites, more, workload, left)
        plan = Plan(suites, more, needed=bool(workload), budget=budget, seed=seed, gpu=gpu)
        total = round(budget)
        try:
            with ended_by_signals(), progress(shown=sys.stderr.isatty(), unit="seconds", after=AFTER) as tell:
                report = None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)
                return measure_plan(plan, path, report=report)
        except KeyboardInterrupt:
            if path is not None and path.exists():
                click.echo(f"the measurements so far are in {path}; the same command resumes from them", err=True)
            raise


def load_merged(files: tuple[str, ...]) -> Measurements:
    """Load the rows of all files. If several files contain the same case, the last one is used."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.store import load

    with print_errors():
        first, *others = [load(file) for file in files]
        for other in others:
            first = first.with_rows(other.rows)
    return first


def fit_and_validate(measurements: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """Fit a machine and report its errors; with a budget of 0 s, no programs are timed."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.composites import PROGRAMS
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.validate import validate

    with print_errors():
        machine = fit(measurements, name=name, seed=seed)
        return machine, validate(machine, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)


def write_or_print(text: str, output: Path | None) -> None:
    """Write the text to a file, or print it if there is none."""
    from hwsim.views.kit.file_output import write

    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write(output, [text.encode()])}", err=True)
