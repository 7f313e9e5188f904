"""`hwsim estimate`: a step of training, or a batch of inference, in closed form, of any model."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from hwsim.cli.arguments import MACHINE, LibraryName, Text, settings_option
from hwsim.cli.paying import paying_options
from hwsim.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hwsim.costs import Bill, Paying
    from hwsim.models import Cluster, Framework
    from hwsim.models.architectures import Model, Network
    from hwsim.models.framework import Software
    from hwsim.models.step import Step
    from hwsim.results.failing import Checkpoints, Failing
    from hwsim.results.interval import Interval
    from hwsim.spec import Tree, Warning

MODEL: Final = LibraryName("model")
FRAMEWORK: Final = LibraryName("framework")
RATES: Final = LibraryName("failures")
COUNT: Final = click.IntRange(min=1)
SERVED: Final = ("fp32", "bf16", "fp16", "fp8", "int8")
TRAINED: Final = ("fp32", "tf32", "bf16", "fp16", "fp8")
_TRAINING: Final = ("pp", "dp", "cp", "ep", "microbatch", "global_batch", "sequence", "schedule", "chunks", "uneven", "sharding",
                    "recompute", "optimizer", "sequence_parallel", "plan", "tokens", "top", "failures", "storage")  # fmt: skip
_TRANSFORMER: Final = (
    "cp",
    "ep",
    "sequence",
    "chunks",
    "uneven",
    "sharding",
    "recompute",
    "sequence_parallel",
    "tokens",
    "failures",
    "storage",
)
_INFERENCE: Final = ("batch", "prompt", "output")


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
@click.option("--dtype", type=click.Choice(sorted({*TRAINED, *SERVED})), metavar="FORMAT",
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
@click.option("--plan", type=click.Choice(("auto",)), metavar="auto",
              help="Try tp, pp, microbatch, sharding and recompute, those given apart: what fits, fastest first.")  # fmt: skip
@click.option("--top", type=COUNT, default=10, metavar="N", help="Plans that --plan auto prints (default: 10).")
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
    from hwsim.cli import EXIT_MISTAKE, EXIT_VIOLATED
    from hwsim.cli.errors import in_words
    from hwsim.cli.nodes import cluster_with
    from hwsim.communication import CannotCollect
    from hwsim.devices import CannotCompute
    from hwsim.machine import NoRoute
    from hwsim.models import NotAlike, Transformer, WrongPlan
    from hwsim.models.framework import framework_of
    from hwsim.models.library import load_model, model_of
    from hwsim.views.kit import warned

    written: Tree | None = None
    if looks_written(model):
        from hwsim.cli.trained import options_of, training_of

        with in_words():
            trained = training_of(model, settings)
            if trained is not None and options["infer"]:
                raise click.UsageError(f"{model} is a workload that trains: --infer takes a model")
            if trained is not None:
                settings = trained[1]
                written, options, given = options_of(trained[0], options, given)
    _refuse_foreign(given, options["infer"])
    _refuse_half(given)
    if options["infer"] is None and options["global_batch"] is None:
        raise click.UsageError("a step needs its batch: --global-batch, examples of all replicas")
    try:
        with in_words():
            cluster, title, warnings = cluster_with(machine, settings, nodes or 1)
            network = load_model(model) if written is None else model_of(written)
            called, of_transformer = _short(model), isinstance(network, Transformer)
            _refuse_other_models(given, options["infer"], called, of_transformer=of_transformer)
            usual = ("vllm" if options["infer"] else "megatron-core") if of_transformer else "pytorch-ngc"
            software = options["framework"] or usual
            framework = framework_of(network, software)
        options["dtype"] = options["dtype"] or _usual_dtype(cluster.gpu.flop, options["infer"], of_transformer=of_transformer)
        billing = None if paying is None else _Billing(machine, settings, nodes or 1, paying)
        case = _Case(cluster, network, framework, title, called, _short(software), as_json, warnings, billing)
        text, fits = _inference(case, options) if options["infer"] else _training(case, options, given)
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
class _Billing:
    """The machine that is paid for, and how."""

    source: str
    settings: dict[str, str]
    nodes: int
    paying: Paying

    def of(
        self,
        shares: Mapping[str, float],
        seconds: float,
        done: float,
        unit: str,
        sure: Interval | None,
        fails: tuple[Checkpoints, Failing] | None = None,
        full: float = 1.0,
    ) -> Bill:
        """The bill of some seconds of what spends these shares of time.

        done, unit: what is done in them. full: part of the products at the GPU's full rate, not bound by memory.
        fails: with what failures leave of the time, and spares too.
        """
        from hwsim.cli.files import machine_with
        from hwsim.costs.bill import closed, per
        from hwsim.costs.energy import busy_of, energy_at

        machine = machine_with(self.source, self.settings)
        spares = 0.0
        if fails is not None and fails[1].seconds > 0:
            seconds, spares = fails[1].seconds, fails[1].goodput.spares / fails[1].job.nodes
        half = sure.half if sure is not None else 0.0
        energy = energy_at(machine, seconds, busy_of(shares, full), self.paying.place, half=half)
        return per(closed(machine, seconds, energy, self.paying, self.nodes, half, spares), unit, done)


@dataclass(frozen=True, slots=True)
class _Case:
    """A model on a cluster, and the form of the output."""

    cluster: Cluster
    model: Model
    framework: Framework | Software
    machine: str
    called: str
    software: str
    as_json: bool
    warnings: tuple[Warning, ...]
    billing: _Billing | None = None

    @property
    def title(self) -> str:
        gpus = self.cluster.gpus
        return f"{self.called}  on  {self.machine}, {gpus:,} GPU" + ("s" if gpus > 1 else "")

    def document(self, numbers: Mapping[str, Any], sure: Interval | None = None, bill: Bill | None = None) -> str:
        from hwsim.views.estimate.say import document

        if bill is not None:
            from hwsim.views.summary import costs

            numbers = {**numbers, **costs.as_dict(bill)}
        return document(numbers, self.machine, self.called, self.software, self.cluster.gpus, self.warnings, sure)


def _training(case: _Case, options: Mapping[str, Any], given: set[str]) -> tuple[str, bool]:
    """(what is printed, whether it fits)."""
    from hwsim.models import ParallelPlan, Transformer, estimate
    from hwsim.models.plan import replicas
    from hwsim.models.search import search
    from hwsim.views.estimate import say
    from hwsim.views.estimate.find import of_step

    values = {each.name: options[each.name] for each in dataclasses.fields(ParallelPlan) if each.name in options}
    values["sequence_parallel"] = options["tp"] > 1 if options["sequence_parallel"] is None else options["sequence_parallel"]
    if values["dtype"] not in TRAINED:
        raise click.BadParameter(f"{values['dtype']} is not a training format; choose {', '.join(TRAINED)}", param_hint="--dtype")
    if not isinstance(case.model, Transformer):
        values |= {"sharding": "none", "sequence_parallel": False}
        values["optimizer"] = options["optimizer"] if "optimizer" in given else "sgd"
        if "microbatch" not in given:
            values["microbatch"] = max(1, options["global_batch"] // replicas(ParallelPlan(**values), case.cluster.gpus))
    plan, size, tokens = ParallelPlan(**values), case.cluster.gpu.memory.size, options["tokens"]
    if options["plan"] is None:
        step = estimate(case.model, plan, case.cluster, case.framework)
        sure = of_step(step, case.cluster.gpu)
        fails = None if options["failures"] is None else _left(step, case.cluster, options)
        bill = _billed(case, step, tokens, sure, fails)
        if case.as_json:
            return case.document(say.of_training(step, size, tokens, fails, sure), sure, bill), step.fits
        return say.training(step, case.title, case.software, size, tokens, sure, fails, bill), step.fits
    plans = search(case.model, plan, case.cluster, case.framework, given)
    bill = _billed(case, plans.steps[0], tokens, of_step(plans.steps[0], case.cluster.gpu)) if plans.steps else None
    if case.as_json:
        return case.document(say.of_search(plans, size, options["top"], tokens), bill=bill), plans.nearest is None
    return say.searched(plans, case.title, case.software, size, options["top"], tokens, bill), plans.nearest is None


def _billed(
    case: _Case, step: Step, tokens: float | None, sure: Interval | None, fails: tuple[Checkpoints, Failing] | None = None
) -> Bill | None:
    """The bill of a step, or of training on all `tokens`; None where no option asks for one."""
    if case.billing is None:
        return None
    done = tokens or step.laid.tokens
    return case.billing.of(step.shares, done / step.tokens_per_second, done, step.laid.unit, sure, fails if tokens else None)


def _left(step: Step, cluster: Cluster, options: Mapping[str, Any]) -> tuple[Checkpoints, Failing]:
    """Its checkpoints, and what failures leave of the training."""
    from hwsim.cli.errors import in_words
    from hwsim.failures import NoProgress, load_failures
    from hwsim.spec import Mistake, SpecError
    from hwsim.views.estimate.failing import left

    with in_words():
        failures = load_failures(options["failures"])
        try:
            return left(step, cluster, failures, options["storage"], options["tokens"])
        except NoProgress as error:
            raise SpecError([Mistake(None, error.message, error.hint)]) from error


def _refuse_half(given: set[str]) -> None:
    """Reject --failures without what it needs, and the reverse."""
    if "failures" not in given:
        if "storage" in given:
            raise click.UsageError("--storage is of checkpoints: it goes with --failures")
        return
    for name, why in (("tokens", "the length of the training"), ("storage", "what checkpoints are written at, such as '2 TB/s'")):
        if name not in given:
            raise click.UsageError(f"--failures needs --{name}: {why}")
    if "plan" in given:
        raise click.UsageError("--failures does not go with --plan auto: ask for one of its plans")


def _inference(case: _Case, options: Mapping[str, Any]) -> tuple[str, bool]:
    """(what is printed, whether it fits)."""
    from hwsim.models import Framework, KernelTimes, Transformer, WrongPlan
    from hwsim.models.inference import batch_pass, serve
    from hwsim.units import BYTES
    from hwsim.views.estimate import say
    from hwsim.views.estimate.find import of_shares

    dtype, phase, size = options["dtype"], options["infer"], case.cluster.gpu.memory.size
    if dtype not in SERVED:
        raise click.BadParameter(f"{dtype} is not a format of inference; choose {', '.join(SERVED)}", param_hint="--dtype")
    if not isinstance(case.model, Transformer) or not isinstance(case.framework, Framework):
        software = cast("Software", case.framework)
        times = KernelTimes(case.cluster.gpu, software.kernels)
        forward = batch_pass(cast("Network", case.model), options["batch"], dtype, times, software)
        sure = of_shares(forward.shares, case.cluster.gpu, dtype, forward.seconds, "infer/cnn")
        numbers = say.of_batch(forward, options["batch"], dtype, size)
        bill = None
        if case.billing is not None:  # all GPUs do the same
            done = float(options["batch"] * case.cluster.gpus)
            bill = case.billing.of(forward.shares, forward.seconds, done, "examples", sure)
        text = (
            case.document(numbers, sure, bill)
            if case.as_json
            else say.batch(forward, options["batch"], dtype, case.title, case.software, size, sure, bill)
        )
        return text, forward.verdict == "fits"
    tokens = options["prompt"] + (options["output"] if phase == "decode" else 0)
    if tokens > case.model.sequence:
        lengths = f"{options['prompt']:,} + {options['output']:,}" if phase == "decode" else f"{tokens:,}"
        message = f"{lengths} tokens are more than the {case.model.sequence:,} that {case.called} reads"
        raise WrongPlan((("prompt", message),))
    served = serve(case.model, case.cluster, case.framework, phase=phase, tp=options["tp"], batch=options["batch"],
                   prompt=options["prompt"], output=options["output"], dtype=dtype)  # fmt: skip
    sure = of_shares(served.shares, case.cluster.gpu, dtype, served.seconds, f"infer/{phase}")
    bill = None
    if case.billing is not None:  # all groups do the same
        done = served.copies * served.tokens_per_second * served.seconds
        gpu, answers = case.cluster.gpu, phase == "decode"
        needed = gpu.flop.get(dtype, max(gpu.flop.values())) / gpu.memory.bandwidth  # FLOP for a byte at its full rate
        full = min(1.0, 2.0 * options["batch"] / BYTES[dtype] / needed) if answers else 1.0
        bill = case.billing.of(served.shares, served.seconds, done, "tokens", sure, full=full)
    if case.as_json:
        return case.document(say.of_inference(served, size), sure, bill), served.verdict == "fits"
    return say.inference(served, case.title, case.software, size, sure, bill), served.verdict == "fits"


def looks_written(source: str) -> bool:
    """Whether a name is of a file, or of a workload of the library."""
    from hwsim.spec import names

    return source.endswith((".yaml", ".yml")) or (source in names("workload") and source not in names("model"))


def _usual_dtype(formats: Mapping[str, float], infer: str | None, *, of_transformer: bool) -> str:
    """The number format if none is given; as `train:` and `infer:` have it."""
    if of_transformer:
        return "bf16" if "bf16" in formats else "fp16"
    return "fp16" if infer and "fp16" in formats else "fp32"


def _refuse_foreign(given: set[str], infer: str | None) -> None:
    """Reject training options with --infer and the reverse; they would have no effect."""
    foreign = _INFERENCE if infer is None else (*_TRAINING, *(("output",) if infer != "decode" else ()),
                                                *(("prompt", "tp") if infer == "forward" else ()))  # fmt: skip
    for name in foreign:
        if name in given:
            option = f"--{name.replace('_', '-')}"
            whose = {"output": "decoding", "prompt": "a prefill", "tp": "transformers"}.get(name, "training")
            raise click.UsageError(
                f"{option} is of inference: say --infer prefill, decode or forward" if infer is None else
                f"{option} is of {whose}, not of --infer {infer}"
            )  # fmt: skip


def _refuse_other_models(given: set[str], infer: str | None, called: str, *, of_transformer: bool) -> None:
    """Reject options of transformers for another network, and the reverse."""
    if of_transformer:
        if infer == "forward":
            raise click.UsageError(f"{called} is a transformer: --infer prefill or --infer decode")
        return
    if infer in ("prefill", "decode"):
        raise click.UsageError(f"{called} reads and writes no tokens: --infer forward")
    for name in _TRANSFORMER:
        if name in given:
            raise click.UsageError(f"--{name.replace('_', '-')} is of transformers; {called} is none")


def _short(name: str) -> str:
    """A file by its name alone."""
    return Path(name).stem if "/" in name or name.endswith((".yaml", ".yml")) else name
