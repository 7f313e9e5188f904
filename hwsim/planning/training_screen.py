"""Trainings in closed form: the best parallel plan of a point, its memory and step time, and failures over the entire training.

legal plans -> memory with its margin -> lower bound of the time -> estimate of those that could be the fastest
(`hwsim.models.search`).

days = tokens / (tokens/s x goodput);  percentiles from the number of failures and the time that each failure costs
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from statistics import NormalDist
from typing import Final

from hwsim.devices import Gpu
from hwsim.failures import FailingJob, Failures, Goodput, goodput
from hwsim.failures.job import job_sized
from hwsim.families.training.workload.checkpoints import rates_of
from hwsim.families.training.workload.specification import SpecifiedTraining, specified_training
from hwsim.formats import format_quantity
from hwsim.models import Cluster, DerivedPlan, TrainingStep, Transformer, WrongPlan
from hwsim.models.library import written_model
from hwsim.models.plan import Dtype
from hwsim.models.plan_text import plan_text
from hwsim.models.search import PlanSearchResult, Search
from hwsim.planning.axes import AUTO, BATCH
from hwsim.planning.checkpoint_storage import CheckpointTimes
from hwsim.planning.question import Question, train_of
from hwsim.planning.reasons import Reason
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree

FREE: Final = ("tp", "pp", "cp", "ep", "schedule", "chunks", "uneven", "microbatch", "sharding", "recompute",
               "sequence_parallel")  # plan axes that `parallel: auto` searches  # fmt: skip
FEW: Final = 4  # maximum number of simulated plans per point


@dataclass(slots=True)
class TrainingScreen:
    """A `train:` of a workload, with the searches for its parallel plan.

    Args:
        name: name of the workload.
        tree: workload with the values of a point, except those of the parallel plan.
        question: the question.
    """

    name: str
    tree: Tree
    question: Question
    _searches: dict[str, tuple[Search, SpecifiedTraining]] = field(default_factory=dict)
    _rates: list[Failures] = field(default_factory=list)

    def stated(self, gpu: Gpu) -> SpecifiedTraining:
        """Return the training with the plan in the file.

        Raises:
            SpecError: the file has mistakes.
        """
        return self._search(gpu)[1]

    def best(self, cluster: Cluster, margin: float) -> PlanSearchResult:
        """Return the fastest plan on a cluster that fits and leaves a share `margin` of the memory free.

        Raises:
            WrongPlan: no plan divides the model and the batch.
            SpecError: the file has mistakes.
            CannotCompute: the GPU cannot run the training.
        """
        few = FEW if self.question.keys.simulate else 1
        return self._search(cluster.gpu)[0].on(cluster, margin=margin, few=few)

    def total(self, gpu: Gpu) -> float:
        """Return the tokens of the entire training; 0 if they are not stated."""
        keys, plan = self.stated(gpu).keys, self.stated(gpu).plan
        sequence = plan.sequence or self.stated(gpu).model.sequence
        return keys.tokens or (keys.epochs * keys.samples * sequence if keys.epochs and keys.samples else 0.0)

    def failures(self, gpu: Gpu) -> Failures | None:
        """Return the failure rates in the workload; None if it states none.

        Raises:
            SpecError: the failure rates have mistakes.
        """
        tree = self.stated(gpu).keys.failures
        if tree is None:
            return None
        if not self._rates:
            mistakes = Mistakes()
            rates = rates_of(tree, mistakes)
            mistakes.raise_if_any()
            self._rates += [rates] if rates is not None else []
        return self._rates[0]

    def is_transformer(self) -> bool:
        """Whether the model is a transformer, whose plans the closed form searches."""
        mistakes = Mistakes()
        tree = train_of(self.tree, mistakes)
        model = None if tree is None or tree.get("model") is None else written_model(tree.get("model") or tree, mistakes)
        mistakes.raise_if_any()
        return isinstance(model, Transformer)

    def _search(self, gpu: Gpu) -> tuple[Search, SpecifiedTraining]:
        dtypes: Dtype = "bf16" if "bf16" in gpu.flop else "fp16"
        if dtypes not in self._searches:
            self._searches[dtypes] = self._made(dtypes)
        return self._searches[dtypes]

    def _made(self, dtype: Dtype) -> tuple[Search, SpecifiedTraining]:
        mistakes = Mistakes()
        tree = train_of(self.tree, mistakes)
        if tree is not None and tree.get("loader") is not None:
            message = "a plan of a transformer has no `loader`: its closed form has only the training"
            mistakes.add(tree.key_place("loader"), message, "omit `loader`; simulate the best plan with it")
        auto = self.name in self.question.varied.auto
        if tree is not None and auto:
            tree = tree.without("parallel", *FREE)
        batch = (self.question.varied.batches or {}).get(self.name)
        training = None if tree is None else specified_training(tree, dtype, mistakes, needs_batch=batch is None)
        mistakes.raise_if_any()
        if training is None:
            raise SpecError(mistakes)
        plan, fixed, within = training.plan, training.fixed, 0.0
        if batch is not None:
            tokens = plan.sequence or training.model.sequence
            plan, within = replace(plan, global_batch=batch.sequences(tokens)), batch.within
        if not auto and not training.auto:
            fixed = fixed | set(FREE)
        return Search(training.model, plan, training.framework, fixed, within), training


def settings_of(laid: DerivedPlan, workload: str = "") -> dict[str, object]:
    """Return the parallel plan as settings of its workload, by path."""
    plan = laid.plan
    sizes = {"tp": plan.tp, "pp": plan.pp, "dp": laid.dp, "cp": plan.cp, "ep": plan.ep, "order": list(plan.order)}
    start = f"{workload or 'workload'}.train"
    return {
        f"{workload or 'workload'}.{AUTO}": sizes,
        f"{workload or 'workload'}.{BATCH}": plan.global_batch,
        f"{start}.microbatch": plan.microbatch,
        f"{start}.sharding": plan.sharding,
        f"{start}.recompute": plan.recompute,
        f"{start}.sequence_parallel": plan.sequence_parallel,
        f"{start}.schedule": plan.schedule,
        f"{start}.chunks": plan.chunks,
        f"{start}.uneven": plan.uneven,
    }


def memory_reason(plans: PlanSearchResult, size: float, margin: float) -> Reason:
    """Return the reason why no plan fits, with the plan that needs the least memory."""
    room = (1.0 - margin) * size
    step = plans.nearest
    need = step.memory.total if step is not None else math.inf
    free = f" ({margin:.0%} kept free)" if margin > 0 else ""
    shown = f"{format_quantity(need, 'B')} of {format_quantity(room, 'B')}{free}, {format_quantity(need - room, 'B')} over"
    named = "" if step is None or plans.legal < 2 else plan_text(step.laid, short=True)
    least = f" with the least of {plans.legal:,} plans, {named}" if named else ""
    return Reason("memory", shown + least, need / size, 1.0 - margin, need / room - 1.0)


def plan_reason(error: WrongPlan) -> Reason:
    """Return the reason why no plan divides the model and the batch."""
    return Reason("no plan", error.mistakes[0][1])


# ---- the whole training ----


@dataclass(frozen=True, slots=True)
class TrainingTotal:
    """An entire training with failures.

    Args:
        ideal_s: time without failures (seconds).
        mean_s: average time with failures (seconds).
        spread_s: standard deviation of the time (seconds).
        good: goodput; None without failures.
        saved: checkpoint times.
    """

    ideal_s: float
    mean_s: float
    spread_s: float
    good: Goodput | None
    job: FailingJob | None
    saved: CheckpointTimes

    def percentile(self, level: int) -> float:
        """Return a percentile of the training time (seconds)."""
        return self.mean_s + NormalDist().inv_cdf(level / 100) * self.spread_s if level != 50 else self.mean_s


def training_total(ideal_s: float, counts: Mapping[str, int], failures: Failures | None, saved: CheckpointTimes) -> TrainingTotal:
    """Return the entire training, with failures of its parts.

    Args:
        ideal_s: time without failures (seconds).
        counts: number of parts by kind.
        failures: failure rates; None: no failures.
        saved: checkpoint times.

    Raises:
        NoProgress: failures are so frequent that the training makes no progress.
    """
    if failures is None:
        return TrainingTotal(ideal_s, ideal_s * (1.0 + saved.part), 0.0, None, None, saved)

    job = job_sized(failures, dict(counts))
    restart = job.restart.loading(saved.load_s)
    good = goodput(job, saved.pause_s, restart, saved.interval_s or "auto", lag_s=saved.lag_s, near=saved.near)
    mean = good.time(ideal_s)
    square = good.down_s**2 + good.down_s * good.every_s + good.every_s**2 / 3.0  # of what a failure takes, lost work uniform
    return TrainingTotal(ideal_s, mean, math.sqrt(mean / good.mtbf_s * square), good, job, saved)


def computing_share(step: TrainingStep) -> float:
    """Return the share of a step in which kernels run on a GPU."""
    idle = ("tp", "cp", "ep", "pp", "dp", "gradients", "bubble", "host")
    return 1.0 - math.fsum(step.shares.get(name, 0.0) for name in idle) / step.seconds
