"""Steps of the subcommands of `hwsim calibrate`: measuring with progress and interruptions, fitting, writing files."""

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

AFTER: Final = 2.0  # seconds before progress is shown
VALIDATION: Final = 25.0  # seconds of timing programs


def is_fitted(path: Path) -> bool:
    """Whether a file is one that a fit wrote: each number with its points, or a workload named after what was measured."""
    text = path.read_text("utf-8")
    return text.startswith("hwsim: ") and ("points:" in text or ("\nname: as " in text and " measured " in text))


def refuse_nothing(suites: tuple[str, ...], more: Sequence[Case], workload: str | None, left: Mapping[str, str]) -> None:
    """Exit if nothing that was named can be timed, instead of timing everything else."""
    from hwsim_calibrate.suites import SUITES, missing

    for reason in dict.fromkeys(left.values()):
        first, *others = [name for name, why in left.items() if why == reason]
        count = f" (and {len(others)} more)" if others else ""
        click.echo(f"not measured: {first}{count}: {reason}", err=True)
    reasons = {name: missing(name) for name in suites if name in SUITES}
    if workload and not more and not suites:
        click.echo(f"there is no op in {workload} that can be timed", err=True)
    elif suites and not more and len(reasons) == len(suites) and all(reasons.values()):
        for name, reason in reasons.items():
            click.echo(f"the suite {name} cannot be measured: {reason}", err=True)
    else:
        return
    click.echo("nothing is measured", err=True)
    click.get_current_context().exit(EXIT_MISTAKE)


def measured(
    path: Path | None, suites: tuple[str, ...], budget: float, workload: str | None, seed: int, gpu: int
) -> Measurements:
    """Measure; an interruption leaves what is measured in the file."""
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.cli.studies import ended_by_signals
    from hwsim_calibrate.demanded import cases_for
    from hwsim_calibrate.session import Plan, measure

    with print_errors():
        more, left = cases_for(workload) if workload else ((), {})
        refuse_nothing(suites, more, workload, left)
        plan = Plan(suites, more, needed=bool(workload), budget=budget, seed=seed, gpu=gpu)
        total = round(budget)
        try:
            with ended_by_signals(), progress(shown=sys.stderr.isatty(), unit="seconds", after=AFTER) as tell:
                report = None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)
                return measure(plan, path, report=report)
        except KeyboardInterrupt:
            if path is not None and path.exists():
                click.echo(f"what is measured is in {path}, and the same command goes on from there", err=True)
            raise


def merged(files: tuple[str, ...]) -> Measurements:
    """The rows of all files; of a case that is in several, the last."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.store import load

    with print_errors():
        first, *others = [load(file) for file in files]
        for other in others:
            first = first.with_rows(other.rows)
    return first


def reported(measurements: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """Fit and validate; a budget of 0 times no programs."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.composites import PROGRAMS
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.validate import validate

    with print_errors():
        machine = fit(measurements, name=name, seed=seed)
        return machine, validate(machine, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)


def written(text: str, output: Path | None) -> None:
    """Write to the file, or print without one."""
    from hwsim.views.kit.file_output import write

    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write(output, [text.encode()])}", err=True)
