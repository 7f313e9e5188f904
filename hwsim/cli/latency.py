"""`hwsim latency`: the latency numbers of a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli.arguments import MACHINE, refuse_unwritable, settings_option

if TYPE_CHECKING:
    from hwsim.views.latency.find import Latencies, Missing, Row

FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("latency")
@click.argument("machine", type=MACHINE)
@settings_option
@click.option("--all", "every", is_flag=True, help="Also name the rows that the machine has no part for.")
@click.option("--explain", "key", metavar="ROW", help="Derive one row: every line of it, with the sources of its numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: latency/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure (.png, .svg or .pdf).")
def command(machine: str, settings: dict[str, str], every: bool, key: str | None, as_json: bool, plot: Path | None) -> None:
    """How long one of everything takes on MACHINE: a read of each cache, a branch guessed wrong, a mutex, 4 KB from
    each disk and over each network, a kernel launch, ... beside what Dive into Deep Learning says of it.
    """
    if key is not None and (as_json or every):
        raise click.UsageError("--explain prints one row: leave out --json and --all")
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.cli.files import machine_with
    from hwsim.views.kit import warned
    from hwsim.views.kit.writing import write
    from hwsim.views.latency import say as report
    from hwsim.views.latency.find import latencies

    with in_words():
        built = machine_with(machine, settings)
    found = latencies(built)
    title = built.name or ("machine" if machine == "-" else Path(machine).stem)
    if plot is not None:
        if not found.rows:
            raise click.BadParameter("no part of the machine says enough for a row", param_hint="--plot")
        click.echo(f"wrote {write(plot, report.render(found, title, plot.suffix, settings.items()))}", err=True)
    if key is not None:
        click.echo(report.explained(_row(found, key)) + warned.text(built.warnings), nl=False)
    elif as_json:
        click.echo(report.document(found, title, built.warnings), nl=False)
    else:
        click.echo(report.text(found, title, every=every) + warned.text(built.warnings), nl=False)


def _row(found: Latencies, key: str) -> Row | Missing:
    from hwsim.spec import did_you_mean
    from hwsim.views.latency.find import KEYS

    if key not in KEYS:
        hint = did_you_mean(key, KEYS) or f"there are: {', '.join(KEYS)}"
        raise click.BadParameter(f"there is no row '{key}'; {hint}", param_hint="--explain")
    return found.row(key)
