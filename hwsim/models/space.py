"""All legal plans of a transformer's training as columns, without creating plan objects.

    tp            divisors of the heads, up to a node's GPUs.
    pp            divisors of the GPU count, up to the layers; stages differ by one layer where the layers do not divide.
    chunks        numbers that divide the layers of a stage (embedding and head may count as layers); without such stages all
                  numbers. With chunks, the schedule is interleaved.
    cp, ep        divisors of the sequence, and of the experts of every layer with experts.
    microbatch    divisors of the global batch; with a tolerance of the batch also powers of two.
    sharding      none, zero-1, zero-3, fsdp; not zero-2, whose reduction of gradients for every micro-batch is not modelled.
    recompute     nothing, attention scores (if they are kept), the full layer; with and without sequence parallelism.

All other settings, and fixed ones, are those of the given plan. Equivalent plans are omitted: a single replica has nothing to
shard, and pipeline stages do not gather weights for every micro-batch.

A column is a plan without its chunks and sharding. `Stagings` has the layers of every stage for each (pp, chunks), so that sums
over the layers of a stage are products of matrices, for layers of one or of several kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures import Transformer
from hwsim.models.framework import Framework
from hwsim.models.layer import Axis
from hwsim.models.plan import (
    DerivedPlan,
    ParallelPlan,
    Recompute,
    Sharding,
    WrongPlan,
    derive_plan,
    parts_of,
    powers_up_to,
    problems,
    strides_of,
)
from hwsim.records import dataclass

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_COLUMNS: Final = 5_000_000
SHARDINGS: Final[tuple[Sharding, ...]] = ("zero-0", "zero-1", "zero-3", "fsdp")
RECOMPUTED: Final[tuple[Recompute, ...]] = ("none", "selective", "full")


@dataclass(frozen=True, slots=True)
class Stagings:
    """The layers of the stages for each number of stages and of virtual stages.

    Args:
        pp, chunks: stages, and virtual stages per stage.
        rows: layers of each distinct stage by kind, 1 with the embedding, 1 with the head; stagings x stages x (kinds + 2).
        numbers: lowest number of such a stage.
        parts: the same rows of the distinct virtual stages.
    """

    pp: Ints
    chunks: Ints
    rows: Floats
    numbers: Ints
    parts: Floats

    @classmethod
    def of(cls, model: Transformer, counts: Sequence[tuple[int, int]]) -> Stagings:
        """Return the stagings of (stages, virtual stages per stage)."""
        kinds = np.eye(len(model.kinds))[list(model.order)]
        before = np.concatenate([np.zeros((1, kinds.shape[1])), kinds.cumsum(axis=0)])
        stages = [_stage_rows(model, before, pp, chunks) for pp, chunks in counts]
        rows, numbers, parts = ([arrays[place] for arrays in stages] for place in range(3))
        pp, chunks = np.array(counts, np.int64).T
        return cls(pp, chunks, _padded(rows), _padded(numbers), _padded(parts))


def _stage_rows(model: Transformer, before: Floats, pp: int, chunks: int) -> tuple[Floats, Ints, Floats]:
    """Return the distinct stages, their lowest numbers, and the distinct virtual stages."""
    plan = ParallelPlan(pp=pp, chunks=chunks, global_batch=1)
    lengths = np.array([parts_of(model, plan, stage) for stage in range(pp)], np.int64).T.ravel()
    ends = np.concatenate([[0], lengths.cumsum()])
    parts = np.zeros((pp * chunks, before.shape[1] + 2))
    parts[:, :-2] = before[ends[1:]] - before[ends[:-1]]
    parts[0, -2] = parts[-1, -1] = 1.0
    rows, numbers = np.unique(parts.reshape(chunks, pp, -1).sum(axis=0), axis=0, return_index=True)
    return rows, numbers, np.unique(parts, axis=0)


def _padded(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays of different lengths as one, with their last row repeated."""
    longest = max(map(len, arrays))
    return np.stack([np.concatenate([array, np.repeat(array[-1:], longest - len(array), axis=0)]) for array in arrays])


