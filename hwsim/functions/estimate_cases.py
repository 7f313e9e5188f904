"""Closed-form estimates of a model on a cluster: numbers, text and cost."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from hwsim.devices.gpu_cases import serving_case
from hwsim.failures import NoProgress, load_failures
from hwsim.functions.files import machine_with
from hwsim.models import Framework, KernelTimes, ParallelPlan, Transformer, WrongPlan, estimate
from hwsim.models.inference import batch_pass, experts_by, serve
from hwsim.models.plan import replicas
from hwsim.records import dataclass
from hwsim.results import invariants
from hwsim.spec import Mistake, SpecError
from hwsim.units import BYTES
from hwsim.views.interval import say as intervals
from hwsim.views.kit import warning_lines
from hwsim.views.kit.answer_forms import NotebookAnswer, rows_of
from hwsim.views.kit.lines import wrap_lines

if TYPE_CHECKING:
    from hwsim.costs.bill import Bill, Paying
    from hwsim.models import Cluster
    from hwsim.models.architectures import FeedForwardNetwork, Model
    from hwsim.models.framework import Software
    from hwsim.models.inference import InferencePass, ServedBatch
    from hwsim.models.search import PlanSearchResult
    from hwsim.models.step import TrainingStep
    from hwsim.results.interval import Interval
    from hwsim.results.training_failures import Checkpoints, FailureOutcome
    from hwsim.spec import Warning

INFERENCE_DTYPES: Final = ("fp32", "bf16", "fp16", "fp8", "int8")
TRAINING_DTYPES: Final = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4")
ALIASES: Final = {"mxfp8": "fp8", "nvfp4": "fp4"}


class OptionError(SpecError):
    """An error for an option that excludes another or has an unknown value; `option`: its name, such as `--dtype`, or ""."""

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__([Mistake(None, message)])
        self.message = message
        self.option = option


@dataclass(frozen=True, slots=True)
class EstimateAnswer(NotebookAnswer):
    """An estimate of a training step, of its parallel plans, or of an inference batch; tables: shares, plans, memory.

    Args:
        found: result as an object of `hwsim.models` (`TrainingStep`, `PlanSearchResult`, `ServedBatch`, `InferencePass`).
        fits: whether it fits in GPU memory; of plans, whether one of them fits.
        warnings: warnings of the machine and the options.
        text: printed text without warnings.
        document: JSON text (`hwsim: estimate/2`).
    """

    found: TrainingStep | PlanSearchResult | ServedBatch | InferencePass
    fits: bool
    warnings: tuple[Warning, ...]
    text: str
    document: str
    TABLE: ClassVar = "shares"

    @property
    def seconds(self) -> float:
        """Time of the step or the batch; of plans, of the fastest that fits (seconds)."""
        from hwsim.models.search import PlanSearchResult

        return self.found.steps[0].seconds if isinstance(self.found, PlanSearchResult) else self.found.seconds

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: estimate/2`."""
        document: dict[str, Any] = json.loads(self.document)
        return document

    def listed(self, table: str) -> list[Mapping[str, Any]]:
        """Return the rows of `shares` (parts of the time, longest first), of `memory`, or of another table of the document."""
        document = self.to_json()
        if table == "shares" and "plans" in document:
            table = "plans"
        if table not in ("shares", "memory"):
            return rows_of(document, table)
        numbers = document["shares_s" if table == "shares" else "memory"].items()
        parts = {name: value for name, value in numbers if name not in ("size", "total", "spread", "stage") and value > 0}
        if table == "memory":
            return [{"kind": name, "held_bytes": value} for name, value in parts.items()]
        total = math.fsum(parts.values())
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        return [{"work": name, "time_s": value, "share": value / total} for name, value in ordered]

    def __str__(self) -> str:
        return self.text + warning_lines.text(self.warnings)


@dataclass(frozen=True, slots=True)
class Billing:
    """A machine with its payment option."""

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
        fails: tuple[Checkpoints, FailureOutcome] | None = None,
        full: float = 1.0,
    ) -> Bill:
        """Return the energy and cost of a time that divides into these shares.

        Args:
            shares: time by kind of work (seconds).
            seconds: the time (seconds).
            done: work in that time.
            unit: unit of the work.
            sure: interval of the time.
            fails: checkpoints and failures, which lengthen the time and add spare nodes.
            full: share of the matmul time at the GPU's full rate, instead of bound by memory.
        """
        from hwsim.costs.bill import closed_form_bill, per
        from hwsim.costs.energy import busy_of, energy_at

        machine = machine_with(self.source, self.settings)
        spares = 0.0
        if fails is not None and fails[1].seconds > 0:
            seconds, spares = fails[1].seconds, fails[1].goodput.spares / fails[1].job.nodes
        half, factor = (sure.half, sure.factor) if sure is not None else (0.0, 1.0)
        seconds *= factor
        energy = energy_at(machine, seconds, busy_of(shares, full), self.paying.place, half=half)
        return per(closed_form_bill(machine, seconds, energy, self.paying, self.nodes, half, spares), unit, done)


