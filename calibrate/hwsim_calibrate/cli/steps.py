"""What the subcommands of `hwsim calibrate` do: measure, fit, validate, write."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli import EXIT_INTERRUPTED, EXIT_MISTAKE

if TYPE_CHECKING:
    from hwsim_calibrate.case import Case
    from hwsim_calibrate.fit import Fitted
    from hwsim_calibrate.session import Plan
    from hwsim_calibrate.store import Measurements
    from hwsim_calibrate.validate import Report

EXIT_TERMINATED: Final = 143  # as a shell says it of a process that SIGTERM ended
AFTER: Final = 2.0  # seconds before progress is shown
VALIDATION: Final = 45.0  # seconds of timing programs


class Ended(KeyboardInterrupt):
    """Somebody asked for the end: `code` is what the process ends with."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM end what is inside, once: asked again while that is put away, nobody hears it."""
    asked = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: EXIT_TERMINATED}
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        for each in asked:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(asked[signal.Signals(number)])

    before = {each: signal.signal(each, end) for each in asked}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, signal.SIG_DFL if handler is None else handler)


def refuse_no_folder(output: Path | None) -> None:
    """Better said before two minutes of measuring than after."""
    if output is None:
        return
    if not output.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")
    target = output.resolve()
    if target.exists() and not target.is_file():
        return
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:  # what a folder says of itself is not all there is to know: of /proc, of a disk that is read only
        beside.open("xb").close()
        beside.unlink()
    except OSError as error:
        raise click.BadParameter(f"'{output}' cannot be written: {error.strerror}", param_hint="--output") from None


def refuse_nothing(suites: tuple[str, ...], more: Sequence[Case], workload: str | None, left: Mapping[str, str]) -> None:
    """Nothing that could be timed: say so instead of timing everything else."""
    from hwsim_calibrate.suites import SUITES, missing

    for reason, names in _by_reason(left).items():
        count = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        click.echo(f"not measured: {names[0]}{count}: {reason}", err=True)
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


def _by_reason(left: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in left.items():
        found.setdefault(reason, []).append(name)
    return found


def measured(
    path: Path | None,
    suites: tuple[str, ...],
    budget: float,
    workload: str | None,
    seed: int,
    folder: Path | None,
) -> Measurements:
    """Measure what the options say; an interruption leaves what is known in the file."""
    from hwsim.cli.errors import in_words
    from hwsim_calibrate.demanded import cases_for
    from hwsim_calibrate.session import Plan, measure

    with in_words():
        more, left = cases_for(workload) if workload else ((), {})
        refuse_nothing(suites, more, workload, left)
        plan = Plan(suites, more, needed=bool(workload), budget=budget, seed=seed, folder=str(folder) if folder else None)
        with interruptible():
            try:
                with _progress(plan) as report:
                    return measure(plan, path, report=report)
            except KeyboardInterrupt as end:
                kept = path is not None and path.exists()
                known = f"; what is measured is in {path}, and the same command goes on from there" if kept else ""
                click.echo(f"interrupted{known}", err=True)
                click.get_current_context().exit(end.code if isinstance(end, Ended) else EXIT_INTERRUPTED)
                raise


def _progress(plan: Plan) -> AbstractContextManager[Any]:
    from hwsim.cli.progress import progress

    @contextmanager
    def shown() -> Iterator[Any]:
        with progress(shown=sys.stderr.isatty(), unit="seconds", after=AFTER) as tell:
            total = round(plan.budget)
            yield None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)

    return shown()


def merged(files: tuple[str, ...]) -> Measurements:
    """One after another; of a case that is in several, the last."""
    from hwsim.cli.errors import in_words
    from hwsim_calibrate.store import load

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
    from hwsim.cli.errors import in_words
    from hwsim_calibrate import text
    from hwsim_calibrate.fit import fit

    with in_words():
        if validated:
            machine, report = reported(found, name, seed, VALIDATION)
            click.echo(text.validated(report), nl=False)
        else:
            machine = fit(found, name=name, seed=seed)
    written(machine.yaml(), output)


def tabled(tool: str, table: Path, output: Path | None) -> None:
    """A part from what another tool printed."""
    from hwsim.cli.errors import in_words
    from hwsim_calibrate.fit import tables

    read = {"--nccl-tests": tables.nccl_tests, "--fio": tables.fio, "--osu": tables.osu}[tool]
    with in_words():
        part = read(table.read_text("utf-8", errors="replace"))
    written(part.yaml(), output)


def written(text: str, output: Path | None) -> None:
    """To the file, or else to the terminal."""
    from hwsim.views.kit.writing import write

    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write(output, [text.encode()])}", err=True)


def reported(found: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """What was fitted and how far it is off; a budget of 0 times no programs."""
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.validate import PROGRAMS
    from hwsim_calibrate.validate import validate as validation

    machine = fit(found, name=name, seed=seed)
    return machine, validation(machine, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)
