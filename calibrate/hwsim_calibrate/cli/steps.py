"""Steps of the subcommands of `hwsim calibrate`: measuring with progress and interruptions, fitting, writing files."""

from __future__ import annotations

import secrets
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli import EXIT_INTERRUPTED, EXIT_MISTAKE

if TYPE_CHECKING:
    from hwsim_calibrate.case import Case
    from hwsim_calibrate.fit import Fitted
    from hwsim_calibrate.store import Measurements
    from hwsim_calibrate.validate import Report

ENDING: Final = {signal.SIGINT: EXIT_INTERRUPTED, signal.SIGTERM: 143}  # exit code by signal, as a shell reports it
AFTER: Final = 2.0  # seconds before progress is shown
VALIDATION: Final = 25.0  # seconds of timing programs


class Ended(KeyboardInterrupt):
    """A signal ends the run; `code` is the exit code of the process."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


@contextmanager
def interruptible() -> Iterator[None]:
    """End the block at the first SIGINT or SIGTERM, and ignore further ones until the process has ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: object) -> None:
        for ending in ENDING:
            signal.signal(ending, signal.SIG_IGN)
        raise Ended(ENDING[signal.Signals(number)])

    before = {ending: signal.signal(ending, end) for ending in ENDING}
    try:
        yield
    finally:
        for ending, handler in before.items():
            if signal.getsignal(ending) is not signal.SIG_IGN:
                signal.signal(ending, signal.SIG_DFL if handler is None else handler)


def refuse_unwritable(*outputs: Path | None) -> None:
    """Raise, before the work is done, if an output could not be written after it."""
    for output in outputs:
        if output is None:
            continue
        if not output.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")
        target = output.resolve()
        if target.exists() and not target.is_file():
            continue
        trial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:  # the folder's permissions are not enough to know: /proc, or a disk that is read only
            trial.open("xb").close()
            trial.unlink()
        except OSError as error:
            raise click.BadParameter(f"'{output}' cannot be written: {error.strerror}", param_hint="--output") from None


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
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim_calibrate.demanded import cases_for
    from hwsim_calibrate.session import Plan, measure

    with in_words():
        more, left = cases_for(workload) if workload else ((), {})
        refuse_nothing(suites, more, workload, left)
        plan = Plan(suites, more, needed=bool(workload), budget=budget, seed=seed, gpu=gpu)
        total = round(budget)
        with interruptible():
            try:
                with progress(shown=sys.stderr.isatty(), unit="seconds", after=AFTER) as tell:
                    report = None if tell is None else lambda now: tell(min(total, round(total - now.left)), total)
                    return measure(plan, path, report=report)
            except KeyboardInterrupt as end:
                kept = path is not None and path.exists()
                hint = f"; what is measured is in {path}, and the same command goes on from there" if kept else ""
                click.echo(f"interrupted{hint}", err=True)
                click.get_current_context().exit(end.code if isinstance(end, Ended) else EXIT_INTERRUPTED)
                raise


def merged(files: tuple[str, ...]) -> Measurements:
    """The rows of all files; of a case that is in several, the last."""
    from hwsim.cli.errors import in_words
    from hwsim_calibrate.store import load

    with in_words():
        first, *others = [load(each) for each in files]
        for each in others:
            first = first.with_rows(each.rows)
    return first


def reported(measurements: Measurements, name: str, seed: int, budget: float) -> tuple[Fitted, Report]:
    """Fit and validate; a budget of 0 times no programs."""
    from hwsim.cli.errors import in_words
    from hwsim_calibrate.composites import PROGRAMS
    from hwsim_calibrate.fit import fit
    from hwsim_calibrate.validate import validate

    with in_words():
        machine = fit(measurements, name=name, seed=seed)
        return machine, validate(machine, programs=PROGRAMS if budget else (), budget=budget or 1.0, seed=seed)


def written(text: str, output: Path | None) -> None:
    """Write to the file, or print without one."""
    from hwsim.views.kit.writing import write

    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write(output, [text.encode()])}", err=True)