@dataclass(frozen=True, slots=True)
class EstimateCase:
    """A model on a cluster; `settings`: changes of the files, `note`: assumptions, `loading`: adds the data loader to a step."""

    cluster: Cluster
    model: Model
    framework: Framework | Software
    machine: str
    called: str
    software: str
    warnings: tuple[Warning, ...]
    billing: Billing | None = None
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    note: str = ""
    loading: Callable[[TrainingStep], TrainingStep] | None = None

    @property
    def title(self) -> str:
        gpus = self.cluster.gpus
        settings = ", ".join(f"{path}={value}" for path, value in self.settings.items())
        changes = wrap_lines(f"set {settings}", 2) if settings else ()
        notes = wrap_lines(self.note, 2) if self.note else ()
        return "\n".join([f"{self.called} ({gpus:,} GPU{'s' if gpus > 1 else ''}), on {self.machine}", *changes, *notes])

    def answer(
        self,
        found: TrainingStep | PlanSearchResult | ServedBatch | InferencePass,
        fits: bool,
        text: str,
        numbers: Mapping[str, Any],
        sure: Interval | None = None,
        bill: Bill | None = None,
    ) -> EstimateAnswer:
        """Return the answer with its text, its numbers and the document of the case."""
        document = {"hwsim": "estimate/2", "machine": self.machine, "model": self.called, "framework": self.software, **numbers}
        if bill is not None:
            from hwsim.views.summary import costs

            document |= costs.as_dict(bill)
        if self.settings:
            document["set"] = dict(self.settings)
        document |= {"gpus": self.cluster.gpus, "warnings": warning_lines.as_dicts(self.warnings)}
        document["interval"] = None if sure is None else intervals.as_dict(sure)
        return EstimateAnswer(found, fits, self.warnings, text, invariants.document(document))


