"""The fastest of all legal plans of a transformer's training, from tables and columns.

Among 100,000 plans, layers differ in a few hundred cases, and replica exchanges in a few thousand. Each case is computed once, by
the functions that `hwsim.models.step` sums for a single plan. Minimum layer times and memory are then summed for all plans at
once. Plans that fit are estimated in the order of their minimum time, while they may be the fastest.

    layers    (tp, cp, ep, sequence parallel, micro-batch, recompute)   seconds of block, embedding and head; bytes kept
    states    (tp, pp, cp, ep, dp, sharding)                            bytes of a stage
    stages    (pp, chunks)                                              blocks of each stage and virtual stage

**Range**: models with identical layers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures import Transformer
from hwsim.models.architectures.transformer_layers import embedding_layer, head_layer
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.memory import FRAGMENTS, RESERVED, SPREAD, WHOLE, gathered_bytes, recomputed, training_memory
from hwsim.models.plan import DerivedPlan, ParallelPlan, WrongPlan, parts_of
from hwsim.models.search import PlanSearchResult, fastest
from hwsim.models.space import Ints, Space, space
from hwsim.models.stages import blocks_of, largest_stage_memory, slice_of
from hwsim.models.step import Passes, collective, seconds_by, step, times_of, with_framework_network
from hwsim.records import dataclass
from hwsim.units import BYTES

Floats = NDArray[np.float64]

NEAR: Final = 1e-9  # relative difference between a sum over columns and the sum for a single plan


def fastest_legal_plans(
    model: Transformer,
    plan: ParallelPlan,
    cluster: Cluster,
    framework: Framework,
    fixed: frozenset[str] = frozenset(),
    *,
    few: int = 10,
    margin: float = 0.0,
) -> PlanSearchResult:
    """Return the fastest legal plans that fit, over every combination of the axes; result as in `hwsim.models.search.search`.

    Args:
        plan: the fields that all plans share.
        fixed: names of the fields that remain unchanged.
        few: number of plans to return.
        margin: share of the memory that stays free.

    Raises:
        WrongPlan: no plan is legal, or the model has several layer kinds.
    """
    if model.runs:
        raise WrongPlan((("plan", "`--plan every` requires identical layers; use `--plan auto`"),))
    plans = space(model, plan, cluster.gpus, cluster.per_node, framework, fixed)
    times = times_of(cluster, framework)
    columns = _PlanColumns(plans, cluster, framework, times)
    least, need = columns.least(), columns.need()
    size = cluster.gpu.memory.size
    room = math.inf if size is None else (1.0 - margin) * size

    def bytes_of(number: int) -> float:
        return largest_stage_memory(plans.laid(number), framework).total

    fits = _at_most(need, room, bytes_of)
    if not fits.any() and margin <= 0:  # plans that may fit
        fits = _at_most(need * (1.0 - SPREAD), room, lambda number: bytes_of(number) * (1.0 - SPREAD))
    estimate = partial(step, cluster=cluster, framework=framework, times=times)
    if not fits.any():
        nearest = min(np.flatnonzero(need <= need.min() * (1.0 + NEAR)).tolist(), key=bytes_of)
        return PlanSearchResult((), len(plans), 0, estimate(plans.laid(nearest)))
    numbers = np.flatnonzero(fits)
    in_turn = numbers[np.argsort(least[numbers], kind="stable")].tolist()
    bounds = ((float(least[number]), plans.laid(number)) for number in in_turn)
    return PlanSearchResult(tuple(fastest(bounds, few, estimate)), len(plans), len(numbers), None)


def _at_most(column: Floats, bound: float, exactly: Callable[[int], float]) -> NDArray[np.bool_]:
    """Return whether each value is at most `bound`; values close to it are computed exactly."""
    kept = column <= bound
    for number in np.flatnonzero(np.abs(column - bound) <= NEAR * bound).tolist() if math.isfinite(bound) else ():
        kept[number] = exactly(number) <= bound
    return kept


class _Table:
    """A table of values shared by plans that are equal in some columns: one row per group, computed for its first plan."""

    def __init__(self, *columns: Any) -> None:
        code = np.zeros(len(columns[0]), np.int64)
        for column in columns:
            values, indices = np.unique(column, return_inverse=True)
            code = np.unique(code * len(values) + indices, return_inverse=True)[1]
        self.of = code
        self.first = np.unique(code, return_index=True)[1].tolist()

    def column(self, values: Sequence[float]) -> Floats:
        """Return the values of the groups as a column over the plans."""
        return np.array(values, np.float64)[self.of]


@dataclass(frozen=True, slots=True)
class _Layers:
    """Columns of layer costs: seconds per micro-batch, bytes kept, bytes recomputed."""

    block: Floats
    embedding: Floats
    head: Floats
    kept: Floats
    again: Floats


class _PlanColumns:
    """Minimum step time and memory of all plans at once, as the sums of `step` and `training_memory`."""

    def __init__(self, plans: Space, cluster: Cluster, framework: Framework, times: KernelTimes) -> None:
        self.plans, self.framework, self.times = plans, framework, times
        self.cluster = with_framework_network(cluster, framework)
        self.layers = self._layers()
        chunks = plans.chunks if plans.base.uneven else np.ones_like(plans.chunks)
        self.states = _Table(plans.tp, plans.pp, plans.cp, plans.ep, plans.dp, plans.sharding, chunks)
        self.laid = [plans.laid(number) for number in self.states.first]
        staged = _Table(plans.pp, plans.chunks)
        parts = [_parts(plans, number) for number in staged.first]
        self.first, self.second, self.last, self.widest, self.opening, self.closing = map(staged.column, zip(*parts, strict=True))

    # ---- tables ----

    def _layers(self) -> _Layers:
        plans, framework = self.plans, self.framework
        tied = (plans.pp > 1) & bool(plans.model.tied)
        strides = [plans.stride(axis) for axis in ("tp", "cp", "ep")]
        keys = (plans.tp, plans.cp, plans.ep, plans.sharded, plans.microbatch, plans.recompute)
        table = _Table(*keys, tied, plans.pp > 1, *strides)
        rows = []
        for number in table.first:
            laid = plans.laid(number)
            model, part = laid.transformer, slice_of(laid, framework)
            seconds = seconds_by(self.times, partial(collective, laid=laid, cluster=self.cluster))
            (block,) = blocks_of(laid, framework)
            copied = laid.plan.pp > 1 and model.tied
            parts = (block, embedding_layer(model, part), head_layer(model, part, copied=copied))
            rows.append((*(Passes.of(layer, seconds).seconds for layer in parts), block.kept_bytes, recomputed(laid, framework)))
        return _Layers(*map(table.column, zip(*rows, strict=True)))

    def _stage_columns(self, value: Callable[[DerivedPlan, int], float]) -> tuple[Floats, Floats, Floats]:
        """Return a value of the first, second and last stage."""
        rows = [[value(laid, stage) for stage in (0, min(1, laid.plan.pp - 1), laid.plan.pp - 1)] for laid in self.laid]
        first, second, last = map(self.states.column, zip(*rows, strict=True))
        return first, second, last

    # ---- seconds ----

    def least(self) -> Floats:
        """Return a lower bound of the step time (s), without exchanges between stages or replicas and without the step's end."""
        plans, layers = self.plans, self.layers
        pp, chunks, m = plans.pp, plans.chunks, plans.batches
        block, embedding, head = layers.block, layers.embedding, layers.head
        opened = self.first * block + embedding + np.where(pp == 1, head, 0.0)
        longest = np.where(pp == 1, opened, np.maximum(opened, self.last * block + head))
        longest = np.where(pp > 2, np.maximum(longest, self.second * block), longest)
        all_stages = plans.model.layers * block + embedding + head
        part = np.maximum(self.widest * block, np.maximum(self.opening * block + embedding, self.closing * block + head))
        filled = (all_stages - longest) / chunks
        bubble = np.where(chunks > 1, np.maximum(filled, all_stages + (m - 1) * part - m * longest), filled)
        return np.asarray(m * longest + np.where(pp > 1, bubble, 0.0), np.float64)

    # ---- bytes ----

    def need(self) -> Floats:
        """Return the bytes on a GPU of the stage that needs most."""
        plans, layers, framework = self.plans, self.layers, self.framework
        model, pp = plans.model, plans.pp
        width = BYTES[plans.base.stored]
        rows = plans.microbatch * (plans.base.sequence or model.sequence) / plans.cp
        arrays = np.where(plans.tp > 1, WHOLE * rows * model.hidden * width, 0.0)
        logits = rows * model.vocab / plans.tp * framework.logits
        states = self._stage_columns(partial(_state_bytes, framework=framework))
        gathered = self._stage_columns(lambda laid, stage: gathered_bytes(laid, framework, stage))
        largest_need = np.zeros(len(plans))
        for stage, blocks in enumerate((self.first, self.second, self.last)):
            number = np.minimum(stage, pp - 1) if stage < 2 else pp - 1
            kept = self._in_flight(number) * blocks * layers.kept + np.where(blocks > 0, layers.again, 0.0)
            buffers = arrays + np.where(number == pp - 1, logits, 0.0) + gathered[stage]
            largest_need = np.maximum(largest_need, states[stage] + FRAGMENTS * kept + RESERVED + FRAGMENTS * buffers)
        return largest_need

    def _in_flight(self, stage: Ints) -> Floats:
        """Return the micro-batches in flight in a stage; as `in_flight`."""
        plans = self.plans
        pp, chunks, m = plans.pp, plans.chunks, plans.batches
        groups = np.maximum(1, m // pp)
        warm = (pp - stage - 1) * 2 + (chunks - 1) * (m // groups + (m % groups > 0)) + 1
        flying = np.where(chunks > 1, np.minimum(warm, m * chunks) / chunks, np.minimum(pp - stage, m))
        if plans.base.schedule == "gpipe":
            flying = np.where(chunks > 1, flying, m)
        return np.where(pp == 1, 1.0, flying)


def _parts(plans: Space, number: int) -> tuple[int, ...]:
    """Return the blocks of the first, second and last stage; and the maximum, the first and the last virtual stage."""
    plan = plans.plan(number)
    first, second, last = (parts_of(plans.model, plan, stage) for stage in (0, min(1, plan.pp - 1), plan.pp - 1))
    return sum(first), sum(second), sum(last), max(*first, *second, *last), first[0], last[-1]  # integers


def _state_bytes(laid: DerivedPlan, stage: int, framework: Framework) -> float:
    footprint = training_memory(laid, framework, stage)
    return footprint.weights + footprint.gradients + footprint.optimizer
