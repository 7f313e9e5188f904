"""`hwsim record`: a script of numpy or PyTorch becomes a workload."""

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
HEAD: Final = 4096  # bytes at the start of a file that show its kind


class Recording(click.Command):
    """A command that explains where the options of the recorded script go."""

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
              help="Runs of the script: the first records its calls, the others time them (median).")  # fmt: skip
@click.option("--loops/--no-loops", default=True, help="Write calls that repeat as `repeat` (default), or all of them.")
@click.option(
    "--fake",
    is_flag=True,
    help="Of PyTorch: arrays have shapes and no memory, and nothing is computed or timed: for models that fit no computer.",
)
def command(script: Path, arguments: tuple[str, ...], output: Path | None, runs: int, loops: bool, fake: bool) -> None:
    """Run SCRIPT, and write its calls of numpy and PyTorch as a workload: a statement for each call.

    The time of each call goes into a file next to it, for `hwsim compare`. The script gets the same results as without
    recording; calls that hwsim has no op for are written as `busy` with the time they took, and listed.
    """
    output = Path(f"{script.stem}.yaml") if output is None else output
    _refuse_fake_without(fake)
    from hwsim.cli.progress import progress
    from hwsim.views.kit.file_output import write
    from hwsim_calibrate.recording import writing

    times = writing.measured_path(output)
    refuse_unwritable_outputs(output, times)
    refuse_replacing(output, "recorded workload", _has("workload/1", "recorded from a script"))
    refuse_replacing(times, "recording", _has('"hwsim": "recording/1"'))
    from hwsim_calibrate.recording.script import NothingRecorded, ScriptFailed, record_script

    try:
        recording = record_script(script, arguments, runs=runs, fake=fake)
    except (ScriptFailed, NothingRecorded) as error:
        click.echo(f"{error}\nnothing is written", err=True)
        click.get_current_context().exit(EXIT_FAILED)
    with progress(shown=sys.stderr.isatty(), unit="calls") as tell:
        text, measured = writing.document(recording, loops=loops, tell=tell)
    write(times, [writing.packed(measured)])
    write(output, [text.encode()])
    click.echo(writing.summary(recording, measured), nl=False, err=True)
    click.echo(f"wrote {output} and {times}", err=True)


def _refuse_fake_without(fake: bool) -> None:
    """Raise if arrays without memory are wanted and PyTorch is not there."""
    from importlib.util import find_spec

    if fake and find_spec("torch") is None:
        raise click.UsageError("--fake needs PyTorch, which is not installed")


def _has(*words: str) -> Callable[[Path], bool]:
    """Whether a file contains all of these words: a workload in its first lines."""

    def look(path: Path) -> bool:
        raw = path.read_bytes()
        text = gzip.decompress(raw).decode() if raw[:2] == b"\x1f\x8b" else raw[:HEAD].decode("utf-8", "replace")
        return all(word in text for word in words)

    return look