def training(case: EstimateCase, options: Mapping[str, Any], given: set[str]) -> EstimateAnswer:
    """Estimate a training step, or find the fastest parallel plans.

    Raises:
        OptionError: the number format is not a training format.
        WrongPlan: the plan does not divide the model.
    """
    from hwsim.models.search import Search
    from hwsim.views.estimate import say
    from hwsim.views.estimate.find import step_interval

    values = {field.name: options[field.name] for field in dataclasses.fields(ParallelPlan) if field.name in options}
    values["sequence_parallel"] = options["tp"] > 1 if options["sequence_parallel"] is None else options["sequence_parallel"]
    if values["dtype"] not in TRAINING_DTYPES:
        raise OptionError(f"{values['dtype']} is not a training format; choose {', '.join(TRAINING_DTYPES)}", "--dtype")
    if not isinstance(case.model, Transformer):
        values |= {"sharding": "none", "sequence_parallel": False}
        values["optimizer"] = options["optimizer"] if "optimizer" in given else "sgd"
        if "microbatch" not in given:
            values["microbatch"] = max(1, options["global_batch"] // replicas(ParallelPlan(**values), case.cluster.gpus))
    plan, size, tokens = ParallelPlan(**values), case.cluster.gpu.memory.size, options["tokens"]
    if options["plan"] is None:
        alone = step = estimate(case.model, plan, case.cluster, case.framework)
        if case.loading is not None:
            step = case.loading(step)
        sure = step_interval(step, case.cluster, case.framework) if step.seconds == alone.seconds else None
        fails = None if options["failures"] is None else _left(step, case.cluster, options)
        bill = _billed(case, step, tokens, sure, fails)
        text = say.training(step, case.title, case.software, size, tokens, sure, fails, bill)
        return case.answer(step, step.fits, text, say.of_training(step, size, tokens, fails, sure), sure, bill)
    search = Search(case.model, plan, case.framework, frozenset(given))
    plans = search.on(case.cluster, few=options["top"] + 1)
    bill = (
        _billed(case, plans.steps[0], tokens, step_interval(plans.steps[0], case.cluster, case.framework))
        if plans.steps
        else None
    )
    text = say.searched(plans, case.title, case.software, size, options["top"], tokens, bill)
    return case.answer(plans, plans.nearest is None, text, say.of_search(plans, size, options["top"], tokens), bill=bill)


def _billed(
    case: EstimateCase,
    step: TrainingStep,
    tokens: float | None,
    sure: Interval | None,
    fails: tuple[Checkpoints, FailureOutcome] | None = None,
) -> Bill | None:
    """Return energy and cost of a step, or of training on `tokens`; None if no option requests them."""
    if case.billing is None:
        return None
    done = tokens or step.laid.tokens
    return case.billing.of(step.shares, done / step.tokens_per_second, done, step.laid.unit, sure, fails if tokens else None)


def _left(step: TrainingStep, cluster: Cluster, options: Mapping[str, Any]) -> tuple[Checkpoints, FailureOutcome]:
    """Return the checkpoint times and the effect of failures on the training."""
    from hwsim.views.estimate.find import training_with_failures

    failures = load_failures(options["failures"])
    try:
        return training_with_failures(step, cluster, failures, options["storage"], options["tokens"])
    except NoProgress as error:
        raise SpecError.of(None, error.message, error.hint) from error


def inference(case: EstimateCase, options: Mapping[str, Any]) -> EstimateAnswer:
    """Estimate an inference batch.

    Raises:
        OptionError: the number format is not an inference format.
        WrongPlan: the sequence exceeds the model's maximum.
    """
    from hwsim.views.estimate import say
    from hwsim.views.estimate.find import estimate_with_interval

    dtype, phase, size = options["dtype"], options["infer"], case.cluster.gpu.memory.size
    if dtype not in INFERENCE_DTYPES:
        raise OptionError(f"{dtype} is not a format of inference; choose {', '.join(INFERENCE_DTYPES)}", "--dtype")
    if not isinstance(case.model, Transformer) or not isinstance(case.framework, Framework):
        software = cast("Software", case.framework)

        def passing(at: Cluster) -> InferencePass:
            times = KernelTimes(at.gpu, software.kernels)
            return batch_pass(cast("FeedForwardNetwork", case.model), options["batch"], dtype, times, software)

        forward, sure = estimate_with_interval(passing, case.cluster, dtype, "infer/cnn")
        numbers = say.of_batch(forward, options["batch"], dtype, size)
        bill = None
        if case.billing is not None:  # all GPUs do the same
            done = float(options["batch"] * case.cluster.gpus)
            bill = case.billing.of(forward.shares, forward.seconds, done, "examples", sure)
        text = say.batch(forward, options["batch"], dtype, case.title, case.software, size, sure, bill)
        return case.answer(forward, forward.verdict == "fits", text, numbers, sure, bill)
    tokens = options["prompt"] + (options["output"] if phase == "decode" else 0)
    if tokens > case.model.sequence:
        lengths = f"{options['prompt']:,} + {options['output']:,}" if phase == "decode" else f"{tokens:,}"
        message = f"{lengths} tokens are more than the {case.model.sequence:,} that {case.called} reads"
        raise WrongPlan((("prompt", message),))
    regime = f"infer/{phase}"
    if phase == "decode" and case.framework.server.prompts is not None:  # whole answers of such servers were measured
        regime = f"tpot/{'experts' if any(kind.experts > 1 for kind in case.model.kinds) else 'dense'}"
    experts = experts_by(case.model, case.cluster.gpu, dtype, case.framework.kernels)
    sureness = serving_case(case.cluster.gpu, dtype, experts) if regime.startswith("tpot/") else "known"
    model, framework, sizes = case.model, case.framework, {name: options[name] for name in ("tp", "batch", "prompt", "output")}

    def serving(at: Cluster) -> ServedBatch:
        return serve(model, at, framework, phase=phase, dtype=dtype, **sizes)

    served, sure = estimate_with_interval(serving, case.cluster, dtype, regime, sureness)
    bill = None
    if case.billing is not None:  # all groups do the same
        done = served.replicas * served.tokens_per_second * served.seconds
        gpu, answers = case.cluster.gpu, phase == "decode"
        needed = gpu.flop.get(dtype, max(gpu.flop.values())) / gpu.memory.bandwidth  # FLOP for a byte at its full rate
        full = min(1.0, 2.0 * options["batch"] / BYTES[dtype] / needed) if answers else 1.0
        bill = case.billing.of(served.shares, served.seconds, done, "tokens", sure, full=full)
    text = say.inference(served, case.title, case.software, size, sure, bill)
    return case.answer(served, served.verdict == "fits", text, say.of_inference(served, size), sure, bill)
