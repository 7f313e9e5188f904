"""`hwsim estimate`: a step of training, or a batch of inference, in closed form, of any model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli import EXIT_VIOLATED
from hwsim.cli.arguments import MACHINE, LibraryName, Text, folded, settings_option
from hwsim.cli.paying import paying_options

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

MODEL: Final = LibraryName("model")
FRAMEWORK: Final = LibraryName("framework")
RATES: Final = LibraryName("failures")
COUNT: Final = click.IntRange(min=1)


class Replicas(Text):
    """A number of data-parallel replicas, or all GPUs that are left."""

    name = "replicas"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "rest":
            return value
        if not str(value).isdigit() or int(value) < 1:
            self.fail(f"'{value}' is neither a number of replicas nor rest", param, ctx)
        return int(value)


class Bandwidth(Text):
    """A rate of bytes, in B/s."""

    name = "bandwidth"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from hwsim.units import BANDWIDTH, UnitError, parse_as

        try:
            rate = parse_as(str(value), BANDWIDTH)
        except UnitError as error:
            self.fail(error.message, param, ctx)
        if not rate > 0:
            self.fail(f"'{value}' is no rate above 0", param, ctx)
        return rate


@click.command("estimate")
@click.argument("machine", type=MACHINE)
@click.argument("model", type=MODEL)
@settings_option
@click.option("--nodes", type=COUNT, metavar="N", help="So many of MACHINE, their network cards on one switch at their rate.")
@click.option("--framework", type=FRAMEWORK, metavar="NAME",
              help="Whose kernels and overlaps (default: megatron-core; with --infer vllm; else pytorch-ngc).")  # fmt: skip
@click.option("--tp", type=COUNT, default=1, metavar="N", help="Tensor parallel (default: 1).")
@click.option("--pp", type=COUNT, default=1, metavar="N", help="Stages of a pipeline (default: 1).")
@click.option("--dp", type=Replicas(), default="rest", metavar="N",
              help="Data-parallel replicas (default: rest, all GPUs left).")  # fmt: skip
@click.option("--cp", type=COUNT, default=1, metavar="N", help="Context parallel (default: 1).")
@click.option("--ep", type=COUNT, default=1, metavar="N", help="Expert parallel, within dp (default: 1).")
@click.option("--microbatch", type=COUNT, default=1, metavar="N",
              help="Examples that pass the network at once (default: 1 sequence; of images all of a replica).")  # fmt: skip
@click.option("--global-batch", type=COUNT, metavar="N", help="Examples of a step, of all replicas: sequences, images.")
@click.option("--sequence", type=COUNT, metavar="N", help="Tokens of a sequence (default: the model's longest).")
@click.option("--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8", "int8", "tf32")), metavar="FORMAT",
              help="fp32, tf32, bf16, fp16, fp8, int8 (default: bf16 where the GPU has it, else fp16; "
                   "other networks are trained in fp32 and serve in fp16).")  # fmt: skip
@click.option("--schedule", type=click.Choice(("gpipe", "1f1b", "interleaved")), default="1f1b", metavar="NAME",
              help="Pipeline schedule: gpipe, 1f1b or interleaved (default: 1f1b).")  # fmt: skip
@click.option("--chunks", type=COUNT, default=1, metavar="N", help="Virtual stages of a GPU in an interleaved schedule.")
@click.option("--uneven", is_flag=True, help="Stages of layers that do not divide may differ by one.")
@click.option("--sharding", type=click.Choice(("none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp")), default="zero-1",
              metavar="NAME", help="State sharded over replicas: none, zero-1 to zero-3, fsdp (default: zero-1).")  # fmt: skip
@click.option("--recompute", type=click.Choice(("none", "selective", "full")), default="none", metavar="NAME",
              help="Activations recomputed in the backward pass: none, selective, full (default: none).")  # fmt: skip
@click.option("--sequence-parallel/--no-sequence-parallel", default=None,
              help="Norms and residuals split as the matrices are (default: with --tp).")  # fmt: skip
@click.option("--optimizer", type=click.Choice(("adam", "sgd")), default="adam", metavar="NAME",
              help="adam or sgd (default: adam; of other networks sgd).")  # fmt: skip
@click.option("--plan", type=click.Choice(("auto", "every")), metavar="auto|every",
              help="Try tp, pp, microbatch, sharding and recompute, those given apart: what fits, fastest first; "
                   "every: zero-2, fsdp, cp, ep, chunks and sequence parallel, too.")  # fmt: skip
@click.option("--top", type=COUNT, default=10, metavar="N", help="Plans that --plan prints (default: 10).")
@click.option("--tokens", type=click.FloatRange(min=0, min_open=True, max=1e30), metavar="N",
              help="Days that training on so many tokens takes: 15e12.")  # fmt: skip
@click.option("--failures", type=RATES, metavar="NAME",
              help="With --tokens: goodput and days with failures, by rates of the library or of a file.")  # fmt: skip
@click.option("--storage", type=Bandwidth(), metavar="RATE",
              help="With --failures: what all nodes together write checkpoints at, such as '2 TB/s'.")  # fmt: skip
@click.option("--infer", type=click.Choice(("prefill", "decode", "forward")), metavar="PHASE",
              help="Inference instead: prefill or decode; forward: a batch through another network.")  # fmt: skip
@click.option("--batch", type=COUNT, default=1, metavar="N", help="Examples of a batch of inference (default: 1).")
@click.option("--prompt", type=COUNT, default=1024, metavar="N", help="Tokens of each prompt (default: 1024).")
@click.option("--output", type=COUNT, default=128, metavar="N", help="Tokens decoded after each (default: 128).")
@paying_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: estimate/1).")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    machine: str,
    model: str,
    settings: dict[str, str],
    nodes: int | None,
    as_json: bool,
    paying: Paying | None,
    **options: Any,
) -> None:
    """Estimate the time of a training step of MODEL, or of a workload with `train:`, on the GPUs of MACHINE, without simulating
    it, by kernels, collectives and bubble, and whether it fits into their memory (exit code 3 if not). With --infer: a batch of
    inference.
    """
    given = {name for name in options if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT}
    from hwsim.cli.errors import in_words
    from hwsim.functions.estimate import estimated
    from hwsim.functions.estimating import Misused

    with in_words():
        try:
            answer = estimated(machine, model, settings, nodes or 1, options, given, paying)
        except Misused as error:
            if error.option:
                raise click.BadParameter(error.message, param_hint=error.option) from error
            raise click.UsageError(error.message) from error
        click.echo(answer.document if as_json else folded(str(answer)), nl=False)
    if not answer.fits:
        if "infer" not in given and "plan" not in given:
            click.echo("    hint: --plan auto prints the plans that fit, fastest first", err=True)
        ctx.exit(EXIT_VIOLATED)
