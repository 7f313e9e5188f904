"""`hwsim check`: validate files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hwsim.cli import EXIT_MISTAKE
from hwsim.cli.arguments import MACHINE

if TYPE_CHECKING:
    from hwsim.spec import Mistake, Place


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "github"]), default="text",
              help="github: as annotations of a workflow.")  # fmt: skip
@click.option("--defaults", is_flag=True, help="Say how many numbers of each part are filled in, and from which class.")
@click.option("--strict-library", is_flag=True, help="Refuse a machine with a part or a number that the library does not have.")
@click.option("--on", "machine", type=MACHINE, help="Check each workload on this machine, without running it.")
def command(files: tuple[str, ...], form: str, machine: str | None, *, defaults: bool, strict_library: bool) -> None:
    """Validate each FILE (machine, workload, part, prices or failures; a path, a name of the library, or -).

    Prints every mistake once with line and column, and the warnings; exit code 2 if there are mistakes.
    """
    from hwsim import api
    from hwsim.functions.files import check, defaults_of, refuse_invented
    from hwsim.spec import Place, SpecError

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
                click.echo(_github(new) if form == "github" else str(SpecError(new)), err=form == "text")
        else:
            for warning in warnings:
                noted = _annotation("warning", warning.place or Place(file, 0, 0), f"{warning.code}: {warning.text}")
                click.echo(noted if form == "github" else f"{file}: warning: {warning}")
            if form == "text":
                click.echo(f"{file}: ok" if machine is None else f"{file} on {machine}: ok")
                for line in defaults_of(file) if defaults else ():
                    click.echo(f"  {line}")
    if failed:
        click.get_current_context().exit(EXIT_MISTAKE)


def _github(mistakes: Sequence[Mistake]) -> str:
    """Workflow commands of GitHub Actions: `::error file=,line=,col=::message`."""
    texts = [(mistake.place, mistake.message + (f" (hint: {mistake.hint})" if mistake.hint else "")) for mistake in mistakes]
    return "\n".join(_annotation("error", place, text) for place, text in texts)


def _annotation(level: str, place: Place | None, text: str) -> str:
    if place is None or not place.file:
        return f"::{level} ::{_message(text)}"
    where = f"file={_property(place.file)}" + (f",line={place.line},col={place.column}" if place.line else "")
    return f"::{level} {where}::{_message(text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
