"""`hwsim import FORMAT FILE...`: recorded runs, model configs and logs of other tools. A new format is a line."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli.arguments import FILE, refuse_replacing, refuse_unwritable, write_files
from hwsim.importers.formats import FORMATS, files_of, read
from hwsim.results.invariants import document
from hwsim.spec import did_you_mean

if TYPE_CHECKING:
    from hwsim.functions.imported import There
    from hwsim.importers.replay import Mode, Replay

HUGGINGFACE: Final = "huggingface", "Config of Hugging Face (config.json), as a model."


class Imports(click.Group):
    """A subcommand for each format, made when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [*FORMATS, HUGGINGFACE[0], *_logs().TOOLS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if cmd_name == HUGGINGFACE[0]:
            from hwsim.cli.model_files import huggingface

            return huggingface
        if cmd_name in FORMATS:
            return _recorded(cmd_name)
        found: click.Command | None = import_module("hwsim_calibrate.cli.logs").command(cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        with formatter.section("Formats"):
            formatter.write_dl([*((name, each.words) for name, each in FORMATS.items()), HUGGINGFACE])
        with formatter.section("Logs of benchmarks"):
            formatter.write_dl([(name, f"{tool.called}: {tool.becomes}.") for name, tool in _logs().TOOLS.items()])


def _logs() -> Any:
    """Readers of logs, which the simulator knows by name alone."""
    return import_module("hwsim_calibrate.logs")


@click.group("import", cls=Imports, subcommand_metavar="FORMAT FILE...")
def command() -> None:
    """Read what another tool recorded: print what it holds, and write it as a file that hwsim can run.

    A profile or trace becomes a step, and events that cannot be mapped are listed with their time. A model's config becomes a
    model, the log of a benchmark a part, or a workload that expects what was measured.
    """


def _recorded(name: str) -> click.Command:
    """The command of a format of recorded runs."""

    def run(**options: Any) -> None:
        _import(name, **options)

    decorated: Any = run
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    made: click.Command = click.command(name, help=FORMATS[name].words)(decorated)
    return made


_OPTIONS: Final = (
    click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True),
    click.option("-o", "--output", type=FILE, metavar="FILE", help="Write the step as an op graph (.npz)."),
    click.option("--step", default="all", metavar="N|all", show_default=True, help="Take one step of the run: ProfilerStep#N."),
    click.option(
        "--mode",
        type=click.Choice(["rules", "exact"]),
        default="rules",
        show_default=True,
        help="rules: nothing delays a GPU op that no rule explains; exact: every op as recorded.",
    ),
    click.option(
        "--gpu-times",
        "gpu_times",
        multiple=True,
        metavar="X|NAME=X",
        help="Let GPU ops take X times as long: all, or those with NAME in their name; can be repeated.",
    ),
    click.option("--machine", metavar="MACHINE", help="Predict the durations of operators from their shapes on this machine."),
    click.option(
        "--ranks", type=click.IntRange(min=1), metavar="N", help="GPUs in all, the new ones data parallel; on --machine."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: import/1)."),
)


def _import(
    name: str,
    files: tuple[Path, ...],
    output: Path | None,
    step: str,
    mode: Mode,
    gpu_times: tuple[str, ...],
    *,
    as_json: bool,
    **elsewhere: Any,
) -> None:
    """Read, explain, predict, print and write."""
    refuse_unwritable(output, "--output", "step", (".npz",))
    refuse_replacing(output, "step of hwsim import", _is_step)
    scale, by_name = _factors(gpu_times)
    if gpu_times and elsewhere["machine"] is not None:
        message = "the times on --machine are predicted, and these are factors on recorded times: give one of the two"
        raise click.BadParameter(message, param_hint="--gpu-times")
    from hwsim.cli.errors import in_words
    from hwsim.cli.progress import progress
    from hwsim.functions.imported import Imported
    from hwsim.importers.findings import find
    from hwsim.importers.replay import explain
    from hwsim.importers.steps import one_step

    with in_words(), progress(shown=sys.stderr.isatty(), unit="bytes") as shown:
        recording = read(name, files_of(files, name), shown)
        if step != "all":
            try:
                recording = one_step(recording, step)
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="--step") from None
        replay = explain(recording, mode)
        _refuse_nameless(replay, by_name)
        findings = find(replay, gpu_times=scale, by_name=by_name)
        predicted = _predicted(replay, **elsewhere)
        imported = Imported(recording, findings, predicted, scale, tuple(by_name.items()))
        write_files([(output, imported.save)])
    click.echo(document(imported.to_json()) if as_json else str(imported), nl=False)


def _factors(given: tuple[str, ...]) -> tuple[float, dict[str, float]]:
    """Factors on the time of GPU ops: on all, and on those with a text in their name."""
    factors: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            factor = float(number)
        except ValueError:
            factor = -1.0
        if not 0 <= factor < float("inf"):
            raise click.BadParameter(f"'{number}' is no number of 0 or more; write 2, or gemm=0.5", param_hint="--gpu-times")
        if name in factors:
            whose = f"'{name}'" if name else "all GPU ops"
            raise click.BadParameter(f"there are two factors on {whose}: give one", param_hint="--gpu-times")
        factors[name] = factor
    return factors.pop("", 1.0), factors


def _refuse_nameless(replay: Replay, by_name: dict[str, float]) -> None:
    """Raise for a text that no GPU op has in its name."""
    for text in by_name:
        if replay.named(text).any():
            continue
        labels = replay.graph.labels
        names = sorted({labels[number].name for number in replay.graph.blocks[0].label[replay.is_gpu].tolist()})
        alike = [name for name in names if text.lower() in name.lower()]
        words = [word for name in names for word in re.findall(r"[A-Za-z]{3,}", name)]
        near = did_you_mean(text, words) if words else None
        some = (
            f"the {len(names)} names are such as {', '.join(name[:60] for name in names[:3])}" if names else "it has no GPU ops"
        )
        hint = f"capitals count: '{alike[0][:60]}' has it" if alike else near if near and near.startswith("did") else some
        raise click.BadParameter(f"no GPU op of the run has '{text}' in its name; {hint}", param_hint="--gpu-times")


def _is_step(path: Path) -> bool:
    """Whether a file is one that this command writes."""
    from hwsim.importers.saved import steps_in

    return steps_in(path) > 0


def _predicted(replay: Replay, **options: Any) -> There | None:
    """The replay on --machine; None without one."""
    from hwsim.functions.estimating import Misused
    from hwsim.functions.imported import elsewhere

    try:
        return elsewhere(replay, **options)
    except Misused as error:
        raise click.BadParameter(error.message, param_hint=f"--{error.option}") from None
