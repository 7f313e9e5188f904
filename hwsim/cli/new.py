"""`hwsim new`: create a machine file and a workload file from a template."""

from __future__ import annotations

from pathlib import Path

import click

from hwsim.functions.new import FILES, TEMPLATES, new


@click.command("new")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    default="program",
    show_default=True,
    help="Template: a program on GPUs, a web server with a database, or LLM serving.",
)
def command(folder: Path, template: str) -> None:
    """Write machine.yaml and workload.yaml into DIR (default: the working directory). Files that exist are not changed."""
    try:
        new(folder, template)
    except FileExistsError as error:
        raise click.UsageError(str(error)) from error
    for name in FILES:
        click.echo(f"wrote {folder / name}")
    pair = f"{folder / 'machine.yaml'} {folder / 'workload.yaml'}"
    click.echo(f"try: hwsim simulate {pair}" + ("" if template == "program" else f"; hwsim simulate {pair} --find rate"))
