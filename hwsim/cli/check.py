"""`hwsim check`: validate files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hwsim.cli import EXIT_MISTAKE

if TYPE_CHECKING:
    from hwsim.spec import Mistake


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "form", type=click.Choice(["text", "github"]), default="text",
              help="github: as annotations of a workflow.")  # fmt: skip
def command(files: tuple[str, ...], form: str) -> None:
    """Validate each FILE (machine, workload or part; a path, a name of the library, or -).

    Says all mistakes with line and column; exit code 2 if there are any.
    """
    from hwsim.cli.files import check
    from hwsim.spec import SpecError

    failed = False
    for file in files:
        try:
            warnings = check(file)
        except SpecError as error:
            failed = True
            click.echo(_github(error.mistakes) if form == "github" else str(error), err=form == "text")
        else:
            for warning in warnings:
                noted = f"::warning file={_property(file)}::{_message(warning)}"
                click.echo(noted if form == "github" else f"{file}: warning: {warning}")
            if form == "text":
                click.echo(f"{file}: ok")
    if failed:
        click.get_current_context().exit(EXIT_MISTAKE)


def _github(mistakes: Sequence[Mistake]) -> str:
    """Workflow commands of GitHub Actions: `::error file=,line=,col=::message`."""
    return "\n".join(_annotation(each) for each in mistakes)


def _annotation(mistake: Mistake) -> str:
    place = mistake.place
    text = mistake.message + (f" (hint: {mistake.hint})" if mistake.hint else "")
    if place is None or not place.file:
        return f"::error ::{_message(text)}"
    where = f"file={_property(place.file)}" + (f",line={place.line},col={place.column}" if place.line else "")
    return f"::error {where}::{_message(text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