@dataclass(frozen=True, slots=True)
class Space:
    """The legal plans as columns of equal length, without chunks and sharding.

    Args:
        base: the plan with the fields that all plans share.
        combinations: combinations of the values of all axes, including those that are not legal.
        stagings: stages of the model.
        microbatches: values of the axis `microbatch`, on any number of GPUs.
        tp, ...: the plans' numbers.
        recompute: index into RECOMPUTED.
        sharded: 1 with sequence parallelism.
        batch: sequences of a step.
    """

    model: Transformer
    base: ParallelPlan
    gpus: int
    shardings: tuple[Sharding, ...]
    fixed: frozenset[str]
    combinations: int
    stagings: Stagings
    microbatches: tuple[int, ...]
    tp: Ints
    pp: Ints
    cp: Ints
    ep: Ints
    microbatch: Ints
    recompute: Ints
    sharded: Ints
    dp: Ints
    batch: Ints

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def batches(self) -> Ints:
        """Micro-batches per replica and step."""
        batches: Ints = self.batch // (self.dp * self.microbatch)
        return batches

    @property
    def sizes(self) -> Floats:
        """Sequences of a micro-batch on a GPU that any plan has, on any number of GPUs."""
        cps = [self.base.cp] if "cp" in self.fixed else _divisors(self.base.sequence or self.model.sequence)
        sizes: Floats = np.unique(np.divide.outer(self.microbatches, cps))
        return sizes

    @property
    def staged(self) -> tuple[Ints, Ints]:
        """First staging of each plan, and the number of its stagings."""
        first = np.searchsorted(self.stagings.pp, self.pp)
        return first, np.searchsorted(self.stagings.pp, self.pp, side="right") - first

    def shardable(self) -> NDArray[np.bool_]:
        """Whether plans may shard their states: shardings x plans."""
        if "sharding" in self.fixed:
            return np.ones((1, len(self)), np.bool_)
        several, single = self.dp * self.cp > 1, self.pp == 1
        levels = (replace(self.base, sharding=sharding).level for sharding in self.shardings)
        return np.stack([(several | (level == 0)) & (single | (level < 3)) for level in levels])

    def plan(self, column: int, staging: int, sharding: int = 0) -> ParallelPlan:
        """Return one of the plans."""
        chunks = int(self.stagings.chunks[staging])
        sizes: dict[str, Any] = {name: int(getattr(self, name)[column]) for name in ("tp", "pp", "cp", "ep", "microbatch")}
        uneven = self.base.uneven or self.model.layers % (sizes["pp"] * chunks) > 0
        schedule = "interleaved" if chunks > 1 else self.base.schedule
        return replace(self.base, **sizes, chunks=chunks, schedule=schedule, uneven=uneven, global_batch=int(self.batch[column]),
                       sharding=self.shardings[sharding], recompute=RECOMPUTED[int(self.recompute[column])],
                       sequence_parallel=bool(self.sharded[column]))  # fmt: skip

    def laid(self, column: int, staging: int = -1, sharding: int = 0) -> DerivedPlan:
        """Return one of the plans with its derived numbers; by default with the fewest virtual stages."""
        staging = int(np.searchsorted(self.stagings.pp, self.pp[column])) if staging < 0 else staging
        return derive_plan(self.model, self.plan(column, staging, sharding), self.gpus)

    def strides(self) -> dict[Axis, Ints]:
        """Return the distances between neighbours of a group by axis; as `DerivedPlan.strides`."""
        return strides_of(self.base.order, tp=self.tp, cp=self.cp, pp=self.pp, ep=self.ep, dp=self.dp)


def space(model: Transformer, plan: ParallelPlan, gpus: int, per_node: int, framework: Framework,
          fixed: frozenset[str] = frozenset(), within: float = 0.0) -> Space:  # fmt: skip
    """Return the legal plans on a number of GPUs.

    Raises:
        WrongPlan: no plan is legal, or there are too many combinations.
    """
    experts = math.gcd(*(kind.experts for kind in model.kinds if kind.experts > 1)) or 1
    sequence = plan.sequence or model.sequence
    axes: dict[str, Sequence[int]] = {
        "tp": _divisors(math.gcd(model.heads, gpus), per_node),
        "cp": _divisors(math.gcd(sequence, gpus)),
        "ep": _divisors(math.gcd(experts, gpus)),
        "pp": _divisors(gpus, model.layers),
        "microbatch": sorted({*_divisors(plan.global_batch), *(powers_up_to(plan.global_batch) if within > 0 else ())}),
    }
    axes = {name: [getattr(plan, name)] if name in fixed else values for name, values in axes.items()}
    stagings = _stagings(model, plan, axes["pp"], fixed)
    again = RECOMPUTED if framework.attention == "plain" or framework.repeated > 0 else ("none", "full")
    shardings = (plan.sharding,) if "sharding" in fixed else SHARDINGS
    recomputed = [RECOMPUTED.index(mode) for mode in ((plan.recompute,) if "recompute" in fixed else again)]
    sharded = [int(plan.sequence_parallel)] if "sequence_parallel" in fixed else [0, 1]
    groups = _legal_groups(model, plan, gpus, axes, stagings)
    inner = axes["microbatch"], recomputed, sharded
    if len(groups) * math.prod(map(len, inner)) > MAX_COLUMNS:
        raise WrongPlan((("plan", f"more than {MAX_COLUMNS:,} plans: fix tp, pp, cp or ep"),))
    columns = np.array(np.meshgrid(np.arange(len(groups)), *inner, indexing="ij")).reshape(4, -1)
    tp, pp, cp, ep, dp = groups[columns[0]].T
    microbatch, recompute, sequence_parallel = columns[1:]
    sequences = dp * microbatch
    batch = np.full_like(sequences, plan.global_batch)
    legal = (sequence_parallel == 0) | (tp > 1)
    if within > 0:
        batch = sequences * np.maximum(1, np.round(plan.global_batch / sequences).astype(np.int64))
        legal &= np.abs(batch - plan.global_batch) <= within * plan.global_batch * (1 + 1e-12)
    legal &= batch % sequences == 0
    count = math.prod(len(values) for name, values in axes.items() if name != "pp") * len(recomputed) * len(sharded)
    base = replace(plan, tp=1, pp=1, cp=1, ep=1, chunks=1, microbatch=1, sequence_parallel=False)
    if not legal.any():
        derive_plan(model, plan, gpus)  # raises the reason if the given plan is illegal
        raise WrongPlan((("plan", f"no legal plan for {gpus} GPUs"),))
    values = (column[legal] for column in (tp, pp, cp, ep, microbatch, recompute, sequence_parallel, dp, batch))
    combinations = count * len(stagings.pp) * len(shardings)
    return Space(model, base, gpus, shardings, fixed, combinations, stagings, tuple(axes["microbatch"]), *values)


