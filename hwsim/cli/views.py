"""Commands built from views (`hwsim.views.kit.view`): find, print and draw."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hwsim.cli import EXIT_MISTAKE
from hwsim.cli.arguments import (
    FILE,
    MACHINE,
    WORKLOAD,
    answered,
    decorated,
    folded,
    refuse_two_inputs,
    refuse_unwritable,
    settings_option,
    write_files,
)
from hwsim.views import view as view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hwsim.views.kit.view import View, ViewOption


def view_command(name: str) -> click.Command:
    """Return the command of a view: its arguments, `--set`, its own options, `--json` and `--plot`."""
    view = view_of(name)

    def run(machine: str, settings: dict[str, str], as_json: bool, plot: Path | None = None, workload: str | None = None,
            **options: Any) -> None:  # fmt: skip
        show(view, (machine, workload), settings, options, as_json=as_json, plot=plot)

    decorators: list[Callable[[Any], Any]] = [
        click.argument("machine", type=MACHINE),
        *([click.argument("workload", type=WORKLOAD, required=False)] if "workload" in view.needs else []),
        settings_option,
        own_options(view),
        click.option("--json", "as_json", is_flag=True, help=f"Print all numbers as JSON (hwsim: {view.schema})."),
        *([click.option("--plot", type=FILE, metavar="FILE", help=view.plots)] if view.plots else []),
    ]
    return click.command(name, help=import_module(f"hwsim.views.{name}").__doc__)(decorated(run, decorators))


def own_options(view: View) -> Callable[[Any], Any]:
    """Return a decorator that adds the options of a view."""
    return lambda function: decorated(function, map(_option, view.options))


def show(
    view: View,
    files: tuple[str, str | None],
    settings: Mapping[str, str],
    options: dict[str, Any],
    *,
    as_json: bool,
    plot: Path | None,
    plot_option: str = "--plot",
) -> None:
    """Find and print the view, and draw it if requested.

    Args:
        view: view to show.
        files: machine and workload.
        settings: paths and values to change in the files.
        options: options of the view.
        as_json: whether to print JSON.
        plot: file of the figure; None: no figure.
        plot_option: option that names the file of the figure.
    """
    from hwsim.cli.errors import print_errors
    from hwsim.functions.views import view_findings
    from hwsim.views.kit.figure import suffix_of
    from hwsim.views.kit.file_output import write
    from hwsim.views.kit.view import Unshowable

    machine, workload = files
    refuse_two_inputs(machine, workload)
    given = {option.flag for option in view.options if options[option.name]} | ({"--json"} if as_json else set())
    for option in view.options:
        if option.flag in given and not given.isdisjoint(option.without):
            raise click.UsageError(f"{option.flag} cannot be combined with {' or '.join(option.without)}")
    refuse_unwritable(plot, plot_option)
    try:
        with print_errors():
            _, findings, heading = view_findings(view, machine, workload, settings, **options)
        printed = view.document(findings, heading) if as_json else view.text(findings, heading, **options)
    except Unshowable as error:
        if error.option:
            hint = f"; {error.hint}" if error.hint else ""
            raise click.BadParameter(f"{error}{hint}", param_hint=error.option) from error
        click.echo(f"{error}" + (f"\n    hint: {error.hint}" if error.hint else ""), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
    try:
        with answered(lambda: click.echo(printed if as_json else folded(printed), nl=False)):
            write_files([(plot, lambda path: write(path, view.figure(findings, heading, suffix_of(path))))])
    except Unshowable as error:
        raise click.BadParameter(str(error), param_hint=plot_option) from error


def _option(option: ViewOption) -> Callable[[Any], Any]:
    names = (option.flag, option.name)
    if not option.metavar:
        return click.option(*names, is_flag=True, help=option.help)
    kind = click.Choice(option.choices) if option.choices else str
    shown = bool(option.default)
    return click.option(*names, type=kind, metavar=option.metavar, default=option.default, show_default=shown, help=option.help)
