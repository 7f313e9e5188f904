"""`hwsim score`: set measured numbers beside their predictions, and keep them for later predictions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hwsim.cli import EXIT_VIOLATED
from hwsim.cli.arguments import FILE, answered, printed, refuse_unwritable, settings_option, write_files
from hwsim.results.invariants import document


@click.command("score")
@click.argument("files", nargs=-1, required=True, metavar="MACHINE [WORKLOAD] MEASUREMENTS...")
@settings_option
@click.option("--model", default="", metavar="NAME", help="Server logs: the model, by name or file.")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: score/1).")
@click.option("--plot", type=FILE, metavar="FILE", help="Write a figure (.png, .svg or .pdf).")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Keep the ratios for later predictions (hwsim: scores/1).")
@click.option("--expect-inside", is_flag=True, help="Exit code 3 if a value is outside its 90 % interval.")
def command(files: tuple[str, ...], settings: dict[str, str], plot: Path | None, output: Path | None, **options: Any) -> None:
    """Compare measured numbers with the predictions of a run and their 90 % intervals.

    The run is a MACHINE and a WORKLOAD, or a result of `hwsim simulate --json` instead of both. MEASUREMENTS are tables
    (.csv with the columns measure, value, unit and settings), profiles of a training, or logs of vLLM, SGLang, aiperf, guidellm,
    inference-perf, nccl-tests and fio. Logs state their workload, so WORKLOAD can be omitted.
    """
    refuse_unwritable(plot)
    refuse_unwritable(output, "--output", "file", ())
    from hwsim.cli.errors import print_errors
    from hwsim.cli.progress import progress
    from hwsim.scoring import score
    from hwsim.scoring.answer import save

    with print_errors(), progress(shown=sys.stderr.isatty(), unit="runs") as shown:
        found = score(*_arguments(files), set=settings, model=options["model"], progress=shown)
        if output is not None:
            save(found.rows, output)
    with answered(lambda: click.echo(document(found.to_json()) if options["as_json"] else printed(str(found)), nl=False)):
        write_files([(plot, found.plot)])
    if options["expect_inside"] and not all(found.judged):
        click.get_current_context().exit(EXIT_VIOLATED)


def _arguments(files: tuple[str, ...]) -> tuple[Any, str | None, tuple[str, ...]]:
    """Return the machine or the document of a run, the workload, and the files of measurements."""
    from hwsim.spec.packed import read_json

    first, *rest = files
    is_saved = first.endswith(".json") and Path(first).is_file()
    has_workload = bool(rest) and not is_saved and (rest[0].endswith((".yaml", ".yml")) or not Path(rest[0]).exists())
    if len(rest) == has_workload:
        raise click.UsageError("expected a file of measurements: hwsim score MACHINE WORKLOAD measured.csv")
    return read_json(Path(first)) if is_saved else first, rest[0] if has_workload else None, tuple(rest[has_workload:])
