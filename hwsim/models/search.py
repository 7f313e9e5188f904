"""Search for the fastest training plans that fit into memory, according to the estimated step.

All legal plans of a transformer are columns (`space`). Their memory and a lower bound of their time are sums over tables
(`plan_columns`). Plans are estimated in the order of their bounds, while they may be the fastest:

    legal (divides) -> memory, with a margin -> bound of any number of virtual stages -> bound of the plan -> estimate

A CNN or MLP has stages (pp) and micro-batches: the batch of a replica in 1, 2, 4, ... parts. All other settings, and fixed ones,
are those of the given plan. The global batch may differ by a relative tolerance (`within`), so that more replica counts divide
it.

The legal plans of a model and GPU count do not depend on the GPU, and the kernels of layers not on the network: `Search` keeps
both for other clusters.

**Error**: of the estimate, see `docs/validation/models.md`; plans that differ by less are equally good.
**Range**: effects that the estimate models, and the axes in `space`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import field, replace
from heapq import heappop, heappush
from typing import Final

import numpy as np

from hwsim.models.architectures import Model, Transformer
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework, Software
from hwsim.models.memory import SPREAD
from hwsim.models.plan import ParallelPlan, WrongPlan, derive_plan, powers_up_to, problems, replicas
from hwsim.models.plan_columns import LayerSeconds, PlanColumns
from hwsim.models.space import Floats, Ints, space
from hwsim.models.step import TrainingStep, first_stage_bound, step, times_of
from hwsim.records import dataclass

ROUNDING: Final = 1.0 - 1e-9  # a sum over columns relative to the sum for a single plan
BLOCK: Final = 64  # columns whose virtual stages and sharding are compared first; then twice as many, and so on
RULES: Final = ("not legal", "do not fit", "slower by a lower bound", "estimated")
AXES: Final = {  # by architecture: axes, and what is not searched of them
    True: ("tp", "pp", "cp", "ep", "chunks", "microbatch", "sharding", "recompute", "sequence_parallel"),
    False: ("pp", "microbatch"),
}
NOT_SEARCHED: Final = "zero-2, tp beyond a node, gpipe, shards, order of the groups: as in the plan"


@dataclass(frozen=True, slots=True)
class PlanSearchResult:
    """The result of a search.

    Args:
        steps: steps of the fastest plans that fit, fastest first.
        nearest: the plan that needs least memory, if none fits.
        counts: number of combinations by the first of `RULES` that applies to them; those not legal include equal plans.
        axes: axes that were searched.
    """

    steps: tuple[TrainingStep, ...]
    nearest: TrainingStep | None
    counts: Counter[str]
    axes: tuple[str, ...] = ()

    @property
    def legal(self) -> int:
        """Legal combinations."""
        return self.counts.total() - self.counts["not legal"]


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
    _columns: dict[tuple[int, int], PlanColumns] = field(default_factory=dict)
    _found: dict[tuple[object, ...], PlanSearchResult] = field(default_factory=dict)
    _layers: list[LayerSeconds] = field(default_factory=list)  # of each GPU type

    def on(self, cluster: Cluster, *, margin: float = 0.0, few: int = 10) -> PlanSearchResult:
        """Return the fastest plans on all GPUs of a cluster.

        Args:
            margin: share of the memory that stays free.
            few: number of steps to return.

        Raises:
            WrongPlan: no plan is legal; contains the mistakes of the given plan.
        """
        known = cluster.timed, cluster.gpus, cluster.network, cluster.bucket, margin, few
        if cluster.timed is None or known not in self._found:
            self._found[known] = self._searched(cluster, margin, few)
        return self._found[known]

    def _searched(self, cluster: Cluster, margin: float, few: int) -> PlanSearchResult:
        size = cluster.gpu.memory.size
        room = math.inf if size is None else (1.0 - margin) * size
        rooms = (room, room / (1.0 - SPREAD)) if margin <= 0 else (room,)  # plans that may fit
        if not isinstance(self.framework, Framework) or not isinstance(self.model, Transformer):
            return self._of_network(cluster, rooms, few)
        layers = next((known for known in self._layers if known.times.gpu == cluster.gpu), None)
        if layers is None:
            layers = LayerSeconds(self.framework, times_of(cluster, self.framework))
            self._layers.append(layers)
        key = cluster.gpus, min(cluster.per_node, cluster.gpus)
        if key not in self._columns:
            plans = space(self.model, self.plan, *key, self.framework, self.fixed, self.within)
            self._columns[key] = PlanColumns(plans, self.framework)
        bounded = _BoundedSearch(self._columns[key], cluster, layers)
        for limit in rooms:
            found = replace(bounded.fastest(limit, few), axes=self._axes())
            if found.steps:
                return found
        return replace(found, nearest=bounded.nearest())

    def _axes(self) -> tuple[str, ...]:
        return tuple(axis for axis in AXES[isinstance(self.model, Transformer)] if axis not in self.fixed)

    def _of_network(self, cluster: Cluster, rooms: tuple[float, ...], few: int) -> PlanSearchResult:
        """Return the plans of a CNN or MLP, each estimated; its stage boundaries depend on layer times."""
        plans = list(_network_plans(self.plan, cluster.gpus, self.fixed))
        legal = [plan for plan in plans if next(problems(self.model, plan, cluster.gpus), None) is None]
        if not legal:
            derive_plan(self.model, self.plan, cluster.gpus)  # raises the reason if the given plan is illegal
            raise WrongPlan((("plan", f"no legal plan for {cluster.gpus} GPUs"),))
        times = times_of(cluster, self.framework)
        steps = [step(derive_plan(self.model, plan, cluster.gpus), cluster, self.framework, times) for plan in legal]
        for room in rooms:
            fitting = sorted((found for found in steps if found.memory.total <= room), key=order_of)
            if fitting:
                break
        nearest = None if fitting else min(steps, key=lambda found: found.memory.total)
        counts = _counts(len(plans) - len(legal), len(legal) - len(fitting), 0, len(fitting))
        return PlanSearchResult(tuple(fitting[:few]), nearest, counts, self._axes())


@dataclass(slots=True)
class _BoundedSearch:
    """The search among the columns of a transformer's plans on a cluster."""

    columns: PlanColumns
    cluster: Cluster
    layers: LayerSeconds
    _replicas: dict[tuple[object, ...], tuple[float, float]] = field(default_factory=dict)

    def fastest(self, room: float, few: int) -> PlanSearchResult:
        """Return the fastest plans that need at most `room` bytes, each with its best chunks and sharding."""
        columns, plans = self.columns, self.columns.plans
        fitting = np.flatnonzero(columns.least_need * ROUNDING <= room)
        seconds = self.layers.least(columns, fitting, self.cluster)
        least = columns.least_seconds(fitting, seconds) / plans.batch[fitting]
        order = np.argsort(least, kind="stable")
        ahead, bounds = fitting[order], ROUNDING * least[order]
        unfit, estimated, block, begun = int(columns.counts.sum() - columns.counts[fitting].sum()), 0, BLOCK, 0
        steps, waiting, turn = dict[int, TrainingStep](), np.empty((4, 0)), 0
        tightened = list[tuple[float, int, int, int]]()
        while True:
            worst = _per_sequence([*steps.values()][-1]) if len(steps) == few else math.inf
            next_column = bounds[begun] if begun < len(ahead) else math.inf
            next_plan = waiting[0, turn] if turn < waiting.shape[1] else math.inf
            next_step = tightened[0][0] if tightened else math.inf
            nearest = min(next_column, next_plan, next_step)
            if nearest > worst or math.isinf(nearest):
                break
            if next_column == nearest:
                expanded, missed = self._expanded(ahead[begun : begun + block], seconds, room)
                unfit += missed
                waiting = np.concatenate([waiting[:, turn:], expanded], axis=1)
                waiting = waiting[:, np.argsort(waiting[0], kind="stable")]
                begun, block, turn = begun + block, 2 * block, 0
                continue
            if next_plan == nearest:
                named = waiting[1:, turn].astype(int).tolist()
                heappush(tightened, (next_plan + self._more(*named), *named))
                turn += 1
                continue
            _, column, staging, sharding = heappop(tightened)
            found = self._step(column, staging, sharding)
            if found.memory.total > room:
                unfit += 1
                continue
            estimated += 1
            if column not in steps or order_of(found) < order_of(steps[column]):
                steps[column] = found
                steps = dict(sorted(steps.items(), key=lambda item: order_of(item[1]))[:few])
        legal = int(columns.counts.sum())
        counts = _counts(plans.combinations - legal, unfit, legal - unfit - estimated, estimated)
        return PlanSearchResult(tuple(steps.values()), None, counts)

    def nearest(self) -> TrainingStep:
        """Return the plan that needs least memory."""
        columns, least, best = self.columns, self.columns.least_need, (math.inf, 0, 0, 0)
        order = np.argsort(least, kind="stable")
        for begin in range(0, len(order), BLOCK):
            block = order[begin : begin + BLOCK]
            if least[block[0]] > best[0]:
                break
            chosen, stagings = self._pairs(block)
            needs = columns.needs(chosen, stagings)
            pair, sharding = divmod(int(needs.argmin()), needs.shape[1])
            best = min(best, (float(needs.min()), int(chosen[pair]), int(stagings[pair]), sharding))
        return self._step(*best[1:])

    def _step(self, column: int, staging: int, sharding: int) -> TrainingStep:
        laid = self.columns.plans.laid(column, staging, sharding)
        return step(laid, self.cluster, self.layers.framework, self.layers.times)

    def _pairs(self, columns: Ints) -> tuple[Ints, Ints]:
        """Return columns with each of their stagings."""
        first, counts = (of_plans[columns] for of_plans in self.columns.staged)
        begins = np.repeat(first - counts.cumsum() + counts, counts)
        return np.repeat(columns, counts), begins + np.arange(counts.sum())

    def _more(self, column: int, staging: int, sharding: int) -> float:
        """Return a lower bound of the seconds per sequence of sends, updates and exchanges between replicas."""
        plans = self.columns.plans
        pp, chunks, m = int(plans.pp[column]), int(plans.stagings.chunks[staging]), int(self.columns.batches[column])
        key = (*(int(axis[column]) for axis in (plans.tp, plans.pp, plans.cp, plans.ep, plans.dp)), staging, sharding, m > 1)
        if key not in self._replicas:
            laid = plans.laid(column, staging, sharding)
            self._replicas[key] = first_stage_bound(laid, self.cluster, self.layers.framework, self.layers.times)
        last, passing = self._replicas[key]
        send = self.layers.send_seconds(self.columns, column, self.cluster) if pp > 1 else 0.0
        sends = 2.0 * (pp - 1) * send + (2.0 * min(m, pp) * chunks * send if chunks > 1 else 0.0)
        return ROUNDING * (last + m * passing + sends) / int(plans.batch[column])

    def _expanded(self, chosen: Ints, seconds: Floats, room: float) -> tuple[Floats, int]:
        """Return (bound, column, staging, sharding) of the plans of some columns that fit, and the number that do not."""
        plans, (columns, stagings) = self.columns.plans, self._pairs(chosen)
        needs = self.columns.needs(columns, stagings)
        fits = needs * ROUNDING <= room
        missed = int(np.isfinite(needs).sum() - fits.sum())
        self._drop_equal(fits)
        bounds = ROUNDING * self.columns.bounds(columns, stagings, seconds) / plans.batch[columns]
        pair, sharding = np.nonzero(fits)
        return np.stack([bounds[pair], columns[pair], stagings[pair], sharding]), missed

    def _drop_equal(self, fits: np.ndarray) -> None:
        """Drop sharding that takes the same time as less sharding that fits."""
        shardings = self.columns.plans.shardings
        if "zero-3" in shardings and "fsdp" in shardings:
            fits[:, shardings.index("fsdp")] &= ~fits[:, shardings.index("zero-3")]


