"""`hwsim roofline`: what a device can do at most, and how near a workload's ops come to it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from hwsim.cli.arguments import MACHINE, WORKLOAD, refuse_unwritable, settings_option

FORMATS: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int64", "int32", "int8", "int4")
FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command("roofline")
@click.argument("machine", type=MACHINE)
@click.argument("workload", type=WORKLOAD, required=False)
@settings_option
@click.option("--device", metavar="NAME", default="", help="Only this device (default: one of each kind that computes).")
@click.option("--dtype", type=click.Choice(FORMATS), metavar="FORMAT", help="Only the ceilings of this number format, e.g. fp16.")
@click.option("--links", is_flag=True, help="Also the way from the host to the device (PCIe).")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: roofline/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure (.png, .svg or .pdf).")
def command(
    machine: str,
    workload: str | None,
    settings: dict[str, str],
    device: str,
    dtype: str | None,
    links: bool,
    as_json: bool,
    plot: Path | None,
) -> None:
    """The ceilings of each device of MACHINE: what its caches and memory carry, what it computes at most in each number
    format; and where the ops of WORKLOAD are below them.
    """
    if machine == workload == "-":
        raise click.UsageError("only one of the two files can be standard input")
    refuse_unwritable(plot)
    from hwsim import api
    from hwsim.cli import EXIT_MISTAKE
    from hwsim.cli.errors import in_words
    from hwsim.cli.files import machine_with
    from hwsim.views.kit import warned
    from hwsim.views.kit.writing import write
    from hwsim.views.roofline import say as report
    from hwsim.views.roofline.find import NoRoofline, rooflines

    with in_words():
        if workload is None:
            built, graph, name, called = machine_with(machine, settings), None, "", ""
            name = built.name or ("machine" if machine == "-" else Path(machine).stem)
            warnings = built.warnings
        else:
            lowered = api.prepare(machine, workload, set=settings)
            built, graph = lowered.machine, lowered.graph
            name, called = lowered.machine_name, lowered.workload_name
            warnings = lowered.warnings
    try:
        found = rooflines(built, graph, device=device, dtype=dtype or "", links=links)
    except NoRoofline as error:
        click.echo(f"{error}" + (f"\n    hint: {error.hint}" if error.hint else ""), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
    if plot is not None:
        title = f"{called} on {name}" if called else name
        click.echo(f"wrote {write(plot, report.render(found, title, plot.suffix, settings.items()))}", err=True)
    if as_json:
        click.echo(report.document(found, name, called, warnings), nl=False)
    else:
        click.echo(report.text(found, name, called) + warned.text(warnings), nl=False)
