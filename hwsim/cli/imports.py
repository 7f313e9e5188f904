"""`hwsim import FORMAT FILE...`: read recorded runs, model configs and logs of other tools. A new format adds one line here."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli.arguments import FILE, LateOption, refuse_replacing, refuse_unwritable, write_files
from hwsim.importers.formats import FORMATS
from hwsim.results.invariants import document
from hwsim.views.kit.lines import WIDTH

if TYPE_CHECKING:
    from hwsim.importers.replay import Mode

HUGGINGFACE: Final = {"huggingface": "Config of Hugging Face (config.json), as a model."}


class Imports(LateOption):
    """A subcommand for each format."""

    def sections(self) -> dict[str, dict[str, str]]:
        return {
            "Formats": {**{name: file_format.words for name, file_format in FORMATS.items()}, **HUGGINGFACE},
            "Logs of benchmarks": {name: f"{tool.title}: {tool.becomes}." for name, tool in _logs().TOOLS.items()},
        }

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if cmd_name in HUGGINGFACE:
            from hwsim.cli.model_files import huggingface

            return huggingface
        if cmd_name in FORMATS:
            return _recorded(cmd_name)
        found: click.Command | None = import_module("hwsim_calibrate.cli.logs").command(cmd_name)
        return found


def _logs() -> Any:
    """Return the module of log parsers, a part of the package `hwsim_calibrate`."""
    return import_module("hwsim_calibrate.logs")


@click.group("import", cls=Imports, subcommand_metavar="FORMAT FILE...")
def command() -> None:
    """Read a profile, trace, model config or benchmark log of another tool.

    A profile or trace is analysed and becomes an op graph. A model config becomes a model. A benchmark log becomes a hardware
    part, or a workload with the measured results as expectations.
    """


def _recorded(name: str) -> click.Command:
    """Return the command of a format of recorded runs: parse, replay, predict, print and write."""

    @click.command(name, help=FORMATS[name].words)
    @click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
    @click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the step as an op graph (.npz).")
    @click.option("--step", default="all", metavar="N|all", show_default=True, help="Use one step of the run: ProfilerStep#N.")
    @click.option("--mode", type=click.Choice(["rules", "exact"]), default="rules", show_default=True,
                  help="rules: GPU ops start as soon as their dependencies allow; exact: as recorded.")  # fmt: skip
    @click.option("--gpu-times", "gpu_times", multiple=True, metavar="X|NAME=X",
                  help="Multiply the time of GPU ops by X: all, or those with NAME in their name; repeatable.")  # fmt: skip
    @click.option("--machine", metavar="MACHINE", help="Predict the times of operators on this machine from their shapes.")
    @click.option("--ranks", type=click.IntRange(min=1), metavar="N",
                  help="With --machine: number of GPUs; additional ones are data parallel.")  # fmt: skip
    @click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: import/2).")
    def run(
        files: tuple[Path, ...], output: Path | None, step: str, mode: Mode, gpu_times: tuple[str, ...], *, as_json: bool,
        **elsewhere: Any,
    ) -> None:  # fmt: skip
        refuse_unwritable(output, "--output", "step", (".npz",))
        refuse_replacing(output, "step of hwsim import", _is_step)
        factors = _factors(gpu_times)
        if gpu_times and elsewhere["machine"] is not None:
            message = "it scales recorded times, but --machine predicts times: use one of the two"
            raise click.BadParameter(message, param_hint="--gpu-times")
        from hwsim.cli.errors import print_errors
        from hwsim.cli.progress import progress
        from hwsim.functions.estimate_cases import OptionError
        from hwsim.functions.imported import import_run

        with print_errors(), progress(shown=sys.stderr.isatty(), unit="bytes") as shown:
            try:
                imported = import_run(name, *files, step=step, mode=mode, gpu_times=factors, progress=shown, **elsewhere)
            except OptionError as error:
                raise click.BadParameter(error.message, param_hint=f"--{error.option}") from None
            write_files([(output, imported.save)])
        click.echo(document(imported.to_json()) if as_json else str(imported), nl=False)
        if not as_json and imported.findings.recorded:
            click.echo(f"\n{_next(name, files, output, {'step': step if step != 'all' else None, **elsewhere})}")

    return run


def _next(name: str, files: Sequence[Path], output: Path | None, options: Mapping[str, Any]) -> str:
    """Return the line with the command that writes the op graph or, once it is written, explains it."""
    words = [word for key, value in options.items() if value is not None for word in (f"--{key}", str(value))]
    for paths in (map(str, files), ["FILE..."]):
        command = ["import", name, *paths, *words, "-o", "step.npz"] if output is None else ["explain", "MACHINE", str(output)]
        line = f"  next: hwsim {shlex.join(command)}"
        if len(line) <= WIDTH:
            break
    return line


def _factors(given: tuple[str, ...]) -> dict[str, float]:
    """Parse factors on the time of GPU ops, by a text in their name; "" applies to all."""
    factors: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            factor = float(number)
        except ValueError:
            factor = -1.0
        if not 0 <= factor < float("inf"):
            raise click.BadParameter(
                f"expected a number of at least 0, got '{number}'; write 2, or gemm=0.5", param_hint="--gpu-times"
            )
        if name in factors:
            whose = f"'{name}'" if name else "all GPU ops"
            raise click.BadParameter(f"expected one factor for {whose}, got two", param_hint="--gpu-times")
        factors[name] = factor
    return factors


def _is_step(path: Path) -> bool:
    """Whether this command wrote the file."""
    from hwsim.importers.saved import steps_in

    return steps_in(path) > 0
