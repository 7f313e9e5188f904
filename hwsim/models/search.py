"""Search for the fastest training plans that fit into memory, according to the estimated step.

    tp            powers of two that divide the heads, up to a node's GPUs.
    pp            divisors of the layers; for a prime number of layers, powers of two with stages that differ by one layer.
    microbatch    1, 2, 4, 8, as far as the global batch allows.
    sharding      none, zero-1 (optimizer states), zero-3 (everything, only with pp 1); not zero-2 and fsdp (see `space`).
    recompute     nothing, attention scores (if they are kept), the full layer.
    ep            powers of two that divide the experts of every layer with experts.

A CNN or MLP has stages (pp) and micro-batches: the batch of a replica in 1, 2, 4, ... parts. All other settings, and fixed ones,
are those of the given plan. The global batch may differ by a relative tolerance (`within`), so that more replica counts divide
it.

    legal (divides) -> memory, with a margin -> minimum time of the blocks -> estimate, while the plan could be the fastest

The legal plans of a model and GPU count, and their memory, do not depend on the GPU; `Search` caches them for other clusters.

**Error**: of the estimate, see `docs/validation/models.md`; plans that differ by less are equally good.
**Range**: effects that the estimate models. Plans with more than one of the axes in `left_at_one` are not searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from itertools import product
from typing import Final

from hwsim.models.architectures import Model, Transformer
from hwsim.models.architectures.transformer_layers import block_name
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.memory import SPREAD
from hwsim.models.plan import (
    DerivedPlan,
    ParallelPlan,
    Recompute,
    Sharding,
    WrongPlan,
    derive_plan,
    powers_up_to,
    problems,
    replicas,
)
from hwsim.models.stages import blocks_of, largest_stage_memory
from hwsim.models.step import Passes, TrainingStep, collective, seconds_by, step, times_of, with_framework_network
from hwsim.records import dataclass

MICROBATCHES: Final = (1, 2, 4, 8)
SHARDINGS: Final[tuple[Sharding, ...]] = ("zero-0", "zero-1", "zero-3")
ROUNDING: Final = 1.0 - 1e-9
LONG: Final = 32_768  # minimum sequence length (tokens) that published trainings split
AXES: Final[Mapping[str, str]] = {"cp": "context parallel", "chunks": "interleaved stages"}


@dataclass(frozen=True, slots=True)
class PlanSearchResult:
    """The result of a search.

    Args:
        steps: steps of the plans that fit, fastest first; only the fastest ones if the search was limited.
        tried: number of legal plans.
        fitting: number of plans that fit into memory.
        nearest: the plan that needs least memory, if none fits.
        least: the plan that needs least memory among those that do not fit, and its bytes.
        left: axes that the search left at one, and whether plans of such trainings usually use them.
    """

    steps: tuple[TrainingStep, ...]
    tried: int
    fitting: int
    nearest: TrainingStep | None
    least: tuple[DerivedPlan, float] | None = None
    left: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanCandidate:
    """A legal plan with its numbers, and the bytes on the GPU that needs most."""

    laid: DerivedPlan
    need: float


@dataclass(slots=True)
class Search:
    """A search for plans of one training, on any number of any GPUs.

    Args:
        plan: the fields that all plans share.
        fixed: names of the fields that remain unchanged.
        within: relative tolerance of the global batch.
    """

    model: Model
    plan: ParallelPlan
    framework: Framework | Software
    fixed: frozenset[str] = frozenset()
    within: float = 0.0
    _candidates: dict[tuple[int, int], tuple[PlanCandidate, ...]] = field(default_factory=dict)
    _passes: dict[tuple[object, ...], Mapping[str, Passes]] = field(default_factory=dict)  # times of blocks

    def candidates(self, gpus: int, per_node: int) -> tuple[PlanCandidate, ...]:
        """Return the legal plans on a number of GPUs."""
        key = gpus, min(per_node, gpus)
        if key not in self._candidates:
            self._candidates[key] = tuple(self._divided(*key))
        return self._candidates[key]

    def on(
        self, cluster: Cluster, *, times: KernelTimes | None = None, margin: float = 0.0, few: int | None = None
    ) -> PlanSearchResult:
        """Return the plans on all GPUs of a cluster, best first.

        Args:
            times: kernel times of earlier searches, on the same GPUs with the same framework.
            margin: share of the memory that stays free.
            few: number of steps to return, fastest first; None: all.

        Raises:
            WrongPlan: no plan is legal; contains the mistakes of the given plan.
        """
        candidates = self.candidates(cluster.gpus, cluster.per_node)
        if not candidates:
            derive_plan(self.model, self.plan, cluster.gpus)  # raises the reason if the given plan is illegal
            raise WrongPlan((("plan", f"no legal plan for {cluster.gpus} GPUs"),))
        times = times or times_of(cluster, self.framework)
        size = cluster.gpu.memory.size
        room = float("inf") if size is None else (1.0 - margin) * size
        needs = candidates if isinstance(self.framework, Framework) else self._of_network(candidates, cluster, times)
        fitting = [candidate for candidate in needs if candidate.need <= room]
        least = min(
            (candidate for candidate in needs if candidate.need > room), key=lambda candidate: candidate.need, default=None
        )
        if not fitting and margin <= 0:  # plans that may fit
            fitting = [candidate for candidate in needs if candidate.need * (1.0 - SPREAD) <= room]
        estimate = partial(step, cluster=cluster, framework=self.framework, times=times)
        if few is None or len(fitting) <= few or not isinstance(self.framework, Framework):
            steps = sorted((estimate(candidate.laid) for candidate in fitting), key=order_of)[:few]
        else:
            bounds = self._bounds(fitting, cluster, times)
            steps = fastest(bounds, few, lambda laid: estimate(laid, blocks=self._blocks(laid, cluster, times)))
        nearest = None
        if not steps:
            nearest = estimate(min(needs, key=lambda candidate: candidate.need).laid)
        beyond = None if least is None else (least.laid, least.need)
        left = left_at_one(self.model, self.plan, self.fixed, cluster.gpus)
        return PlanSearchResult(tuple(steps), len(candidates), len(fitting), nearest, beyond, left)

    def _bounds(self, fitting: list[PlanCandidate], cluster: Cluster, times: KernelTimes) -> list[tuple[float, DerivedPlan]]:
        """Return (minimum seconds, plan), sorted by seconds per token: blocks and their bubble only."""
        bounds = []
        for candidate in fitting:
            laid, plan = candidate.laid, candidate.laid.plan
            blocks = self._blocks(laid, cluster, times)
            passed = math.fsum(
                kind.layers * blocks[block_name(number)].seconds for number, kind in enumerate(laid.transformer.kinds)
            )
            passes = (laid.microbatches - 1.0 / plan.chunks) / plan.pp + 1.0 / plan.chunks
            bounds.append((passes * passed, laid))
        return sorted(bounds, key=lambda bound: bound[0] / bound[1].tokens)

    def _blocks(self, laid: DerivedPlan, cluster: Cluster, times: KernelTimes) -> Mapping[str, Passes]:
        """Return the times of the blocks by name, which clusters of any number of the same nodes share."""
        plan, framework = laid.plan, self.framework
        assert isinstance(framework, Framework)
        key = (cluster.timed, plan.tp, plan.microbatch, plan.recompute, plan.sequence_parallel, plan.cp, plan.ep,
               *(laid.stride(axis) for axis in ("tp", "cp", "ep")))  # fmt: skip
        if key not in self._passes:
            exchange = partial(collective, laid=laid, cluster=with_framework_network(cluster, framework))
            seconds = seconds_by(times, exchange)
            self._passes[key] = {layer.name: Passes.of(layer, seconds) for layer in blocks_of(laid, framework)}
        return self._passes[key]

    def _of_network(
        self, candidates: tuple[PlanCandidate, ...], cluster: Cluster, times: KernelTimes
    ) -> tuple[PlanCandidate, ...]:
        """Return the candidates of a CNN or MLP with their memory; its stage boundaries depend on layer times."""
        return tuple(
            PlanCandidate(candidate.laid, step(candidate.laid, cluster, self.framework, times).memory.total)
            for candidate in candidates
        )

    def _divided(self, gpus: int, per_node: int) -> Iterator[PlanCandidate]:
        for plan in _plans(self.model, self.plan, gpus, per_node, self.framework, self.fixed):
            candidate = self._batched(plan, gpus)
            if next(problems(self.model, candidate, gpus), None) is not None:
                continue
            laid = derive_plan(self.model, candidate, gpus)
            if laid.summing == 1 and candidate.level > 0 and "sharding" not in self.fixed:  # nothing to shard: equal to zero-0
                continue
            if candidate.level == 3 and candidate.pp > 1 and "sharding" not in self.fixed:  # exchanges of zero-1, more memory
                continue
            need = largest_stage_memory(laid, self.framework).total if isinstance(self.framework, Framework) else 0.0
            yield PlanCandidate(laid, need)

    def _batched(self, plan: ParallelPlan, gpus: int) -> ParallelPlan:
        """Return the plan with the nearest global batch that its replicas divide, if it is within tolerance."""
        if self.within <= 0 or gpus % (plan.tp * plan.pp * plan.cp):
            return plan
        sequences = replicas(plan, gpus) * plan.microbatch
        batch = sequences * max(1, round(plan.global_batch / sequences))
        near = abs(batch - plan.global_batch) <= self.within * plan.global_batch * (1 + 1e-12)
        return replace(plan, global_batch=batch) if near else plan


def left_at_one(model: Model, plan: ParallelPlan, fixed: Collection[str], gpus: int) -> dict[str, bool]:
    """Return the axes that a search does not vary, and whether plans of such trainings usually use them.

    >>> model = Transformer(layers=8, hidden=128, heads=2, vocab=64)
    >>> left_at_one(model, ParallelPlan(global_batch=8, sequence=131072), (), 64)
    {'cp': True, 'chunks': False}
    """
    if gpus == 1 or not isinstance(model, Transformer) or {"tp", "pp"} <= set(fixed):
        return {}
    left = {axis: False for axis in AXES if axis not in fixed and (axis != "chunks" or plan.chunks == 1)}
    if "cp" in left:
        left["cp"] = (plan.sequence or model.sequence) >= LONG and plan.cp == 1
    return left


def untried_axes_text(left: Mapping[str, bool]) -> str:
    """Return the axes that a search did not vary as text.

    >>> untried_axes_text({"cp": True, "chunks": False})
    'cp (context parallel), chunks (interleaved stages): all plans have one of each'
    """
    return ", ".join(f"{axis} ({AXES[axis]})" for axis in left) + ": all plans have one of each"


def search(
    model: Model,
    plan: ParallelPlan,
    cluster: Cluster,
    framework: Framework | Software,
    fixed: Collection[str] = (),
    *,
    margin: float = 0.0,
    few: int | None = None,
) -> PlanSearchResult:
    """Return the plans according to the estimate, best first; as `Search.on`, once.

    Args:
        plan: the fields that all plans share.
        fixed: names of the fields that remain unchanged.

    Raises:
        WrongPlan: no plan is legal; contains the mistakes of the given plan.
    """
    return Search(model, plan, framework, frozenset(fixed)).on(cluster, margin=margin, few=few)


def fastest(
    bounds: Iterable[tuple[float, DerivedPlan]], few: int, estimate: Callable[[DerivedPlan], TrainingStep]
) -> list[TrainingStep]:
    """Return the fastest of some plans.

    Args:
        bounds: (minimum seconds of a step, plan), sorted by minimum seconds per token.
        few: number of steps to return; further plans are estimated only while they could be among them.
    """
    steps = list[TrainingStep]()
    for least, laid in bounds:
        if len(steps) == few and ROUNDING * least / laid.tokens > steps[-1].seconds / steps[-1].laid.tokens:
            break
        steps = sorted([*steps, estimate(laid)], key=order_of)[:few]
    return steps


def order_of(found: TrainingStep) -> tuple[float, float, int, int, int]:
    """Return the sort key of steps: faster first, then less memory, then the simpler plan."""
    plan = found.laid.plan
    return found.seconds / found.laid.tokens, found.memory.total, plan.pp, plan.tp, plan.microbatch


def _plans(
    model: Model, plan: ParallelPlan, gpus: int, per_node: int, framework: Framework | Software, fixed: frozenset[str]
) -> Iterator[ParallelPlan]:
    if not isinstance(model, Transformer) or not isinstance(framework, Framework):
        yield from _of_network(plan, gpus, fixed)
        return
    again: tuple[Recompute, ...] = ("none", "full")
    if framework.attention == "plain" or framework.repeated > 0:
        again = ("none", "selective", "full")
    tps = (plan.tp,) if "tp" in fixed else powers_up_to(min(per_node, model.heads))
    stages = tuple(n for n in range(1, min(model.layers, gpus) + 1) if model.layers % n == 0)
    if not any(1 < n < model.layers for n in stages) and "uneven" not in fixed:  # a prime number of layers
        stages = tuple(sorted({*stages, *powers_up_to(min(model.layers // 2, gpus))}))
    experts = [kind.experts for kind in model.kinds if kind.experts > 1]
    eps = powers_up_to(gpus) if experts and "ep" not in fixed else (plan.ep,)
    for ep, tp, pp, microbatch, sharding, recompute in product(
        [ep for ep in eps if all(count % ep == 0 for count in experts)] if experts else eps,
        tps,
        (plan.pp,) if "pp" in fixed else stages,
        (plan.microbatch,) if "microbatch" in fixed else MICROBATCHES,
        (plan.sharding,) if "sharding" in fixed else SHARDINGS,
        (plan.recompute,) if "recompute" in fixed else again,
    ):
        yield replace(
            plan,
            ep=ep,
            tp=tp,
            pp=pp,
            uneven=plan.uneven or model.layers % pp > 0,
            chunks=plan.chunks if pp > 1 else 1,
            microbatch=microbatch,
            sharding=sharding,
            recompute=recompute,
            sequence_parallel=plan.sequence_parallel if "sequence_parallel" in fixed else tp > 1,
        )


def _of_network(plan: ParallelPlan, gpus: int, fixed: frozenset[str]) -> Iterator[ParallelPlan]:
    """Yield the stages of a CNN or MLP, with the batch of a replica in 1, 2, 4, ... micro-batches."""
    for pp in (plan.pp,) if "pp" in fixed else range(1, gpus + 1):
        staged = replace(plan, pp=pp)
        batch = max(1, plan.global_batch // replicas(staged, gpus))
        parts = (1,) if pp == 1 else powers_up_to(batch)
        for microbatch in (plan.microbatch,) if "microbatch" in fixed else (batch // count for count in parts):
            yield replace(staged, microbatch=microbatch)
