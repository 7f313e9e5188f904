"""`hwsim check`: validate files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hwsim.cli import EXIT_MISTAKE
from hwsim.cli.arguments import MACHINE

if TYPE_CHECKING:
    from hwsim.spec import Mistake


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--defaults", is_flag=True, help="Count the values of each part that are class defaults.")
@click.option("--strict-library", is_flag=True, help="Reject parts and values that are not in the library.")
@click.option("--on", "machine", type=MACHINE, help="Check the workloads on this machine, without running them.")
def command(files: tuple[str, ...], machine: str | None, *, defaults: bool, strict_library: bool) -> None:
    """Validate each FILE (machine, workload, part, prices or failures): a path, a library name, or -.

    Every mistake is reported with line and column, then warnings. Exit code 2 if there is a mistake.
    """
    from hwsim import api
    from hwsim.functions.files import check, defaults_of, refuse_invented
    from hwsim.spec import SpecError

    failed = False
    printed: set[Mistake] = set()
    for file in files:
        try:
            if strict_library:
                refuse_invented(file)
            warnings = check(file) if machine is None else api.prepare(machine, file).warnings
        except SpecError as error:
            failed = True
            new = [mistake for mistake in error.mistakes if mistake not in printed]
            if len(new) < len(error.mistakes):  # mistakes of a file that another one uses as well
                places = ", ".join(str(mistake.place) for mistake in error.mistakes if mistake in printed and mistake.place)
                click.echo(f"{file}: the same mistakes as above" + (f": {places}" if places else ""), err=True)
            printed.update(new)
            if new:
                click.echo(str(SpecError(new)), err=True)
        else:
            for warning in warnings:
                place = "" if warning.place is not None and warning.place.file else f"{file}: "  # else in the message
                click.echo(f"{place}warning[{warning.code}]: {warning.message}")
            click.echo(f"{file}: valid" if machine is None else f"{file} on {machine}: valid")
            for line in defaults_of(file) if defaults else ():
                click.echo(f"  {line}")
    if failed:
        click.get_current_context().exit(EXIT_MISTAKE)
