"""`hwsim import stream out.txt`: fits to benchmarks' logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable_outputs
from hwsim_calibrate.logs import TOOLS, Ask, Result, parts_of, read_log

TABLE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


ASKED: Final = (
    click.option("--model", default="", metavar="NAME", help="Of a server's log: the model, by name or file."),
    click.option("--collective", default="", metavar="NAME", help="Of nccl-tests' log: the one to take, or that rows are of."),
    click.option("--sockets", type=click.IntRange(min=1), metavar="N", help="Of a cpu's log: sockets that were busy together."),
    click.option("--part", metavar="NAME", help="The part, by name or file, that the numbers of the log go into."),
)


def command(tool: str) -> click.Command | None:
    """`hwsim import TOOL LOG...`; None if there is no such tool."""
    if tool not in TOOLS:
        return None

    def run(files: tuple[Path, ...], output: Path | None, *, as_json: bool, **asked: Any) -> None:
        answered(tool, files, output, as_json=as_json, **asked)

    decorated: Any = run
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print all numbers and residuals as JSON (hwsim: fit/1)."),
        *ASKED,
        click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the file (default: print it)."),
        click.argument("files", type=TABLE, nargs=-1, required=True),
    ):
        decorated = option(decorated)
    made: click.Command = click.command(tool, help=f"Read logs of {TOOLS[tool].called}: {TOOLS[tool].becomes}.")(decorated)
    return made


def answered(tool: str, files: tuple[Path, ...], output: Path | None, *, as_json: bool, **asked: Any) -> None:
    """Read, fit, write and print."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.cli import steps

    refuse_unwritable_outputs(output)
    with print_errors():
        results = fitted(tool, files, output, **asked)
    if as_json and len(results) > 1:
        raise click.UsageError(f"--json prints one part: --collective {' or '.join(results)}")
    paths = [output and output.with_name(f"{output.stem}-{name}{output.suffix}" if name else output.name) for name in results]
    for path in paths:
        refuse_replacing(path, "fitted file", steps.is_fitted)
    for path, name, result in zip(paths, results, results.values(), strict=True):
        if name and output is None:
            click.echo("---")
        shown(result, path, as_json=as_json)


def fitted(
    tool: str, files: tuple[Path, ...], output: Path | None, *, part: str | None, sockets: int | None, model: str, collective: str
) -> dict[str, Result]:
    """The files that the logs of a tool become (see `parts_of`), accepted by hwsim.

    Raises:
        SpecError: mistakes in the logs, or numbers that make no part.
    """
    from hwsim.functions.files import check_tree
    from hwsim.spec import SpecError, read_text
    from hwsim_calibrate.logs.base import base_of

    into = TOOLS[tool].into
    if part is not None and not into:
        raise click.UsageError(f"--part does not go with {tool}: it becomes {TOOLS[tool].becomes}")
    for option, given in (("sockets", sockets), ("model", model), ("collective", collective)):
        if given and option not in TOOLS[tool].asks:
            raise click.UsageError(f"--{option} does not go with {tool}")
    base = base_of(part, into, output.parent if output else Path()) if part is not None else None
    results = parts_of(tool, [read_log(path) for path in files], Ask(base, sockets or 0, model, collective))
    for result in results.values():
        try:
            check_tree(read_text(result.yaml(), str(output or Path("fitted.yaml").resolve())))
        except SpecError as error:
            reasons = "; ".join(mistake.message for mistake in error.mistakes[:3])
            message = f"the numbers in it make no {result.said.get('kind', 'workload')}: {reasons}"
            raise SpecError.of(read_log(files[0]).place(), message) from None
    return results


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
