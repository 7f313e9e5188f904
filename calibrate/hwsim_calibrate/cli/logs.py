"""`hwsim import TOOL LOG...`: logs of benchmarks as parts or workloads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable_outputs
from hwsim_calibrate.logs import TOOLS, LogOptions, Result, parts_of, read_log

LOG: Final = click.Path(path_type=Path, dir_okay=False, exists=True)
OPTIONS: Final = (
    click.option("--model", default="", metavar="NAME", help="Server logs: the model, by name or file."),
    click.option("--collective", default="", metavar="NAME", help="nccl-tests logs: the collective to select or assume."),
    click.option("--sockets", type=click.IntRange(min=1), metavar="N", help="CPU logs: sockets that were busy at the same time."),
    click.option("--part", metavar="NAME", help="The part, by name or file, to complete with the numbers of the log."),
)


def command(tool: str) -> click.Command | None:
    """Return the command `hwsim import TOOL LOG...`, or None if there is no such tool."""
    if tool not in TOOLS:
        return None

    def run(files: tuple[Path, ...], output: Path | None, *, as_json: bool, **options: Any) -> None:
        import_logs(tool, files, output, as_json=as_json, **options)

    decorated: Any = run
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print all numbers and residuals as JSON (hwsim: fit/1)."),
        *OPTIONS,
        click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the file (default: print it)."),
        click.argument("files", type=LOG, nargs=-1, required=True),
    ):
        decorated = option(decorated)
    made: click.Command = click.command(tool, help=f"Import logs of {TOOLS[tool].title} as {TOOLS[tool].becomes}.")(decorated)
    return made


def import_logs(tool: str, files: tuple[Path, ...], output: Path | None, *, as_json: bool, **options: Any) -> None:
    """Fit the logs, and write or print the results."""
    from hwsim.cli.errors import print_errors
    from hwsim_calibrate.cli import steps

    refuse_unwritable_outputs(output)
    with print_errors():
        results = fit_files(tool, files, output, **options)
    if as_json and len(results) > 1:
        raise click.UsageError(f"`--json` prints one part: select it with --collective {' or '.join(results)}")
    paths = [output and output.with_name(f"{output.stem}-{name}{output.suffix}" if name else output.name) for name in results]
    for path in paths:
        refuse_replacing(path, "fitted file", steps.is_fitted)
    for path, name, result in zip(paths, results, results.values(), strict=True):
        if name and output is None:
            click.echo("---")
        show_result(result, path, as_json=as_json)


def fit_files(
    tool: str, files: tuple[Path, ...], output: Path | None, *, part: str | None, sockets: int | None, model: str, collective: str
) -> dict[str, Result]:
    """Fit the logs of a tool (see `parts_of`) and check that hwsim accepts the resulting files.

    Raises:
        SpecError: The logs have mistakes, or the fitted numbers are not a valid part.
    """
    from hwsim.functions.files import check_tree
    from hwsim.spec import SpecError, read_text
    from hwsim_calibrate.logs.target_part import find_target_part

    kinds = TOOLS[tool].part_kinds
    if part is not None and not kinds:
        raise click.UsageError(f"`--part` is not available for {tool}: its logs become {TOOLS[tool].becomes}")
    for option, given in (("sockets", sockets), ("model", model), ("collective", collective)):
        if given and option not in TOOLS[tool].options:
            raise click.UsageError(f"`--{option}` is not available for {tool}")
    target = find_target_part(part, kinds, output.parent if output else Path()) if part is not None else None
    results = parts_of(tool, [read_log(path) for path in files], LogOptions(target, sockets or 0, model, collective))
    for result in results.values():
        try:
            check_tree(read_text(result.yaml(), str(output or Path("fitted.yaml").resolve())))
        except SpecError as error:
            reasons = "; ".join(mistake.message for mistake in error.mistakes[:3])
            message = f"the fitted numbers are not a valid {result.keys.get('kind', 'workload')}: {reasons}"
            raise SpecError.of(read_log(files[0]).place(), message) from None
    return results


def show_result(result: Result, output: Path | None, *, as_json: bool) -> None:
    """Write the file or print it; print the residuals separately."""
    from hwsim.results.invariants import document
    from hwsim_calibrate.cli import steps

    if output is not None:
        steps.write_or_print(result.yaml(), output)
    if as_json:
        click.echo(document(result.to_json()), nl=False)
        return
    if output is None:
        click.echo(result.yaml(), nl=False)
        sys.stdout.flush()
    click.echo(str(result), nl=False, err=output is None)
