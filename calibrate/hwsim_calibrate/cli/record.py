"""`hwsim record`: write the numpy and PyTorch calls of a script as a workload."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from hwsim.cli import EXIT_FAILED
from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable_outputs

SCRIPT: Final = click.Path(path_type=Path, dir_okay=False, exists=True, readable=True)
HEAD: Final = 4096  # bytes at the start of a file that identify its kind


class RecordCommand(click.Command):
    """A command that explains where to put the options of the recorded script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = f"Put arguments of the script after `--`: hwsim record SCRIPT -- ... {error.option_name}"
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None


@click.command("record", cls=RecordCommand)
@click.argument("script", type=SCRIPT)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS...]")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="The workload file (default: the script's name with .yaml).")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, metavar="N",
              help="Runs of the script: the first run records the calls, later runs time them (median).")  # fmt: skip
@click.option("--loops/--no-loops", default=True, help="Write repeated calls as `repeat` (default), or each call.")
@click.option(
    "--fake",
    is_flag=True,
    help="PyTorch only: use tensors without memory. Nothing is computed or timed, so the model may exceed the memory.",
)
def command(script: Path, arguments: tuple[str, ...], output: Path | None, runs: int, loops: bool, fake: bool) -> None:
    """Run SCRIPT and write its numpy and PyTorch calls as a workload, one statement per call.

    The time of each call is written to a second file next to the workload, for `hwsim compare`. The results of the script
    do not change. Calls without a corresponding op are listed, and written as `busy` with their measured time.
    """
    output = Path(f"{script.stem}.yaml") if output is None else output
    _require_torch(fake)
    from hwsim.cli.progress import progress
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.recording import output as recording_output

    times = recording_output.measured_path(output)
    refuse_unwritable_outputs(output, times)
    refuse_replacing(output, "recorded workload", _has("workload/1", "recorded from a script"))
    refuse_replacing(times, "recording", _has('"hwsim": "recording/1"'))
    from hwsim_calibrate.recording.script import NothingRecorded, ScriptFailed, record_script

    try:
        recording = record_script(script, arguments, runs=runs, fake=fake)
    except (ScriptFailed, NothingRecorded) as error:
        click.echo(f"{error}\nno file was written", err=True)
        click.get_current_context().exit(EXIT_FAILED)
    with progress(shown=sys.stderr.isatty(), unit="calls") as tell:
        text, measured = recording_output.document(recording, loops=loops, tell=tell)
    write(times, [recording_output.packed(measured)])
    write(output, [text.encode()])
    click.echo(recording_output.summary(recording, measured), nl=False, err=True)
    click.echo(f"wrote {output} and {times}", err=True)


def _require_torch(fake: bool) -> None:
    from importlib.util import find_spec

    if fake and find_spec("torch") is None:
        raise click.UsageError("`--fake` requires PyTorch, which is not installed")


def _has(*words: str) -> Callable[[Path], bool]:
    """Return a test whether a file contains all words; an uncompressed file must contain them in its first lines."""

    def look(path: Path) -> bool:
        raw = path.read_bytes()
        text = gzip.decompress(raw).decode() if raw[:2] == b"\x1f\x8b" else raw[:HEAD].decode("utf-8", "replace")
        return all(word in text for word in words)

    return look
