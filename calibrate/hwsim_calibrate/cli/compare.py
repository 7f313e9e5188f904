"""`hwsim compare`: predicted against measured, op by op."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from hwsim.cli.arguments import FILE, MACHINE, WORKLOAD, refuse_unwritable, settings_option


@click.command("compare")
@click.argument("machine", type=MACHINE)
@click.argument("workload", type=WORKLOAD)
@click.argument("measured", type=FILE, required=False)
@settings_option
@click.option("--clock", type=click.Choice(["cpu", "wall"]), help="CPU time or wall time (default: as recorded).")
@click.option("--all", "every", is_flag=True, help="Print every op.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: comparison/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure (.png, .svg or .pdf).")
def command(
    machine: str,
    workload: str,
    measured: Path | None,
    settings: dict[str, str],
    clock: Literal["cpu", "wall"] | None,
    every: bool,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Simulate a recorded WORKLOAD on MACHINE, and compare each op with its recorded time.

    MEASURED is what `hwsim record` wrote next to the workload (default: its name with .measured.json.gz). Rows are sorted
    by their share of the error.
    """
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.views.kit.writing import write
    from hwsim_calibrate import compare_report as report
    from hwsim_calibrate.compare import compare, load
    from hwsim_calibrate.recording.writing import measured_path

    with in_words():
        recorded = load(measured_path(workload) if measured is None else measured)
        compared = compare(machine, workload, recorded, settings=settings, clock=clock or "")
    if plot is not None:
        click.echo(f"wrote {write(plot, report.render(compared, plot.suffix))}", err=True)
    click.echo(report.document(compared) if as_json else report.text(compared, every=every), nl=False)
