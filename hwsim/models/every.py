"""The fastest of all legal plans of a transformer's training: tables by what a layer and a collective depend on, then columns.

Among 100,000 plans, a few hundred differ in what a layer computes, and a few thousand in what replicas exchange. Each of these is
worked out once, by the functions that `hwsim.models.step` sums for a single plan; the sums are then taken for all plans at once.
Those that come out fastest are estimated once more as single plans, and their numbers are what `estimate` says.

    layers    (tp, cp, ep, sequence parallel, micro-batch, recompute)   seconds of block, embedding and head; bytes kept
    states    (tp, pp, cp, ep, dp, sharding)                            bytes of a stage, optimizer, exchanges between replicas
    stages    (pp, chunks)                                              blocks of each stage and virtual stage

**Range**: models whose layers are all alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.models import hiding
from hwsim.models.architectures import Transformer
from hwsim.models.architectures.transformer_layers import embedding_layer, head_layer
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Exchange, Item, exchanges, kernels
from hwsim.models.memory import FRAGMENTS, RESERVED, SPREAD, WHOLE, gathered_bytes, recomputed, stage_parameters, training_memory
from hwsim.models.plan import Laid, ParallelPlan, WrongPlan, parts_of
from hwsim.models.search import Searched, order_of
from hwsim.models.space import Ints, Space, space
from hwsim.models.stages import adding_of, blocks_of, ending_of, gathered_of, largest, slice_of
from hwsim.models.step import Passes, collective, seconds_by, sped, step, times_of
from hwsim.records import dataclass
from hwsim.units import BYTES

Floats = NDArray[np.float64]

NEAR: Final = 1e-9  # part by which a sum of columns may differ from the sum of a single plan


def every(
    model: Transformer,
    plan: ParallelPlan,
    cluster: Cluster,
    framework: Framework,
    fixed: frozenset[str] = frozenset(),
    *,
    few: int = 10,
    margin: float = 0.0,
) -> Searched:
    """The fastest legal plans that fit, as `hwsim.models.search.search` finds them, of every combination of the axes.

    Args:
        plan: the fields that all of them share; fixed: names of its fields that stay as they are.
        few: how many are wanted; margin: part of the memory that stays free.

    Raises:
        WrongPlan: no plan is legal, or the model has layers of several kinds.
    """
    if model.runs:
        raise WrongPlan((("plan", "layers of several kinds are not searched for every plan: `auto` tries some"),))
    plans = space(model, plan, cluster.gpus, cluster.per_node, framework, fixed)
    times = times_of(cluster, framework)
    columns = _Columns(plans, cluster, framework, times)
    seconds, need = columns.seconds(), columns.need()
    size = cluster.gpu.memory.size
    room = math.inf if size is None else (1.0 - margin) * size

    def bytes_of(number: int) -> float:
        return largest(plans.laid(number), framework).total

    fits = _at_most(need, room, bytes_of)
    if not fits.any() and margin <= 0:  # those that may
        fits = _at_most(need * (1.0 - SPREAD), room, lambda number: bytes_of(number) * (1.0 - SPREAD))
    estimate = partial(step, cluster=cluster, framework=framework, times=times)
    if not fits.any():
        nearest = min(_least(need, 1), key=bytes_of)
        return Searched((), len(plans), 0, estimate(plans.laid(nearest)))
    numbers = np.flatnonzero(fits)
    tried = [int(numbers[each]) for each in _least(seconds[numbers], few)]
    steps = sorted((estimate(plans.laid(number)) for number in tried), key=order_of)
    return Searched(tuple(steps[:few]), len(plans), len(numbers), None, estimated=len(tried))


def _at_most(column: Floats, bound: float, exactly: Callable[[int], float]) -> NDArray[np.bool_]:
    """Whether each is at most `bound`; those that are near are worked out singly."""
    kept = column <= bound
    for number in np.flatnonzero(np.abs(column - bound) <= NEAR * bound).tolist() if math.isfinite(bound) else ():
        kept[number] = exactly(number) <= bound
    return kept


def _least(column: Floats, few: int) -> Sequence[int]:
    """Numbers of the `few` smallest, and of all that rounding does not tell from the last of them."""
    last = np.partition(column, min(few, len(column)) - 1)[min(few, len(column)) - 1]
    found: list[int] = np.flatnonzero(column <= last * (1.0 + NEAR)).tolist()
    return found


class _Table:
    """Values that plans share if they are alike in some columns: a row for each such group, made from its first plan."""

    def __init__(self, *columns: Any) -> None:
        code = np.zeros(len(columns[0]), np.int64)
        for column in columns:
            values, which = np.unique(column, return_inverse=True)
            code = np.unique(code * len(values) + which, return_inverse=True)[1]
        self.of = code
        self.first = np.unique(code, return_index=True)[1].tolist()

    def column(self, values: Sequence[float]) -> Floats:
        """A value of each group, as a column of the plans."""
        return np.array(values, np.float64)[self.of]


@dataclass(frozen=True, slots=True)
class _Layers:
    """Columns of what the layers of a plan take: seconds of a micro-batch, bytes kept of it and bytes passed on.

    ends: seconds of embedding and head, forward.
    """

    table: _Table
    forward: Floats
    backward: Floats
    embedding: Floats
    head: Floats
    ends: Floats
    passed: Floats
    kept: Floats
    again: Floats

    @property
    def block(self) -> Floats:
        return self.forward + self.backward


class _Columns:
    """Seconds of a step, and bytes on the fullest GPU, of all plans at once: the sums of `step` and of `training_memory`."""

    def __init__(self, plans: Space, cluster: Cluster, framework: Framework, times: KernelTimes) -> None:
        self.plans, self.framework, self.times = plans, framework, times
        self.cluster = sped(cluster, framework)
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
        alike = (plans.tp, plans.cp, plans.ep, plans.sharded, plans.microbatch, plans.recompute)
        table = _Table(*alike, tied, plans.pp > 1, *strides)
        rows = []
        for number in table.first:
            laid = plans.laid(number)
            model, part = laid.transformer, slice_of(laid, framework)
            seconds = seconds_by(self.times, partial(collective, laid=laid, cluster=self.cluster))
            (block,) = blocks_of(laid, framework)
            passes = Passes.of(block, seconds)
            copied = laid.plan.pp > 1 and model.tied
            ends = (embedding_layer(model, part), head_layer(model, part, copied=copied))
            parted = part.tensor if framework.split or part.sharded else 1
            ended = [Passes.of(each, seconds) for each in ends]
            rows.append((
                math.fsum(passes.forward.values()), math.fsum(passes.backward.values()),
                *(each.seconds for each in ended), math.fsum(math.fsum(each.forward.values()) for each in ended),
                block.output_bytes / parted,
                block.kept_bytes, recomputed(laid, framework),
            ))  # fmt: skip
        return _Layers(table, *map(table.column, zip(*rows, strict=True)))

    def _of_states(self, value: Callable[[Laid, int], float]) -> tuple[Floats, Floats, Floats]:
        """A value of the first, the second and the last stage."""
        rows = [[value(laid, stage) for stage in (0, min(1, laid.plan.pp - 1), laid.plan.pp - 1)] for laid in self.laid]
        first, second, last = map(self.states.column, zip(*rows, strict=True))
        return first, second, last

    # ---- seconds ----

    def seconds(self) -> Floats:
        """Seconds of a step."""
        plans, layers = self.plans, self.layers
        pp, chunks, m = plans.pp, plans.chunks, plans.batches
        block, embedding, head = layers.block, layers.embedding, layers.head
        opened = self.first * block + embedding + np.where(pp == 1, head, 0.0)
        longest = np.where(pp == 1, opened, np.maximum(opened, self.last * block + head))
        longest = np.where(pp > 2, np.maximum(longest, self.second * block), longest)
        every = plans.model.layers * block + embedding + head
        part = np.maximum(self.widest * block, np.maximum(self.opening * block + embedding, self.closing * block + head))
        filled = (every - longest) / chunks
        bubble = np.where(chunks > 1, np.maximum(filled, every + (m - 1) * part - m * longest), filled)
        sent = self._sent()
        later = (every - opened + 2.0 * (pp - 2) * sent) / np.maximum(1, pp - 1)  # from one micro-batch to the next
        waited = (m - 1) * np.maximum(0.0, np.maximum(later, (every + 2.0 * (pp - 1) * sent) / pp) - longest)
        waited = np.where(chunks > 1, 2.0 * np.minimum(m, pp) * chunks * sent, waited * (plans.base.schedule != "gpipe"))
        piped = bubble + waited + 2.0 * (pp - 1) * sent
        total = m * longest + np.where(pp > 1, piped, 0.0) + self._replicated(opened, bubble)
        return total + self.framework.step if self.framework.step > 0 else total

    def _sent(self) -> Floats:
        """Seconds of a message from a stage to the next."""
        plans = self.plans
        table = _Table(self.layers.table.of, plans.stride("pp"), plans.pp > 1)
        sizes, strides = self.layers.passed[table.first].tolist(), plans.stride("pp")[table.first].tolist()
        staged = (plans.pp > 1)[table.first].tolist()
        return table.column([
            self.cluster.seconds("send", size, 2, stride) if several else 0.0
            for size, stride, several in zip(sizes, strides, staged, strict=True)
        ])  # fmt: skip

    def _replicated(self, opened: Floats, bubble: Floats) -> Floats:
        """Seconds of gradients, optimizer and shared weights that nothing hides, less the part of the bubble that they fill.

        opened: seconds of a micro-batch in the first stage.
        """
        plans, layers = self.plans, self.layers
        added = self.states.column([self._added(laid) for laid in self.laid])
        total = np.where(plans.batches > 1, plans.batches * added, 0.0)
        befores = (0.0 * opened, opened, opened + (plans.pp - 2) * self.second * layers.block)
        ending, filled = self._ending(self.first, 0), befores[0]
        for at, blocks, before in zip((1, -1), (self.second, self.last), befores[1:], strict=True):
            other, sooner = self._ending(blocks, at), before / plans.chunks
            later = (plans.pp > 1) & (other - sooner > ending - filled)
            ending, filled = np.where(later, other, ending), np.where(later, sooner, filled)
        total += ending - np.minimum(filled, bubble)
        gathers = plans.gathers & (plans.dp * plans.cp > 1)
        return total + np.where(gathers, self._gathering(), 0.0) if gathers.any() else total

    def _added(self, laid: Laid) -> float:
        """Seconds to add the gradients of a micro-batch, of several."""
        parameters = stage_parameters(laid.transformer, laid.plan, 0)
        return math.fsum(map(self.times.seconds, adding_of(replace(laid, microbatches=2), self.framework, parameters)))

    def _ending(self, blocks: Floats, at: int) -> Floats:
        """Seconds of the end of a step that nothing hides in the first stage, the second or the last (at -1); blocks: of it."""
        plans, layers, exposed = self.plans, self.layers, self.framework.gradients
        numbers = [at % laid.plan.pp for laid in self.laid]
        items = list(map(self._ended, self.laid, numbers))
        total = self.states.column([math.fsum(map(self.times.seconds, kernels(each))) for each in items])
        behind = blocks / plans.chunks
        stages = (plans.chunks - 1) * plans.pp
        for name in ("gradients", "weights"):
            sums = [next((item for item in exchanges(each) if item.name == name), None) for each in items]
            alone = self.states.column(list(map(self._alone, sums, self.laid, numbers)))
            total += exposed * alone
            if exposed >= 1.0:
                continue
            if name == "weights":
                total += np.maximum(0.0, (1.0 - exposed) * alone - layers.forward * behind * (stages + 1.0))
                continue
            pieces = np.minimum(np.maximum(1, blocks.astype(np.int64) // plans.chunks), hiding.MOST)
            many = plans.chunks * pieces
            parted = _Table(self.states.of, many)
            bucket = parted.column([
                self._alone(sums[row], self.laid[row], numbers[row], int(many[number]))
                for number, row in zip(parted.first, self.states.of[parted.first].tolist(), strict=True)
            ])  # fmt: skip
            least = np.maximum(exposed, 1.0 / many)
            total += (least - exposed) * alone
            hidden = layers.backward * behind * (stages + 1.0 - 1.0 / pieces)
            total += np.maximum(0.0, (1.0 - least) * many * bucket - hidden)
        return total

    def _ended(self, laid: Laid, stage: int) -> tuple[Item, ...]:
        return ending_of(laid, self.framework, stage_parameters(laid.transformer, laid.plan, stage))

    def _alone(self, item: Exchange | None, laid: Laid, stage: int, many: int = 1) -> float:
        """Seconds of an exchange of a stage, or of one of `many` parts of it."""
        return 0.0 if item is None else collective(replace(item, size=item.size / many), laid, self.cluster, stage)

    def _gathering(self) -> Floats:
        """Seconds that gathering weights and scattering gradients add to computing, of a single stage."""
        layers, m, exposed, rows = self.layers, self.plans.batches, self.framework.gradients, []
        for laid in self.laid:
            items = gathered_of(laid, self.framework, stage_parameters(laid.transformer, laid.plan, 0))
            count = laid.plan.chunks * hiding.pieces(laid, 0)
            weights, gradients = (self._alone(item, laid, 0, count) for item in items) if items else (0.0, 0.0)
            rows.append((count, weights, (items[0].times - 1.0) * weights + gradients if items else 0.0, gradients))
        many, gather, backward, scatter = map(self.states.column, zip(*rows, strict=True))
        ends = layers.ends, layers.embedding + layers.head - layers.ends
        left: Floats = np.zeros(len(m))
        for moving, alone, block, end in zip(
            (gather, backward), (gather, scatter), (layers.forward, layers.backward), ends, strict=True
        ):
            left += exposed * m * many * moving + (1.0 - exposed) * alone
            hidden = (1.0 - exposed) * moving - self.first * block / many
            left += np.maximum(0, m * many - m - 1) * np.maximum(0.0, hidden) + m * np.maximum(0.0, hidden - end)
        return left

    # ---- bytes ----

    def need(self) -> Floats:
        """Bytes on a GPU of the stage that needs most."""
        plans, layers, framework = self.plans, self.layers, self.framework
        model, pp = plans.model, plans.pp
        width = BYTES[plans.base.stored]
        rows = plans.microbatch * (plans.base.sequence or model.sequence) / plans.cp
        arrays = np.where(plans.tp > 1, WHOLE * rows * model.hidden * width, 0.0)
        logits = rows * model.vocab / plans.tp * framework.logits
        states = self._of_states(partial(_state_bytes, framework=framework))
        gathered = self._of_states(lambda laid, stage: gathered_bytes(laid, framework, stage))
        most = np.zeros(len(plans))
        for stage, blocks in enumerate((self.first, self.second, self.last)):
            number = np.minimum(stage, pp - 1) if stage < 2 else pp - 1
            kept = self._flying(number) * blocks * layers.kept + np.where(blocks > 0, layers.again, 0.0)
            buffers = arrays + np.where(number == pp - 1, logits, 0.0) + gathered[stage]
            most = np.maximum(most, states[stage] + FRAGMENTS * kept + RESERVED + FRAGMENTS * buffers)
        return most

    def _flying(self, stage: Ints) -> Floats:
        """Micro-batches whose activations a stage keeps at once: `in_flight`."""
        plans = self.plans
        pp, chunks, m = plans.pp, plans.chunks, plans.batches
        groups = np.maximum(1, m // pp)
        warm = (pp - stage - 1) * 2 + (chunks - 1) * (m // groups + (m % groups > 0)) + 1
        flying = np.where(chunks > 1, np.minimum(warm, m * chunks) / chunks, np.minimum(pp - stage, m))
        if plans.base.schedule == "gpipe":
            flying = np.where(chunks > 1, flying, m)
        return np.where(pp == 1, 1.0, flying)


def _parts(plans: Space, number: int) -> tuple[int, ...]:
    """Blocks of the first, the second and the last stage; of a virtual stage at most, of the first one and of the last."""
    plan = plans.plan(number)
    first, second, last = (parts_of(plans.model, plan, stage) for stage in (0, min(1, plan.pp - 1), plan.pp - 1))
    return sum(first), sum(second), sum(last), max(*first, *second, *last), first[0], last[-1]  # integers


def _state_bytes(laid: Laid, stage: int, framework: Framework) -> float:
    """Bytes of weights, gradients and the optimizer's states of a stage."""
    footprint = training_memory(laid, framework, stage)
    return footprint.weights + footprint.gradients + footprint.optimizer
