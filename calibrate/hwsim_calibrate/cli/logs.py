"""`hwsim calibrate fit --stream out.txt`: options and output of fits to benchmarks' logs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from hwsim_calibrate.logs import TOOLS, Ask, Result, fit_logs, read_log

F = TypeVar("F", bound=Callable[..., Any])
TABLE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


def log_options(function: F) -> F:
    """An option for every tool, and what a user says that logs do not."""
    for option in (
        click.option("--model", default="", metavar="NAME", help="Of a server's log: the model, by name or file."),
        click.option(
            "--sockets", type=click.IntRange(min=1), metavar="N", help="Of a cpu's log: sockets that were busy together."
        ),
        click.option("--part", metavar="NAME", help="The part, by name or file, that the numbers of the log go into."),
    ):
        function = option(function)
    for name, tool in reversed(TOOLS.items()):
        function = click.option(
            f"--{name}", type=TABLE, multiple=True, metavar="FILE", help=f"Instead: {tool.becomes}, from {tool.called}."
        )(function)
    return function


def fitted(
    tool: str, files: tuple[Path, ...], output: Path | None, *, part: str | None, sockets: int | None, model: str
) -> Result:
    """The file that the logs of a tool become, accepted by hwsim.

    Raises:
        SpecError: mistakes in the logs, or numbers that make no part.
    """
    from hwsim.functions.files import check_tree
    from hwsim.spec import SpecError, read_text
    from hwsim_calibrate.logs.base import base_of

    into = TOOLS[tool].into
    if part is not None and not into:
        raise click.UsageError(f"--part does not go with --{tool}: it becomes {TOOLS[tool].becomes}")
    for option, given in (("sockets", sockets), ("model", model)):
        if given and option not in TOOLS[tool].asks:
            raise click.UsageError(f"--{option} does not go with --{tool}")
    base = base_of(part, into, output.parent if output else Path()) if part is not None else None
    result = fit_logs(tool, [read_log(path) for path in files], Ask(base, sockets or 0, model))
    try:
        check_tree(read_text(result.yaml(), str(output or Path("fitted.yaml").resolve())))
    except SpecError as error:
        reasons = "; ".join(each.message for each in error.mistakes[:3])
        message = f"the numbers in it make no {result.said.get('kind', 'workload')}: {reasons}"
        raise SpecError.of(read_log(files[0]).place(), message) from None
    return result


def shown(result: Result, output: Path | None, *, as_json: bool) -> None:
    """Print the file, or write it; and the residuals, apart from the file."""
    from hwsim.results.invariants import document
    from hwsim_calibrate.cli import steps

    if output is not None:
        steps.written(result.yaml(), output)
    if as_json:
        click.echo(document(result.to_json()), nl=False)
        return
    if output is None:
        click.echo(result.yaml(), nl=False)
        sys.stdout.flush()
    click.echo(str(result), nl=False, err=output is None)


def one_of(tables: Mapping[str, tuple[Path, ...]], files: tuple[str, ...]) -> tuple[str, tuple[Path, ...]] | None:
    """The tool whose logs are given; None of measurements.

    Raises:
        click.UsageError: several, or nothing.
    """
    given = {tool.replace("_", "-"): paths for tool, paths in tables.items() if paths}
    if len(given) + bool(files) != 1:
        options = ", ".join(f"--{tool}" for tool in TOOLS)
        raise click.UsageError(f"it fits FILES of measurements, or the logs of one other tool: {options}")
    return next(iter(given.items()), None)
