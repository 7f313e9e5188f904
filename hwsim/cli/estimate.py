"""`hwsim estimate`: a step of training, or a batch of inference, in closed form."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli.arguments import MACHINE, LibraryName, Text, settings_option
from hwsim.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hwsim.models import Cluster, Framework, Transformer
    from hwsim.spec import Warning

MODEL: Final = LibraryName("model")
FRAMEWORK: Final = LibraryName("framework")
COUNT: Final = click.IntRange(min=1)
SERVED: Final = ("fp32", "bf16", "fp16", "fp8", "int8")
TRAINED: Final = ("fp32", "tf32", "bf16", "fp16", "fp8")
_TRAINING: Final = ("pp", "dp", "cp", "ep", "microbatch", "global_batch", "sequence", "schedule", "chunks", "sharding",
                    "recompute", "optimizer", "sequence_parallel", "plan", "tokens", "top")  # fmt: skip
_INFERENCE: Final = ("batch", "prompt", "output")


class Copies(Text):
    """A number of data-parallel copies, or all GPUs that are left."""

    name = "copies"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "rest":
            return value
        if not str(value).isdigit() or int(value) < 1:
            self.fail(f"'{value}' is neither a number of copies nor rest", param, ctx)
        return int(value)


@click.command("estimate")
@click.argument("machine", type=MACHINE)
@click.argument("model", type=MODEL)
@settings_option
@click.option("--nodes", type=COUNT, metavar="N", help="So many of MACHINE, their network cards on one switch at their rate.")
@click.option("--framework", "software", type=FRAMEWORK, metavar="NAME",
              help="Whose kernels and overlaps (default: megatron-core; with --infer vllm).")  # fmt: skip
@click.option("--tp", type=COUNT, default=1, metavar="N", help="Tensor parallel (default: 1).")
@click.option("--pp", type=COUNT, default=1, metavar="N", help="Stages of a pipeline (default: 1).")
@click.option("--dp", type=Copies(), default="rest", metavar="N", help="Data-parallel copies (default: rest, all GPUs left).")
@click.option("--cp", type=COUNT, default=1, metavar="N", help="Context parallel (default: 1).")
@click.option("--ep", type=COUNT, default=1, metavar="N", help="Expert parallel, within dp (default: 1).")
@click.option("--microbatch", type=COUNT, default=1, metavar="N", help="Sequences that pass the network at once (default: 1).")
@click.option("--global-batch", type=COUNT, metavar="N", help="Sequences of a step, of all copies.")
@click.option("--sequence", type=COUNT, metavar="N", help="Tokens of a sequence (default: the model's longest).")
@click.option("--dtype", type=click.Choice(sorted({*TRAINED, *SERVED})), metavar="FORMAT",
              help="fp32, tf32, bf16, fp16, fp8, int8 (default: bf16 where the GPU has it, else fp16).")  # fmt: skip
@click.option("--schedule", type=click.Choice(("gpipe", "1f1b", "interleaved")), default="1f1b", metavar="NAME",
              help="Of a pipeline: gpipe, 1f1b, interleaved (default: 1f1b).")  # fmt: skip
@click.option("--chunks", type=COUNT, default=1, metavar="N", help="Pieces of a stage that an interleaved schedule has.")
@click.option("--sharding", type=click.Choice(("none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp")), default="zero-1",
              metavar="NAME", help="What copies share: none, zero-1, zero-2, zero-3, fsdp (default: zero-1).")  # fmt: skip
@click.option("--recompute", type=click.Choice(("none", "selective", "full")), default="none", metavar="NAME",
              help="What backward computes again: none, selective, full (default: none).")  # fmt: skip
@click.option("--sequence-parallel/--no-sequence-parallel", default=None,
              help="Norms and residuals split as the matrices are (default: with --tp).")  # fmt: skip
@click.option("--optimizer", type=click.Choice(("adam", "sgd")), default="adam", metavar="NAME", help="adam or sgd.")
@click.option("--plan", type=click.Choice(("auto",)), metavar="auto",
              help="Try tp, pp, microbatch, sharding and recompute, those given apart: what fits, fastest first.")  # fmt: skip
@click.option("--top", type=COUNT, default=10, metavar="N", help="Plans that --plan auto prints (default: 10).")
@click.option("--tokens", type=click.FloatRange(min=0, min_open=True, max=1e30), metavar="N",
              help="Days that training on so many tokens takes: 15e12.")  # fmt: skip
@click.option("--infer", type=click.Choice(("prefill", "decode")), metavar="PHASE", help="Inference instead: prefill or decode.")
@click.option("--batch", type=COUNT, default=1, metavar="N", help="Sequences of a batch of inference (default: 1).")
@click.option("--prompt", type=COUNT, default=1024, metavar="N", help="Tokens of each prompt (default: 1024).")
@click.option("--output", type=COUNT, default=128, metavar="N", help="Tokens decoded after each (default: 128).")
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: estimate/1).")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    machine: str,
    model: str,
    settings: dict[str, str],
    nodes: int | None,
    software: str | None,
    infer: str | None,
    as_json: bool,
    **said: Any,
) -> None:
    """How long a step of training MODEL, a transformer, takes on the GPUs of MACHINE, without simulating it: by kernels,
    collectives and bubble; whether it fits into their memory (exit code 3 if not).  With --infer: a batch of inference.
    """
    given = {name for name in said if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT}
    _refuse_foreign(given, infer)
    if infer is None and said["global_batch"] is None:
        raise click.UsageError("a step needs its batch: --global-batch, sequences of all copies")
    from hwsim.cli import EXIT_MISTAKE, EXIT_VIOLATED
    from hwsim.cli.errors import in_words
    from hwsim.cli.nodes import cluster_with
    from hwsim.collectives import CannotCollect
    from hwsim.devices import CannotCompute
    from hwsim.machine import NoRoute
    from hwsim.models import NotAlike, WrongPlan, load_framework, load_transformer
    from hwsim.views.kit import warned

    try:
        with in_words():
            cluster, title, warnings = cluster_with(machine, settings, nodes or 1)
            network = load_transformer(model)
            software = software or ("vllm" if infer else "megatron-core")
            framework = load_framework(software)
        what = _What(cluster, network, framework, title, _short(model), _short(software), as_json, warnings)
        said["dtype"] = said["dtype"] or ("bf16" if "bf16" in cluster.gpu.flop else "fp16")
        text, fits = _inference(what, infer, said) if infer else _training(what, said, given)
    except WrongPlan as error:
        click.echo("\n".join(message for _, message in error.mistakes), err=True)
        ctx.exit(EXIT_MISTAKE)
    except (CannotCompute, NotAlike, CannotCollect, NoRoute) as error:
        hint = getattr(error, "hint", None)
        click.echo(f"{error}" + (f"\n    hint: {hint}" if hint else ""), err=True)
        ctx.exit(EXIT_MISTAKE)
    click.echo(text if as_json else text + warned.text(warnings), nl=False)
    if not fits:
        ctx.exit(EXIT_VIOLATED)


@dataclass(frozen=True, slots=True)
class _What:
    """What is estimated, and how it is told."""

    cluster: Cluster
    model: Transformer
    framework: Framework
    machine: str
    called: str
    software: str
    as_json: bool
    warnings: tuple[Warning, ...]

    @property
    def title(self) -> str:
        gpus = self.cluster.gpus
        return f"{self.called}  on  {self.machine}, {gpus:,} GPU" + ("s" if gpus > 1 else "")

    def document(self, said: Mapping[str, Any]) -> str:
        from hwsim.views.estimate.say import document

        return document(said, self.machine, self.called, self.software, self.cluster.gpus, self.warnings)


def _training(what: _What, said: Mapping[str, Any], given: set[str]) -> tuple[str, bool]:
    """(what is printed, whether it fits)."""
    from hwsim.models import ParallelPlan, estimate
    from hwsim.models.search import search
    from hwsim.views.estimate import say as report

    names = {each.name for each in dataclasses.fields(ParallelPlan)} & set(said)
    values = {name: said[name] for name in names}
    values["sequence_parallel"] = said["tp"] > 1 if said["sequence_parallel"] is None else said["sequence_parallel"]
    if values["dtype"] not in TRAINED:
        raise click.BadParameter(f"nobody trains in {values['dtype']}: {', '.join(TRAINED)}", param_hint="--dtype")
    plan, size, tokens = ParallelPlan(**values), what.cluster.gpu.memory.size, said["tokens"]
    if said["plan"] is None:
        step = estimate(what.model, plan, what.cluster, what.framework)
        if what.as_json:
            return what.document(report.of_training(step, size, tokens)), step.verdict == "fits"
        return report.training(step, what.title, what.software, size, tokens), step.verdict == "fits"
    found = search(what.model, plan, what.cluster, what.framework, given)
    if what.as_json:
        return what.document(report.of_search(found, size, said["top"], tokens)), found.nearest is None
    return report.searched(found, what.title, what.software, size, said["top"], tokens), found.nearest is None


def _inference(what: _What, infer: str, said: Mapping[str, Any]) -> tuple[str, bool]:
    """(what is printed, whether it fits)."""
    from hwsim.models import WrongPlan
    from hwsim.models.inference import serve
    from hwsim.views.estimate import say as report

    dtype = said["dtype"]
    if dtype not in SERVED:
        raise click.BadParameter(f"nobody serves in {dtype}: {', '.join(SERVED)}", param_hint="--dtype")
    tokens = said["prompt"] + (said["output"] if infer == "decode" else 0)
    if tokens > what.model.sequence:
        asked = f"{said['prompt']:,} + {said['output']:,}" if infer == "decode" else f"{tokens:,}"
        message = f"{asked} tokens are more than the {what.model.sequence:,} that {what.called} reads"
        raise WrongPlan((("prompt", message),))
    found = serve(what.model, what.cluster, what.framework, phase="decode" if infer == "decode" else "prefill", tp=said["tp"],
                  batch=said["batch"], prompt=said["prompt"], output=said["output"], dtype=dtype)  # fmt: skip
    size, fits = what.cluster.gpu.memory.size, found.verdict == "fits"
    if what.as_json:
        return what.document(report.of_inference(found, size)), fits
    return report.inference(found, what.title, what.software, size), fits


def _refuse_foreign(given: set[str], infer: str | None) -> None:
    """Options of training beside --infer, and the other way round, would be read over in silence."""
    foreign = _INFERENCE if infer is None else (*_TRAINING, *(("output",) if infer == "prefill" else ()))
    found = [name for name in foreign if name in given]
    if found:
        option = f"--{found[0].replace('_', '-')}"
        raise click.UsageError(
            f"{option} is of inference: say --infer prefill or --infer decode" if infer is None else
            f"{option} is of {'decoding' if found[0] == 'output' else 'training'}, not of --infer {infer}"
        )  # fmt: skip


def _short(name: str) -> str:
    """A file by its name alone."""
    return Path(name).stem if "/" in name or name.endswith((".yaml", ".yml")) else name
