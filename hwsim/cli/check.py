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
@click.option("--defaults", is_flag=True, help="Say how many numbers of each part are filled in, and from which class.")
@click.option("--strict-library", is_flag=True, help="Refuse a machine with a part or a number that the library does not have.")
@click.option("--on", "machine", type=MACHINE, help="Check each workload on this machine, without running it.")
def command(files: tuple[str, ...], machine: str | None, *, defaults: bool, strict_library: bool) -> None:
    """Validate each FILE (machine, workload, part, prices or failures; a path, a name of the library, or -).

    Prints every mistake once with line and column, and the warnings; exit code 2 if there are mistakes.
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
                click.echo(f"{file}: warning: {warning}")
            click.echo(f"{file}: ok" if machine is None else f"{file} on {machine}: ok")
            for line in defaults_of(file) if defaults else ():
                click.echo(f"  {line}")
    if failed:
        click.get_current_context().exit(EXIT_MISTAKE)
