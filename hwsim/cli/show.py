"""`hwsim show`: print a file with everything that it uses, and the source of each number."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from hwsim.cli.arguments import LibraryName, settings_option
from hwsim.cli.views import own_options, show
from hwsim.views import view

TOPOLOGY: Final = view("topology")


@click.command("show")
@click.argument("name", metavar="[NAME|FILE]", default="", type=LibraryName("machine"))
@click.option(
    "--topology",
    "figure",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Print the links, bisection bandwidth and distances of a machine; draw it into FILE.",
)
@own_options(TOPOLOGY)
@click.option("--json", "as_json", is_flag=True, help="With --topology: print JSON (hwsim: topology/2).")
@click.option("--no-expect", is_flag=True, help="Omit the expected results of a workload, for exercises.")
@settings_option
def command(name: str, figure: str | None, of: str, as_json: bool, no_expect: bool, settings: dict[str, str]) -> None:
    """Print a machine, part or workload: everything it uses filled in, each number with its source.

    Without a name: list the library.
    """
    if figure is not None:
        if no_expect:
            raise click.UsageError("--topology cannot be combined with --no-expect")
        if not name:  # `hwsim show --topology MACHINE`: click takes the name for a file
            name, figure = figure, ""
        if not name:
            raise click.UsageError("--topology requires a machine")
        plot = Path(figure) if figure else None
        show(TOPOLOGY, (name, None), settings, {"of": of}, as_json=as_json, plot=plot, plot_option="--topology")
        return
    if of or as_json:
        raise click.UsageError("--of and --json require --topology")
    if not name:
        from hwsim.functions.show import library

        click.echo("\n".join(library()))
        return
    if settings:
        raise click.UsageError("--set requires --topology")
    from hwsim.cli.errors import print_errors
    from hwsim.functions.files import any_tree, warnings_of
    from hwsim.functions.show import show_lines

    with print_errors():
        tree = any_tree(name)
        click.echo("\n".join(show_lines(tree, expect=not no_expect)))
        for warning in warnings_of(tree):  # what is printed is a file: nothing else may stand in it
            click.echo(f"warning[{warning.code}]: {warning.message}", err=True)
