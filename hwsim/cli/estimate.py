"""`hwsim estimate`: a training step or an inference batch of any model, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from hwsim.cli import EXIT_VIOLATED
from hwsim.cli.arguments import MACHINE, LibraryName, Text, folded, settings_option
from hwsim.cli.cost_options import paying_options

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

MODEL: Final = LibraryName("model")
FRAMEWORK: Final = LibraryName("framework")
RATES: Final = LibraryName("failures")
COUNT: Final = click.IntRange(min=1)


class Replicas(Text):
    """A number of data-parallel replicas, or `rest` for all remaining GPUs."""

    name = "replicas"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "rest":
            return value
        if not str(value).isdigit() or int(value) < 1:
            self.fail(f"expected a number of replicas or 'rest', got '{value}'", param, ctx)
        return int(value)


class Bandwidth(Text):
    """A bandwidth (B/s)."""

    name = "bandwidth"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from hwsim.units import BANDWIDTH, UnitError, parse_as

        try:
            rate = parse_as(str(value), BANDWIDTH)
        except UnitError as error:
            self.fail(error.message, param, ctx)
        if not rate > 0:
            self.fail(f"expected a bandwidth above 0, got '{value}'", param, ctx)
        return rate


@click.command("estimate")
@click.argument("machine", type=MACHINE)
@click.argument("model", type=MODEL)
@settings_option
@click.option("--nodes", type=COUNT, metavar="N", help="Number of machines, their NICs on one non-blocking switch (default: 1).")
@click.option("--framework", type=FRAMEWORK, metavar="NAME",
              help="Framework (default: megatron-core; with --infer: vllm; for other networks: pytorch-ngc).")  # fmt: skip
@click.option("--tp", type=COUNT, default=1, metavar="N", help="Tensor-parallel size (default: 1).")
@click.option("--pp", type=COUNT, default=1, metavar="N", help="Pipeline-parallel size (default: 1).")
@click.option("--dp", type=Replicas(), default="rest", metavar="N",
              help="Data-parallel size (default: rest, all remaining GPUs).")  # fmt: skip
@click.option("--cp", type=COUNT, default=1, metavar="N", help="Context-parallel size (default: 1).")
@click.option("--ep", type=COUNT, default=1, metavar="N", help="Expert-parallel size, within dp (default: 1).")
@click.option("--microbatch", type=COUNT, default=1, metavar="N",
              help="Examples per forward pass (default: 1 sequence; for images, all of a replica).")  # fmt: skip
@click.option("--global-batch", type=COUNT, metavar="N", help="Examples per step over all replicas.")
@click.option("--sequence", type=COUNT, metavar="N", help="Tokens per sequence (default: the model's maximum).")
@click.option("--dtype", type=click.Choice(("bf16", "fp16", "fp32", "fp8", "fp4", "int8", "tf32", "mxfp8", "nvfp4")),
              metavar="FORMAT", help="Number format: bf16, fp16, fp32, fp8 (mxfp8), fp4 (nvfp4), int8 or tf32 (default: bf16 "
                                     "if the GPU has it, else fp16; other networks: fp32, in inference fp16).")  # fmt: skip
@click.option("--schedule", type=click.Choice(("gpipe", "1f1b", "interleaved")), default="1f1b", metavar="NAME",
              help="Pipeline schedule: gpipe, 1f1b or interleaved (default: 1f1b).")  # fmt: skip
@click.option(
    "--chunks", type=COUNT, default=1, metavar="N", help="Virtual pipeline stages per GPU, for the interleaved schedule."
)
@click.option("--uneven", is_flag=True, help="Allow stages that differ by one layer.")
@click.option("--sharding", type=click.Choice(("none", "zero-0", "zero-1", "zero-2", "zero-3", "fsdp")), default="zero-1",
              metavar="NAME", help="Sharding of the state: none, zero-1, zero-2, zero-3, fsdp (default: zero-1).")  # fmt: skip
@click.option("--recompute", type=click.Choice(("none", "selective", "full")), default="none", metavar="NAME",
              help="Activation recomputation: none, selective or full (default: none).")  # fmt: skip
@click.option("--sequence-parallel/--no-sequence-parallel", default=None,
              help="Split norms and residuals along the sequence (default: with --tp).")  # fmt: skip
@click.option("--optimizer", type=click.Choice(("adam", "sgd")), default="adam", metavar="NAME",
              help="Optimizer: adam or sgd (default: adam; for other networks, sgd).")  # fmt: skip
@click.option("--plan", metavar="auto",
              help="List the parallel plans that fit, fastest first; options that are set stay fixed. Searched: tp, pp, cp, ep, "
                   "chunks, microbatch, sharding, recompute, sequence parallel.")  # fmt: skip
@click.option("--top", type=COUNT, default=10, metavar="N", help="Number of plans printed by --plan (default: 10).")
@click.option("--tokens", type=click.FloatRange(min=0, min_open=True, max=1e30), metavar="N",
              help="Add the days of a training on N tokens, such as 15e12.")  # fmt: skip
@click.option("--failures", type=RATES, metavar="NAME",
              help="With --tokens: goodput and days with failures; rates from the library or a file.")  # fmt: skip
@click.option("--storage", type=Bandwidth(), metavar="RATE",
              help="With --failures: checkpoint bandwidth of all nodes together, such as '2 TB/s'.")  # fmt: skip
@click.option("--infer", type=click.Choice(("prefill", "decode", "forward")), metavar="PHASE",
              help="Estimate inference: prefill, decode, or forward (networks that are not language models).")  # fmt: skip
@click.option("--batch", type=COUNT, default=1, metavar="N", help="Inference batch size (default: 1).")
@click.option("--prompt", type=COUNT, default=1024, metavar="N", help="Prompt tokens (default: 1024).")
@click.option("--output", type=COUNT, default=128, metavar="N", help="Output tokens (default: 128).")
@paying_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON (hwsim: estimate/2).")
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
    """Estimate a training step of MODEL, or of a workload with `train:`, on the GPUs of MACHINE in closed form: kernels,
    collectives, pipeline bubble and memory. With --infer: a batch of inference.

    Exit code 3 if it does not fit in GPU memory.
    """
    given = {name for name in options if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT}
    from hwsim.cli.errors import print_errors
    from hwsim.functions.estimate import compute_estimate
    from hwsim.functions.estimate_cases import OptionError

    with print_errors():
        try:
            answer = compute_estimate(machine, model, settings, nodes or 1, options, given, paying)
        except OptionError as error:
            if error.option:
                raise click.BadParameter(error.message, param_hint=error.option) from error
            raise click.UsageError(error.message) from error
        click.echo(answer.document if as_json else folded(str(answer)), nl=False)
    if not answer.fits:
        if "infer" not in given and "plan" not in given:
            click.echo("    hint: --plan auto prints the plans that fit, fastest first", err=True)
        ctx.exit(EXIT_VIOLATED)