def search_text(counts: Counter[str], axes: Collection[str]) -> str:
    """Return a text on the combinations that a search evaluated and rejected.

    >>> search_text(Counter({"not legal": 27, "do not fit": 1, "estimated": 18}), ("pp", "microbatch"))
    '46 combinations of pp, microbatch: 27 not legal, 1 do not fit, 0 slower by a lower bound, 18 estimated'
    """
    cut = ", ".join(f"{counts[rule]:,} {rule}" for rule in RULES)
    return f"{counts.total():,} combinations of {', '.join(axes).replace('_', ' ')}: {cut}"


def search_document(counts: Counter[str], axes: Collection[str]) -> dict[str, object]:
    """Return a search as a dict."""
    cut = {rule.replace(" ", "_"): counts[rule] for rule in RULES}
    return {"axes": list(axes), "combinations": counts.total(), **cut}


def _per_sequence(found: TrainingStep) -> float:
    return found.seconds / found.laid.plan.global_batch


def _counts(*numbers: int) -> Counter[str]:
    return Counter(dict(zip(RULES, numbers, strict=True)))


def order_of(found: TrainingStep) -> tuple[float, ...]:
    """Return the sort key of steps: faster first, then less memory, then the simpler plan."""
    plan = found.laid.plan
    return _per_sequence(found), found.memory.total, plan.pp, plan.tp, plan.cp, plan.chunks, plan.microbatch


def _network_plans(plan: ParallelPlan, gpus: int, fixed: frozenset[str]) -> Iterator[ParallelPlan]:
    """Yield the stages of a CNN or MLP, with the batch of a replica in 1, 2, 4, ... micro-batches."""
    for pp in (plan.pp,) if "pp" in fixed else range(1, gpus + 1):
        staged = replace(plan, pp=pp)
        batch = max(1, plan.global_batch // replicas(staged, gpus))
        parts = (1,) if pp == 1 else powers_up_to(batch)
        for microbatch in (plan.microbatch,) if "microbatch" in fixed else (batch // count for count in parts):
            yield replace(staged, microbatch=microbatch)
