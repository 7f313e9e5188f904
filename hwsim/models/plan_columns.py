"""Bounds of the time, and memory, of all plans of a transformer's training at once, as the sums of `step` and `training_memory`.

Among 100,000 plans, layers differ in a few hundred cases. Cases with the same matrices are computed together, for slices of a
micro-batch of every size: kernels once per GPU type, exchanges once per cluster.

    layers        (tp, cp, ep, sequence parallel, micro-batch, recompute)   seconds of each kind of block, embedding and head
    activations   (tp, ep, sequence parallel, recompute)                    bytes kept and recomputed per sequence
    parameters    (tp, ep)                                                  parameters of each kind of block, embedding and head
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import field, replace
from functools import reduce
from typing import Any, Final

import numpy as np

from hwsim.models.architectures.transformer_layers import embedding_layer, head_layer
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Axis, Exchange, Item, Kernel
from hwsim.models.memory import FRAGMENTS, OPTIMIZER, RESERVED, WHOLE, activations, layer_share
from hwsim.models.plan import DerivedPlan
from hwsim.models.space import Floats, Ints, Space
from hwsim.models.stages import blocks_of, slice_of
from hwsim.models.step import GroupExchange, group_exchange, with_framework_network
from hwsim.records import dataclass
from hwsim.units import BYTES

LayerKey = tuple[Any, ...]
SIZES: Final = 6  # a bound times exchanges of 2**6, 2**12, ... bytes
WITHIN: Final[tuple[Axis, ...]] = ("tp", "cp", "ep")  # axes of exchanges within layers
LEAST: Final = 0.9  # time per token of a kernel without columns, relative to the largest slice of a micro-batch
ROUNDING: Final = 1.0 - 1e-12


class PlanColumns:
    """The plans of a search space as columns, with the inputs of their time and memory, except seconds."""

    def __init__(self, plans: Space, framework: Framework) -> None:
        self.plans, self.framework = plans, framework
        kinds = plans.model.kinds
        self.all_layers = np.array([*(kind.layers for kind in kinds), 1, 1], np.float64)
        self.cases, self.layer_of = _cases(plans.tp, plans.cp, plans.ep, plans.microbatch, plans.recompute, plans.sharded,
                                           *([] if _is_usual(plans) else (plans.pp, plans.dp)))  # fmt: skip
        self.strides = plans.strides()
        names = (plans.tp, plans.cp, plans.ep, plans.microbatch, plans.recompute, plans.sharded)
        keys = [column[self.cases].tolist() for column in (*names, *(self.strides[axis] for axis in WITHIN))]
        self.layer_keys: list[LayerKey] = list(zip(*keys, strict=True))
        per_sequence, self.activations_of = _cases(plans.tp, plans.ep, plans.recompute, plans.sharded)
        self.activations = np.array([self._activations(column) for column in per_sequence.tolist()])
        shared, self.parameters_of = _cases(plans.tp, plans.ep, plans.pp > 1)
        self.parameters = np.array([self._parameters(column) for column in shared.tolist()])
        self.batches, self.staged, self.shardable = plans.batches, plans.staged, plans.shardable()
        self.counts = self.staged[1] * self.shardable.sum(axis=0)
        self.least_need = self._least_need()

    def _activations(self, column: int) -> tuple[list[float], list[float]]:
        """Return the bytes that each layer keeps, and recomputes, for one whole sequence."""
        plans, framework = self.plans, self.framework
        plan = replace(plans.laid(column).plan, microbatch=1, cp=1)
        sequence, kinds, outside = plan.sequence or plans.model.sequence, plans.model.kinds, [0.0, 0.0]
        kept = [activations(kind, plan, sequence, framework.attention, framework.repeated) for kind in kinds]
        if plan.recompute == "none" or (plan.recompute == "selective" and framework.repeated <= 0):
            return kept + outside, [0.0] * len(kinds) + outside
        full = replace(plan, recompute="none")
        return kept + outside, [activations(kind, full, sequence, framework.attention) for kind in kinds] + outside

    def _parameters(self, column: int) -> tuple[list[float], list[float]]:
        """Return the parameters of each layer on one GPU, and the parameters of its experts if they are split."""
        model, plan = self.plans.model, self.plans.laid(column).plan
        copied = model.vocab * model.hidden if plan.pp > 1 and model.tied else 0
        outside = [model.embedding_parameters / plan.tp, (model.head_parameters + copied) / plan.tp]
        experts = [
            kind.experts * kind.expert_parameters / (plan.tp * plan.ep) if plan.ep > 1 and kind.experts > 1 else 0.0
            for kind in model.kinds
        ]
        return [layer_share(kind, plan) for kind in model.kinds] + outside, [*experts, 0.0, 0.0]

    # ---- seconds ----

    def least_seconds(self, columns: Ints, seconds: Floats) -> Floats:
        """Return a lower bound of the step time (s) for any number of virtual stages.

        Args:
            seconds: seconds of the layers of each case.
        """
        plans = self.plans
        pp, whole = plans.pp[columns], seconds[self.layer_of[columns]] @ self.all_layers
        chunks = np.maximum(1, (plans.model.layers + 2) // pp)
        least: Floats = whole / pp * (self.batches[columns] + (pp - 1) / chunks)
        return least

    def bounds(self, columns: Ints, stagings: Ints, seconds: Floats) -> Floats:
        """Return a lower bound of the step time (s), without exchanges between stages or replicas and without the step's end."""
        plans, of_layers = self.plans, seconds[self.layer_of[columns]]
        m, chunks = self.batches[columns], plans.stagings.chunks[stagings]
        longest = _largest(_summed(plans.stagings.rows[stagings], of_layers))
        whole, part = of_layers @ self.all_layers, _largest(_summed(plans.stagings.parts[stagings], of_layers))
        filled = (whole - longest) / chunks
        bubble = np.where(chunks > 1, np.maximum(filled, whole + (m - 1) * part - m * longest), filled)
        bound: Floats = m * longest + bubble
        return bound

    # ---- bytes ----

    def needs(self, columns: Ints, stagings: Ints) -> Floats:
        """Return the bytes on a GPU of the stage that needs most: plans x shardings."""
        plans = self.plans
        pp, chunks, m = (
            column[:, None] for column in (plans.pp[columns], plans.stagings.chunks[stagings], self.batches[columns])
        )
        number = plans.stagings.numbers[stagings]
        groups = np.maximum(1, m // pp)
        warm = (pp - number - 1) * 2 + (chunks - 1) * (m // groups + (m % groups > 0)) + 1
        flying = np.where(chunks > 1, np.minimum(warm, m * chunks) / chunks, np.minimum(pp - number, m))
        if plans.base.schedule == "gpipe":
            flying = np.where((chunks > 1) | (pp == 1), flying, m)
        return self._needs(columns, plans.stagings.rows[stagings], flying)

    def _least_need(self) -> Floats:
        """Return a lower bound of the bytes for any number of virtual stages and any sharding, by the first stage."""
        plans, columns = self.plans, np.arange(len(self.plans))
        known, of = np.unique(plans.pp, return_inverse=True)
        first = (plans.stagings.numbers == 0) & (plans.stagings.pp == known[:, None])[:, :, None]
        rows = np.stack([plans.stagings.rows[chosen].min(axis=0) for chosen in first])[of][:, None, :]
        flying = np.minimum(plans.pp, self.batches)[:, None]
        least: Floats = self._needs(columns, rows, flying).min(axis=1)
        return least

    def _needs(self, columns: Ints, rows: Floats, flying: Floats) -> Floats:
        """Return the bytes of the stage that needs most, plans x shardings; infinite for shardings that are omitted."""
        plans, framework, base = self.plans, self.framework, self.plans.base
        tp, pp, cp, ep, dp, microbatch = (
            column[columns][:, None] for column in (plans.tp, plans.pp, plans.cp, plans.ep, plans.dp, plans.microbatch)
        )
        w, gradient = BYTES[base.stored], framework.gradient_bytes(base.stored)
        kept_of, again_of = self.activations[self.activations_of[columns]].transpose(1, 0, 2) * (microbatch / cp)
        parameters_of, experts_of = self.parameters[self.parameters_of[columns]].transpose(1, 0, 2)
        parameters, experts = _summed(rows, parameters_of), _summed(rows, experts_of)
        sharers = np.minimum(dp, base.shards or dp) * cp
        spread = (parameters - experts) / sharers + experts / np.maximum(1, sharers // ep)
        kept = flying * _summed(rows, kept_of) + _largest(again_of[:, None] * (rows > 0))
        tokens = microbatch * (base.sequence or plans.model.sequence) / cp
        buffers = np.where(tp > 1, WHOLE * tokens * plans.model.hidden * w, 0.0)
        buffers = buffers + rows[:, :, -1] * (tokens * plans.model.vocab / tp * framework.logits)
        always = RESERVED + FRAGMENTS * (kept + buffers)
        layers = parameters_of[:, None, :-2]
        gathered = _largest(layers * (rows[:, :, :-2] > 0)) * (2 * w + gradient)
        outside = parameters - (layers * rows[:, :, :-2]).sum(axis=2)
        optimizer, needs = OPTIMIZER[base.optimizer] - (4.0 if w == 4.0 else 0.0), []
        for sharding, shardable in zip(plans.shardings, self.shardable[:, columns], strict=True):
            level = replace(base, sharding=sharding).level
            shared = (0.0, optimizer, gradient + optimizer, optimizer)[level]
            whole = w + gradient + optimizer - shared
            need = always + whole * parameters + shared * spread
            if level == 3:
                fsdp = sharding == "fsdp"
                states = 4.0 + OPTIMIZER[base.optimizer] if fsdp else w + gradient + optimizer
                full = always + states * spread + FRAGMENTS * (gathered + (outside * 2 * w if fsdp else 0.0))
                need = np.where(pp == 1, full, need)
            needs.append(np.where(shardable, _largest(need), math.inf))
        return np.stack(needs, axis=1)


def _summed(rows: Floats, of_layers: Floats) -> Floats:
    """Return the sums over the layers of each stage: plans x stages."""
    sums: Floats = np.einsum("psl,pl->ps", rows, of_layers)
    return sums


def _largest(values: Floats) -> Floats:
    """Return the maxima over the last axis, whose length is small."""
    largest: Floats = reduce(np.maximum, np.moveaxis(values, -1, 0))
    return largest


def _cases(*columns: Any) -> tuple[Ints, Ints]:
    """Return the first plan of each combination of values, and the combination of each plan."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        column = column.astype(np.int64)
        code = code * (int(column.max()) + 1) + column
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return first, of


def _is_usual(plans: Space) -> bool:
    """Whether groups within layers consist of the nearest GPUs, whatever the number of stages and replicas."""
    order = [axis for axis in plans.base.order if axis in ("tp", "cp", "ep", "pp", "dp")]
    return order[-2:] == ["pp", "dp"] and "ep" in order


# ---- seconds of layers ----


@dataclass(frozen=True, slots=True)
class _LayerWork:
    """Work of the largest slice of a micro-batch.

    Args:
        seconds: lower bounds of the kernel time of blocks by kind, embedding and head, for slices of every size: sizes x layers.
        exchanges: (layer, times, axis, arguments).
    """

    seconds: Floats
    exchanges: tuple[tuple[int, float, Axis, GroupExchange], ...]


@dataclass(slots=True)
class _OnCluster:
    """Known numbers of a cluster: lower bounds of the seconds of layers, and seconds of exchanges."""

    cluster: Cluster
    bounds: dict[LayerKey, Floats] = field(default_factory=dict)
    exchanges: dict[GroupExchange, float] = field(default_factory=dict)

    def exchange(self, arguments: GroupExchange) -> float:
        if arguments not in self.exchanges:
            self.exchanges[arguments] = self.cluster.seconds(*arguments)
        return self.exchanges[arguments]


class LayerSeconds:
    """Seconds of layers on GPUs of one type: kernels computed once, exchanges once per cluster."""

    def __init__(self, framework: Framework, times: KernelTimes) -> None:
        self.framework, self.times = framework, times
        self._works: dict[LayerKey, _LayerWork] = {}
        self._kernels: dict[tuple[Kernel, int], Floats] = {}
        self._known: dict[Hashable, _OnCluster] = {}

    def least(self, columns: PlanColumns, chosen: Ints, cluster: Cluster) -> Floats:
        """Return lower bounds of the seconds of the layers of each case that chosen plans need; others are 0."""
        known, seconds = self._on(cluster), np.zeros((len(columns.cases), len(columns.all_layers)))
        slices, cases = dict[LayerKey, list[int]](), np.unique(columns.layer_of[chosen])
        for case in cases.tolist():
            if columns.layer_keys[case] not in known.bounds:
                tp, cp, ep, _, *others = columns.layer_keys[case]
                slices.setdefault((tp, cp > 1, ep, *others[:2]), []).append(case)
        for alike in slices.values():
            self._bound(columns, alike, known)
        for case in cases.tolist():
            seconds[case] = known.bounds[columns.layer_keys[case]]
        return seconds

    def send_seconds(self, columns: PlanColumns, column: int, cluster: Cluster) -> float:
        """Return the seconds of a send between stages."""
        plans = columns.plans
        tp, cp, microbatch = (int(axis[column]) for axis in (plans.tp, plans.cp, plans.microbatch))
        rows = microbatch * (plans.base.sequence or plans.model.sequence) // cp
        parted = tp if self.framework.split or plans.sharded[column] else 1
        size = rows * plans.model.hidden * BYTES[plans.base.stored] / parted
        return self._on(cluster).exchange(("send", size, 2, int(columns.strides["pp"][column]), 0))

    def _on(self, cluster: Cluster) -> _OnCluster:
        """Return what is known of a cluster as the framework uses it."""
        cluster = with_framework_network(cluster, self.framework)
        known = self._known.setdefault((cluster.timed, cluster.per_node), _OnCluster(cluster))
        known.cluster = cluster
        return known

    def _work(self, plans: Space, laid: DerivedPlan) -> _LayerWork:
        """Return the work of the largest micro-batch."""
        most = max(plans.microbatches)
        largest, double = (replace(laid, plan=replace(laid.plan, microbatch=count)) for count in (most, 2 * most))
        layers, parts, times = self._layers(largest), plans.sizes * laid.plan.cp / most, defaultdict[Any, float](float)
        seconds = np.zeros((len(parts), len(layers)))
        for number, items in enumerate(zip(layers, self._layers(double), strict=True)):
            for item, twice in zip(*items, strict=True):
                if isinstance(item, Exchange):
                    times[number, item.axis, group_exchange(item, largest)] += item.times * item.exposed
                elif isinstance(twice, Kernel):
                    if (item, laid.plan.cp) not in self._kernels:
                        self._kernels[item, laid.plan.cp] = self._by_parts(item, twice, parts)
                    seconds[:, number] += self._kernels[item, laid.plan.cp]
        return _LayerWork(seconds, tuple((number, count, axis, sent) for (number, axis, sent), count in times.items()))

    def _layers(self, laid: DerivedPlan) -> list[tuple[Item, ...]]:
        """Return the items of blocks by kind, embedding and head."""
        model, part = laid.transformer, slice_of(laid, self.framework)
        layers = (*blocks_of(laid, self.framework), embedding_layer(model, part), head_layer(model, part))
        return [(*layer.forward, *layer.recompute, *layer.backward) for layer in layers]

    def _bound(self, columns: PlanColumns, cases: list[int], known: _OnCluster) -> None:
        """Enter bounds of cases that differ only in the size of their slice of a micro-batch.

        An exchange is as efficient as one with more bytes, so that few sizes are timed.
        """
        plans, keys = columns.plans, [columns.layer_keys[case] for case in cases]
        case, (tp, cp, *others) = min(zip(cases, keys, strict=True), key=lambda pair: pair[1][1])
        most, name = max(plans.microbatches), (tp, cp, *others[:1], *others[2:])
        if name not in self._works:
            self._works[name] = self._work(plans, plans.laid(int(columns.cases[case])))
        work = self._works[name]
        bounds = work.seconds[np.searchsorted(plans.sizes, [key[3] / key[1] for key in keys])]
        for bound, key in zip(bounds, keys, strict=True):
            ranks, strides = dict(zip(WITHIN, key[:3], strict=True)), dict(zip(WITHIN, key[-3:], strict=True))
            for layer, times, axis, (operation, most_bytes, _, _, copies) in work.exchanges:
                size = most_bytes * key[3] / most * (1.0 if axis == "cp" else cp / key[1])
                timed = 2.0 ** (SIZES * math.ceil(math.log2(size) / SIZES))
                bound[layer] += times * size / timed * known.exchange((operation, timed, ranks[axis], strides[axis], copies))
            known.bounds[key] = bound

    def _by_parts(self, kernel: Kernel, double: Kernel, parts: Floats) -> Floats:
        """Return lower bounds of the seconds of a kernel for parts of its tokens; `double` has twice as many tokens."""
        call, product = kernel.work.attention, kernel.work.product
        if call is not None:
            sequences: Any = call.sequences * parts
            return self.times.attending(kernel, replace(call, sequences=sequences))[0]
        if product is not None:
            for tokens, larger in (product.m, replace(product, m=2 * product.m)), (product.k, replace(product, k=2 * product.k)):
                rows, depth = np.ceil(ROUNDING * tokens * parts), larger.k > product.k
                found = self.times.by_rows(kernel, rows, depth=depth, streamed=True) if double.work.product == larger else None
                if found is not None:
                    return found[0]
        once, both, work = self.times.seconds(kernel), self.times.seconds(double), self.times.asked(kernel)
        if product is None and work.experts is None and work.working_set is None:  # a start, and a time per byte
            return once + (both - once) * (parts - 1.0)
        return once * np.where(parts < 1, LEAST * parts, 1.0)
