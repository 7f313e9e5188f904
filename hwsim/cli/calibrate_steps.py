"""What the subcommands of `hwsim calibrate` do: measure, fit, validate, write."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hwsim.calibration.fit import Fitted
    from hwsim.calibration.session import Plan
    from hwsim.calibration.store import Measurements
    from hwsim.calibration.validate import Report

AFTER: Final = 2.0  # seconds before progress is shown
VALIDATION: Final = 45.0  # seconds of timing programs


def refuse_no_folder(output: Path | None) -> None:
    """Better said before two minutes of measuring than after."""
    if output is not None and not output.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")


def measured(
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


def _progress(plan: Plan) -> AbstractContextManager[Any]:
    from contextlib import contextmanager

    from hwsim.cli.progress import progress

    @contextmanager
    def shown() -> Iterator[Any]:
        with progress(shown=sys.stderr.isatty(), what="seconds", after=AFTER) as tell:
            total = round(plan.budget)
            yield None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)

    return shown()


def merged(files: tuple[str, ...]) -> Measurements:
    """One after another; of a case that is in several, the last."""
    from hwsim.calibration.store import load
    from hwsim.cli.errors import in_words

    with in_words():
        first, *others = [load(each) for each in files]
        for each in others:
            first = first.with_rows(each.rows)
    return first


def stem(path: str | Path) -> str:
    """What a machine is called after its file."""
    return Path(path).name.partition(".")[0]


def fitted(found: Measurements, output: Path | None, name: str, seed: int, *, validated: bool) -> None:
    """Fit, write, and say how far off it is."""
    from hwsim.calibration import text
    from hwsim.calibration.fit import fit
    from hwsim.cli.errors import in_words

    with in_words():
        if validated:
            machine, report = reported(found, name, seed, VALIDATION)
            click.echo(text.validated(report), nl=False)
        else:
            machine = fit(found, name=name, seed=seed)
    written(machine.yaml(), output)


def tabled(tool: str, table: Path, output: Path | None) -> None:
    """A part from what another tool printed."""
    from hwsim.calibration.fit import tables
    from hwsim.cli.errors import in_words

    read = {"--nccl-tests": tables.nccl_tests, "--fio": tables.fio, "--osu": tables.osu}[tool]
    with in_words():
        part = read(table.read_text("utf-8", errors="replace"))
    written(part.yaml(), output)


def written(text: str, output: Path | None) -> None:
    """To the file, or else to the terminal."""
    from hwsim.reports.writing import write

    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write(output, [text.encode()])}", err=True)


def reported(found: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """What was fitted and how far it is off; a budget of 0 times no programs."""
    from hwsim.calibration.fit import fit
    from hwsim.calibration.validate import PROGRAMS
    from hwsim.calibration.validate import validate as validation

    machine = fit(found, name=name, seed=seed)
    return machine, validation(machine, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)
