"""`hwsim export TOOL MACHINE WORKLOAD`: write a run for another tool. A new tool is a module of `hwsim.exporters`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from hwsim.cli.arguments import LateOption, run_arguments
from hwsim.exporters.tools import TOOLS
from hwsim.results.invariants import document
from hwsim.views.trace.run import run_of


class Tools(LateOption):
    """A subcommand for each tool."""

    def sections(self) -> dict[str, dict[str, str]]:
        return {"Tools": {name: tool.words for name, tool in TOOLS.items()}}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        return _command(cmd_name) if cmd_name in TOOLS else None


@click.group("export", cls=Tools, subcommand_metavar="TOOL MACHINE WORKLOAD")
def command() -> None:
    """Run a workload on a machine and write the run in the format of another tool.

    Properties that the format cannot express are listed.
    """


def _command(tool: str) -> click.Command:
    @click.command(tool, help=TOOLS[tool].words)
    @run_arguments
    @click.option("-o", "--output", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
                  help="Output folder: a new or an empty one.")  # fmt: skip
    @click.option("--fold/--no-fold", default=None,
                  help="Write identical ranks once, or write all (default: once if there are many).")  # fmt: skip
    @click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON (hwsim: export/2).")
    @click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
    def run(
        machine: str, workload: str, settings: dict[str, str], output: Path, fold: bool | None, as_json: bool, quiet: bool
    ) -> None:
        if not output.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")
        if output.is_dir() and any(output.iterdir()):
            raise click.BadParameter(f"'{output}' is not empty; choose another folder", param_hint="--output")
        from hwsim.api import simulated
        from hwsim.cli.errors import print_errors
        from hwsim.cli.progress import progress
        from hwsim.exporters.tools import as_dict, files
        from hwsim.views.kit.file_output import write

        with print_errors(), progress(shown=not quiet and sys.stderr.isatty()) as shown:
            folding: Literal["always", "auto", "never"] = "always" if fold else "auto" if fold is None else "never"
            traced = run_of(simulated(machine, workload, set=settings, fold=folding, progress=shown, interval=False))
            exported = files(tool, traced)
        output.mkdir(exist_ok=True)
        sizes = {name: write(output / name, chunks).stat().st_size for name, chunks in exported.files.items()}
        if as_json:
            click.echo(document(as_dict(tool, traced, exported, sizes)), nl=False)
        elif not quiet:
            click.echo(_text(output, sizes))
            for left in exported.unsaid:
                click.echo(f"  not in it: {left.count:,} x {left.name}: {left.why}")

    return run


def _text(output: Path, sizes: dict[str, int]) -> str:
    many = f"{len(sizes)} files" if len(sizes) > 1 else "1 file"
    names = ", ".join([*list(sizes)[:3], *(["..."] if len(sizes) > 3 else [])])
    return f"wrote {many} to {output}: {names}"
