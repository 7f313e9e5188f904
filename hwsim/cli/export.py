"""`hwsim export TOOL MACHINE WORKLOAD`: a run as input of another tool. A new tool is a file of `hwsim.exporters`."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, Literal

import click

from hwsim.cli.arguments import Late, refuse_replacing, run_arguments
from hwsim.exporters.tools import TOOLS
from hwsim.results.invariants import document
from hwsim.views.trace.run import run_of

_HEAD: Final = 1 << 16  # bytes of a file that tell who wrote it
_MARKS: Final[Mapping[str, bytes]] = {  # names of files: words in the ones from hwsim
    "rank*.json.gz": b'{"schemaVersion": 1, "displayTimeUnit": "ns", "traceName": ',
    "trace.*.et": b"hwsim.",
    "comm_group.json": b'{"1": [',
}


class Tools(Late):
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
                  help="Output folder, created if it does not exist.")  # fmt: skip
    @click.option("--fold/--no-fold", default=None,
                  help="Write identical ranks once, or write all (default: once if there are many).")  # fmt: skip
    @click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON (hwsim: export/1).")
    @click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
    def run(
        machine: str, workload: str, settings: dict[str, str], output: Path, fold: bool | None, as_json: bool, quiet: bool
    ) -> None:
        if not output.absolute().parent.is_dir():
            raise click.BadParameter(f"there is no folder '{output.parent}'", param_hint="--output")
        earlier = _earlier(output)
        from hwsim.api import simulated
        from hwsim.cli.errors import in_words
        from hwsim.cli.progress import progress
        from hwsim.exporters.tools import as_dict, files
        from hwsim.views.kit.writing import write

        with in_words(), progress(shown=not quiet and sys.stderr.isatty()) as shown:
            folding: Literal["always", "auto", "never"] = "always" if fold else "auto" if fold is None else "never"
            traced = run_of(simulated(machine, workload, set=settings, fold=folding, progress=shown, interval=False))
            exported = files(tool, traced)
        if older := [name for name in earlier if name not in exported.files]:
            message = f"'{output}' has {', '.join(older[:3])}{', ...' if len(older) > 3 else ''} of another export"
            message += ", which would stay beside the new files; remove that, or write another folder"
            raise click.BadParameter(message, param_hint="--output")
        output.mkdir(exist_ok=True)
        sizes = {name: write(output / name, chunks).stat().st_size for name, chunks in exported.files.items()}
        if as_json:
            click.echo(document(as_dict(tool, traced, exported, sizes)), nl=False)
        elif not quiet:
            click.echo(_text(output, sizes))
            for left in exported.unsaid:
                click.echo(f"  not in it: {left.count:,} x {left.name}: {left.why}")

    return run


def _earlier(folder: Path) -> list[str]:
    """Names of the files of an earlier export in a folder; raises if hwsim did not write one with such a name."""
    if not folder.is_dir():
        return []
    files = sorted(each for each in folder.iterdir() if each.is_file() and any(fnmatch(each.name, name) for name in _MARKS))
    for each in files:
        refuse_replacing(each, "file of hwsim export", _is_ours)
    return [each.name for each in files]


def _is_ours(path: Path) -> bool:
    """Whether a file begins as a file of hwsim with such a name does."""
    mark = next(mark for name, mark in _MARKS.items() if fnmatch(path.name, name))
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return mark in file.read(_HEAD)
    except (OSError, EOFError, zlib.error):  # also one that is not compressed
        return False


def _text(output: Path, sizes: dict[str, int]) -> str:
    many = f"{len(sizes)} files" if len(sizes) > 1 else "1 file"
    names = ", ".join([*list(sizes)[:3], *(["..."] if len(sizes) > 3 else [])])
    return f"wrote {many} to {output}: {names}"