def _legal_groups(model: Transformer, plan: ParallelPlan, gpus: int, axes: dict[str, Sequence[int]], stagings: Stagings) -> Ints:
    """Return the legal (tp, pp, cp, ep, dp); each value alone is checked as a plan, and the products by columns."""

    alone = ParallelPlan(sequence=plan.sequence, imbalance=plan.imbalance, global_batch=plan.global_batch, uneven=True)

    def legal(key: str, **sizes: Any) -> bool:
        return all(name != key for name, _ in problems(model, replace(alone, **sizes), math.prod(sizes.values())))

    tps = [tp for tp in axes["tp"] if legal("tp", tp=tp)]
    cps = [cp for cp in axes["cp"] if legal("cp", cp=cp)]
    eps = [ep for ep in axes["ep"] if legal("ep", ep=ep) and legal("imbalance", ep=ep)]
    pps = np.unique(stagings.pp)
    tp, pp, cp, ep = (grid.ravel() for grid in np.meshgrid(tps, pps, cps, eps, indexing="ij"))
    dp = np.maximum(1, gpus // (tp * pp * cp)) if plan.dp == "rest" else np.full_like(tp, plan.dp)
    kept = (tp * pp * cp * dp == gpus) & (dp % ep == 0) & (dp % (plan.shards or 1) == 0)
    for axis, sizes in (("tp", tp), ("cp", cp), ("pp", pp), ("dp", dp)):
        kept &= (sizes == 1) | (axis in plan.order)
    groups: Ints = np.stack([tp, pp, cp, ep, dp], axis=1)[kept].astype(np.int64)
    return groups


def _stagings(model: Transformer, plan: ParallelPlan, pps: Sequence[int], fixed: frozenset[str]) -> Stagings:
    """Return the stages that the axes allow.

    Raises:
        WrongPlan: none is legal; contains the mistakes of the given plan.
    """
    uneven, interleaves = plan.uneven or "uneven" not in fixed, "schedule" not in fixed or plan.schedule == "interleaved"
    counts = list[tuple[int, int]]()
    for pp in pps:
        limit = (model.layers + 2) // pp if pp > 1 and interleaves else 1
        several: Sequence[int] = range(1, max(1, limit) + 1)
        if model.layers % pp == 0:  # stages of equal length need no virtual stages of unequal length, except for balance
            several = [
                chunks for chunks in several if model.layers % (pp * chunks) == 0 or (model.layers + 2) % (pp * chunks) == 0
            ]
        if "chunks" in fixed:
            several = [plan.chunks if pp > 1 else 1]
        for chunks in several:
            even, enough = model.layers % (pp * chunks) == 0, pp <= model.layers and pp * chunks <= model.layers + 2
            counts += [(pp, chunks)] if enough and (even or uneven) and (chunks == 1 or interleaves) else []
    if not counts:
        derive_plan(model, plan, plan.tp * plan.pp * plan.cp * (plan.dp if isinstance(plan.dp, int) else 1))
        raise WrongPlan((("pp", "no number of stages divides the layers"),))
    return Stagings.of(model, counts)


@cache
def _divisors(number: int, limit: int | None = None) -> tuple[int, ...]:
    """
    >>> _divisors(12), _divisors(12, 4)
    ((1, 2, 3, 4, 6, 12), (1, 2, 3, 4))
    """
    return tuple(count for count in range(1, min(number, limit or number) + 1) if number % count == 0)
