"""`hwsim record`: a script of numpy becomes a workload."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from hwsim.cli import EXIT_FAILED

FILE: Final = click.Path(path_type=Path, dir_okay=False)
SCRIPT: Final = click.Path(path_type=Path, dir_okay=False, exists=True, readable=True)


HEAD: Final = 4096  # bytes of a file in which it says what it is


class Recording(click.Command):
    """A command whose last arguments are another program's: what looks like an option of ours may be one of its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = f"Arguments for the script come after `--`: hwsim record SCRIPT -- ... {error.option_name}"
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None


@click.command("record", cls=Recording)
@click.argument("script", type=SCRIPT)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS...]")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="The workload to write (default: the script's name with .yaml).")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, metavar="N",
              help="Run the script so often: the first says what is called, the others what it takes (median).")  # fmt: skip
@click.option("--loops/--no-loops", default=True, help="Write calls that repeat as `repeat` (default), or all of them.")
def command(script: Path, arguments: tuple[str, ...], output: Path | None, runs: int, loops: bool) -> None:
    """Run SCRIPT, and write what it asks numpy for as a workload: a statement for each call.

    What each call took goes into a file beside it, for `hwsim compare`. The script sees numpy as it always is; calls that
    hwsim has no op for are written as `busy` with the time they took, and said.
    """
    output = Path(f"{script.stem}.yaml") if output is None else output
    _refuse_no_script(script)
    from hwsim.cli.progress import progress
    from hwsim.views.kit.writing import write
    from hwsim_calibrate.recording import writing

    beside = writing.measured_path(output)
    _refuse_unwritable(output, beside)
    _refuse_replacing(script, output, beside)
    from hwsim_calibrate.recording.script import NothingRecorded, ScriptFailed, record_script

    try:
        found = record_script(script, arguments, runs=runs)
    except (ScriptFailed, NothingRecorded) as error:
        click.echo(f"{error}\nnothing is written", err=True)
        click.get_current_context().exit(EXIT_FAILED)
    with progress(shown=sys.stderr.isatty(), unit="calls") as tell:
        text, measured = writing.document(found, loops=loops, tell=tell)
    write(beside, [writing.packed(measured)])
    write(output, [text.encode()])
    click.echo(writing.summary(found, measured), nl=False, err=True)
    click.echo(f"wrote {output} and {beside}", err=True)


def _refuse_unwritable(*paths: Path) -> None:
    """Better said before the script runs than after it."""
    for path in paths:
        folder = path.absolute().parent
        if not folder.is_dir():
            raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint="--output")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise click.BadParameter(f"'{path}' cannot be written", param_hint="--output")


def _refuse_no_script(script: Path) -> None:
    """Bytes that are no text are no script: Python would say no more than that."""
    with script.open("rb") as file:
        start = file.read(HEAD)
    if b"\0" in start:
        raise click.BadParameter(f"'{script}' is no Python script", param_hint="SCRIPT")


def _refuse_replacing(script: Path, output: Path, beside: Path) -> None:
    """Only what an earlier recording wrote is replaced: everything else is somebody's work."""
    for path in (output, beside):
        if path.exists() and path.samefile(script):
            raise click.BadParameter(f"'{path}' is the script itself", param_hint="--output")
    if output.exists() and not _says(output, "workload/1", "recorded from a script"):
        raise click.BadParameter(
            f"'{output}' is there and no recorded workload; remove it, or write another file", param_hint="--output"
        )
    if beside.exists() and not _says(beside, '"hwsim": "recording/1"'):
        raise click.BadParameter(f"'{beside}' is there and no recording; remove it, or write another file", param_hint="--output")


def _says(path: Path, *words: str) -> bool:
    """Whether all of these stand in the file: of a workload in its first lines."""
    import gzip
    import zlib

    if not path.is_file():  # such as /dev/null: nothing there is lost
        return True
    raw = path.read_bytes()
    try:
        text = gzip.decompress(raw).decode() if raw[:2] == b"\x1f\x8b" else raw[:HEAD].decode("utf-8", "replace")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return False
    return not text.strip() or all(word in text for word in words)
