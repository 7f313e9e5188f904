"""`hwsim import FORMAT FILE...`: recorded runs and model configs of other tools. A new format is a line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli.arguments import FILE, refuse_unwritable, write_files
from hwsim.importers.formats import FORMATS

if TYPE_CHECKING:
    from hwsim.importers.recording import Recording

OTHERS: Final[Mapping[str, tuple[str, str]]] = {}  # name: (module with `command`, help): what is no recorded run


class Imports(click.Group):
    """A subcommand for each format, made when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [*FORMATS, *OTHERS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if cmd_name in OTHERS:
            command: click.Command = import_module(OTHERS[cmd_name][0]).command
            return command
        return _recorded(cmd_name) if cmd_name in FORMATS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        with formatter.section("Formats"):
            formatter.write_dl([(name, words) for name, (_, words) in {**FORMATS, **OTHERS}.items()])


@click.group("import", cls=Imports, subcommand_metavar="FORMAT FILE...")
def command() -> None:
    """Read what another tool recorded: print what it holds, and write it as a step that hwsim can run.

    What cannot be mapped is listed with its time.
    """


def _recorded(name: str) -> click.Command:
    """The command of a format of recorded runs."""

    def run(**options: Any) -> None:
        _import(name, **options)

    decorated: Any = run
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    if name == "kineto":
        decorated = click.option("--shapes", type=FILE, multiple=True, metavar="FILE", help=SHAPES)(decorated)
    made: click.Command = click.command(name, help=FORMATS[name].words)(decorated)
    return made


SHAPES: Final = "Execution trace of the same run (see `host`), for a profile without shapes; one for each rank."
_OPTIONS: Final = (
    click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True),
    click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the step: .npz (all ops), or .yaml (a workload)."),
    click.option("--plot", type=FILE, metavar="FILE", help="Write a figure of the memory over time (.png, .svg or .pdf)."),
    click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: import/1)."),
)


def _import(
    name: str, files: tuple[Path, ...], output: Path | None, plot: Path | None, *, as_json: bool, shapes: tuple[Path, ...] = ()
) -> None:
    """Read, explain, predict, print and write."""
    refuse_unwritable(output, "--output", "step", (".npz", ".yaml"))
    refuse_unwritable(plot)
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim.importers.formats import read
    from hwsim.importers.say import as_dict, text
    from hwsim.results.invariants import document, printed

    with in_words(), progress(shown=sys.stderr.isatty(), unit="bytes") as shown:
        recording = read(name, files, shown)
        if shapes:
            from hwsim.importers.host_trace import with_shapes

            recording = with_shapes(recording, read("host", shapes, shown))
        # here: replay = explain(recording), then durations on a machine or another number of ranks; their lines join the text
    click.echo(document(as_dict(recording)) if as_json else printed(text(recording)), nl=False)
    write_files([(plot, lambda path: _draw(recording, path))])


def _draw(recording: Recording, path: Path) -> Path:
    from hwsim.importers.memory import timeline
    from hwsim.views.kit.writing import write
    from hwsim.views.memory.draw import render

    return write(path, render(timeline(recording), path.suffix))
