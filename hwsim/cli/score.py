"""`hwsim score`: set measured numbers beside their predictions, and keep them for later predictions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
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
    """Set measured numbers beside the predictions of a run and their 90 % intervals.

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

    read = import_module("hwsim_calibrate.logs.measurements").read
    with print_errors(), progress(shown=sys.stderr.isatty(), unit="runs") as shown:
        run, paths = _run(files)
        found = score(run, [row for path in paths for row in read(path, options["model"])], set=settings, progress=shown)
        if output is not None:
            save(found.rows, output)
    with answered(lambda: click.echo(document(found.to_json()) if options["as_json"] else printed(str(found)), nl=False)):
        write_files([(plot, found.plot)])
    if options["expect_inside"] and not all(found.judged):
        click.get_current_context().exit(EXIT_VIOLATED)


def _run(files: tuple[str, ...]) -> tuple[tuple[str, str | None] | Mapping[str, Any], list[Path]]:
    """Return the run and the files of measurements."""
    from hwsim.spec.packed import read_json

    run: tuple[str, str | None] | Mapping[str, Any] = (files[0], None)
    count = 1
    if files[0].endswith(".json") and Path(files[0]).is_file():
        run = read_json(Path(files[0]))
    elif len(files) > 1 and (files[1].endswith((".yaml", ".yml")) or not Path(files[1]).exists()):
        run, count = (files[0], files[1]), 2
    if len(files) == count:
        raise click.UsageError("expected a file of measurements: hwsim score MACHINE WORKLOAD measured.csv")
    return run, [Path(file) for file in files[count:]]
