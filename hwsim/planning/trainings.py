"""Trainings in closed form: the best parallel plan of a point, its memory and its time, the failures of the whole training.

legal plans -> memory with its margin -> least time -> estimate of those that could be the fastest (`hwsim.models.search`).

days = tokens / (tokens a second x goodput);  percentiles by the number of failures and what each of them takes
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from statistics import NormalDist
from typing import Final

from hwsim.devices import Gpu
from hwsim.failures import Failures, Goodput, Job, goodput
from hwsim.failures.job import job_sized
from hwsim.families.training.workload.saving import rates_of
from hwsim.families.training.workload.stated import Stated, stated
from hwsim.formats import format_quantity
from hwsim.models import Cluster, KernelTimes, Laid, Step, Transformer, WrongPlan
from hwsim.models.library import written_model
from hwsim.models.plan import Dtype
from hwsim.models.plan_words import plan_text
from hwsim.models.search import Search, Searched
from hwsim.models.step import times_of
from hwsim.planning.axes import AUTO, BATCH
from hwsim.planning.question import Question, train_of
from hwsim.planning.reasons import Reason
from hwsim.planning.storing import Stored
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree

FREE: Final = ("tp", "pp", "ep", "microbatch", "sharding", "recompute")  # what `parallel: auto` of a plan looks for
FEW: Final = 4  # plans of a point that may be simulated


@dataclass(slots=True)
class Training:
    """A `train:` of a workload, and the searches for its plans.

    Args:
        tree: the workload with the values of a point that are no values of the plan.
    """

    name: str
    tree: Tree
    question: Question
    _searches: dict[str, tuple[Search, Stated]] = field(default_factory=dict)
    _rates: list[Failures] = field(default_factory=list)
    _times: dict[tuple[str, int], tuple[Gpu, KernelTimes]] = field(default_factory=dict)

    def stated(self, gpu: Gpu) -> Stated:
        """The plan that the file states.

        Raises:
            SpecError: its mistakes.
        """
        return self._search(gpu)[1]

    def best(self, cluster: Cluster, margin: float) -> Searched:
        """The fastest plan on a cluster that fits and leaves a part of the memory free.

        Raises:
            WrongPlan: no plan divides; SpecError: the file has mistakes; CannotCompute: the GPU does not know its numbers.
        """
        search, _ = self._search(cluster.gpu)
        key = str(search.framework), id(cluster.gpu)
        if key not in self._times:
            alike = [times for gpu, times in self._times.values() if gpu == cluster.gpu]
            self._times[key] = cluster.gpu, alike[0] if alike else times_of(cluster, search.framework)
        return search.on(cluster, times=self._times[key][1], margin=margin, few=FEW)

    def total(self, gpu: Gpu) -> float:
        """Tokens of the whole training; 0 if the file does not say."""
        keys, plan = self.stated(gpu).keys, self.stated(gpu).plan
        sequence = plan.sequence or self.stated(gpu).model.sequence
        return keys.tokens or (keys.epochs * keys.samples * sequence if keys.epochs and keys.samples else 0.0)

    def failures(self, gpu: Gpu) -> Failures | None:
        """The rates of failures that the workload states; None if it states none.

        Raises:
            SpecError: their mistakes.
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
        """Whether closed forms look for its plans."""
        mistakes = Mistakes()
        tree = train_of(self.tree, mistakes)
        model = None if tree is None or tree.get("model") is None else written_model(tree.get("model") or tree, mistakes)
        mistakes.raise_if_any()
        return isinstance(model, Transformer)

    def _search(self, gpu: Gpu) -> tuple[Search, Stated]:
        dtypes: Dtype = "bf16" if "bf16" in gpu.flop else "fp16"
        if dtypes not in self._searches:
            self._searches[dtypes] = self._made(dtypes)
        return self._searches[dtypes]

    def _made(self, dtype: Dtype) -> tuple[Search, Stated]:
        mistakes = Mistakes()
        tree = train_of(self.tree, mistakes)
        auto = self.name in self.question.varied.auto
        if tree is not None and auto:
            tree = tree.without("parallel", *FREE)
        batch = (self.question.varied.batches or {}).get(self.name)
        training = None if tree is None else stated(tree, dtype, mistakes, needs_batch=batch is None)
        mistakes.raise_if_any()
        if training is None:
            raise SpecError(mistakes)
        plan, fixed, within = training.plan, training.fixed, 0.0
        if batch is not None:
            tokens = plan.sequence or training.model.sequence
            plan, within = replace(plan, global_batch=batch.sequences(tokens)), batch.within
        if not auto and not training.auto:
            fixed = fixed | set(FREE) | {"sequence_parallel"}
        return Search(training.model, plan, training.framework, fixed, within), training


