"""`hwsim new`: a pair of files to start from."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("new")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
def command(folder: Path) -> None:
    """Write machine.yaml and workload.yaml into DIR (default: the working directory). Files that exist are not changed."""
    from hwsim.functions.new import FILES, new

    try:
        new(folder)
    except FileExistsError as error:
        raise click.UsageError(str(error)) from error
    for name in FILES:
        click.echo(f"wrote {folder / name}")
    click.echo(f"try: hwsim simulate {folder / 'machine.yaml'} {folder / 'workload.yaml'}")
