"""`hwsim collectives`: what an all-reduce and its kin take on a machine, as nccl-tests print it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hwsim.cli.arguments import MACHINE, refuse_unwritable, settings_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hwsim.machine import Machine

FILE: Final = click.Path(path_type=Path, dir_okay=False)
AFTER: Final = 2.0  # seconds before progress is shown
MOST: Final = 10_000  # sizes


@click.command("collectives")
@click.argument("machine", type=MACHINE)
@settings_option
@click.option("--op", "operation", default="all-reduce", metavar="OPERATION", show_default=True,
              help="all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather, ...")  # fmt: skip
@click.option("--among", default="", metavar="NAMES", help="The devices (default: all GPUs, without any all CPUs).")
@click.option("--bytes", "sizes", default="1KiB..16GiB", metavar="RANGE", show_default=True,
              help="Sizes: one, several with commas, or a range; it doubles unless it says :+1MiB or :log.")  # fmt: skip
@click.option("--algorithm", default="", metavar="NAMES",
              help="auto (what the library would choose), all, or names with commas (default: as in a workload that names none: "
              "auto where the machine says its library, else rings).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: collectives/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write busbw against size (.png, .svg or .pdf).")
def command(
    machine: str,
    settings: dict[str, str],
    operation: str,
    among: str,
    sizes: str,
    algorithm: str,
    as_json: bool,
    plot: Path | None,
) -> None:
    """What a collective takes among the devices of MACHINE: time, algbw and busbw by size, as nccl-tests print them, and
    which algorithm and protocol the machine's library chooses (the key `collectives` of the machine's file).
    """
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.cli.files import machine_with
    from hwsim.cli.progress import progress
    from hwsim.collectives import OPERATIONS, CannotCollect
    from hwsim.machine import NoRoute, UnknownName
    from hwsim.views.collectives import say as report
    from hwsim.views.collectives.find import ALL, NAMES, measure
    from hwsim.views.kit import warned
    from hwsim.views.kit.writing import write

    _refuse_unknown(operation, OPERATIONS, "--op", "operation")
    names = tuple(each.strip() for each in algorithm.split(",")) if algorithm else ()
    for name in names:
        _refuse_unknown(name, (*NAMES, ALL), "--algorithm", "algorithm")
    wanted = _sizes(sizes)
    with in_words():
        built = machine_with(machine, settings)
    title = built.name or ("machine" if machine == "-" else Path(machine).stem)
    try:
        with progress(shown=sys.stderr.isatty(), unit="rows", after=AFTER) as tell:
            devices = _devices(built, among)
            does = next(each for each in OPERATIONS if each == operation)
            found = measure(built, does, devices, wanted, names, tell)
    except (CannotCollect, NoRoute, UnknownName) as error:
        from hwsim.cli import EXIT_MISTAKE

        click.echo(f"{error}" + (f"\n    hint: {error.hint}" if error.hint else ""), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
    if plot is not None:
        if not any(row.busbw > 0 for row in found.rows):
            raise click.BadParameter(f"a {operation} moves no bytes that could be drawn", param_hint="--plot")
        click.echo(f"wrote {write(plot, report.render(found, title, plot.suffix, settings.items()))}", err=True)
    text = report.document(found, title, built.warnings) if as_json else report.text(found, title) + warned.text(built.warnings)
    click.echo(text, nl=False)


def _refuse_unknown(name: str, known: Sequence[str], option: str, what: str) -> None:
    if name not in known:
        from hwsim.spec import did_you_mean

        hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise click.BadParameter(f"there is no {what} '{name}'; {hint}", param_hint=option)


def _devices(machine: Machine, among: str) -> tuple[str, ...]:
    from hwsim.machine import UnknownName

    if not among:
        return machine.devices_of("gpu") or machine.devices_of("cpu")
    try:
        return machine.select([each.strip() for each in among.split(",")])
    except UnknownName as error:
        raise click.BadParameter(f"{error.message}" + (f"; {error.hint}" if error.hint else ""), param_hint="--among") from error


def _sizes(text: str) -> tuple[float, ...]:
    """The sizes of a range, or of several with commas; a range without a step doubles."""
    from hwsim.spec.ranges import is_range, parse_range
    from hwsim.units import SIZE, UnitError, parse_as

    found: list[float] = []
    try:
        for each in text.split(","):
            if is_range(each):
                asked = parse_range(each if ":" in each else f"{each}:x2")
                if not asked.dimension.plain and not asked.dimension.fits(SIZE):
                    raise UnitError(f"'{each}' is {asked.dimension.name}, not bytes", "such as 1KiB..16GiB")
                found += asked.values(40)
            else:
                found.append(parse_as(each.strip(), SIZE))
    except UnitError as error:
        hint = getattr(error, "hint", None)
        raise click.BadParameter(f"{error}" + (f"; {hint}" if hint else ""), param_hint="--bytes") from error
    if len(found) > MOST:
        raise click.BadParameter(f"{len(found)} sizes: at most {MOST}", param_hint="--bytes")
    if any(size < 0 for size in found):
        raise click.BadParameter("a size cannot be negative", param_hint="--bytes")
    return tuple(dict.fromkeys(float(size) for size in found))