def settings_of(laid: Laid, workload: str = "") -> dict[str, object]:
    """The plan as settings of its workload, by path."""
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
        f"{start}.chunks": plan.chunks,
        f"{start}.uneven": plan.uneven,
    }


def memory_reason(plans: Searched, size: float, margin: float) -> Reason:
    """Why no plan fits, and which needs least."""
    room = (1.0 - margin) * size
    step = plans.nearest
    need = plans.least[1] if plans.least is not None else step.memory.total if step is not None else math.inf
    laid = plans.least[0] if plans.least is not None else step.laid if step is not None else None
    free = f" ({margin:.0%} kept free)" if margin > 0 else ""
    shown = f"{format_quantity(need, 'B')} of {format_quantity(room, 'B')}{free}, {format_quantity(need - room, 'B')} over"
    named = "" if laid is None or plans.tried < 2 else plan_text(laid, short=True)
    least = f" with the least of {plans.tried:,} plans, {named}" if named else ""
    return Reason("memory", shown + least, need / size, 1.0 - margin, need / room - 1.0)


def plan_reason(error: WrongPlan) -> Reason:
    """Why no plan divides."""
    return Reason("no plan", error.mistakes[0][1])


# ---- the whole training ----


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole training with failures.

    Args:
        ideal_s: without failures; mean_s: with them; spread_s: standard deviation by chance.
        good: None without failures.
        saved: what its checkpoints cost.
    """

    ideal_s: float
    mean_s: float
    spread_s: float
    good: Goodput | None
    job: Job | None
    saved: Stored

    def percentile(self, level: int) -> float:
        """Seconds that `level` of 100 such trainings stay below."""
        return self.mean_s + NormalDist().inv_cdf(level / 100) * self.spread_s if level != 50 else self.mean_s


def whole(ideal_s: float, counts: Mapping[str, int], failures: Failures | None, saved: Stored) -> Whole:
    """The whole training on a number of parts.

    Args:
        counts: GPUs and nodes; saved: what its checkpoints cost.

    Raises:
        NoProgress: it fails more often than it gets on.
    """
    if failures is None:
        return Whole(ideal_s, ideal_s * (1.0 + saved.part), 0.0, None, None, saved)

    job = job_sized(failures, dict(counts))
    restart = job.restart.loading(saved.load_s)
    good = goodput(job, saved.stop_s, restart, saved.every_s or "auto", lag_s=saved.lag_s, near=saved.near)
    mean = good.time(ideal_s)
    square = good.down_s**2 + good.down_s * good.every_s + good.every_s**2 / 3.0  # of what a failure takes, lost work uniform
    return Whole(ideal_s, mean, math.sqrt(mean / good.mtbf_s * square), good, job, saved)


def computing(step: Step) -> float:
    """Part of a step in which kernels run on a GPU."""
    idle = ("tp", "cp", "ep", "pp", "dp", "gradients", "bubble", "host")
    return 1.0 - math.fsum(step.shares.get(name, 0.0) for name in idle) / step.seconds
