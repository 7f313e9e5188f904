"""All legal plans of a transformer's training as columns, without creating plan objects.

    tp            divisors of a node's GPUs and of the heads.
    pp, chunks    divisors of the layers, and of the layers of a stage; with chunks the schedule is interleaved.
    cp, ep        powers of two that divide the sequence, and the experts.
    microbatch    powers of two up to the global batch.
    sharding      none, zero-1, zero-2, zero-3, fsdp.
    recompute     nothing, attention scores (if they are kept), the full layer; with and without sequence parallelism.

All other settings, and fixed ones, are those of the given plan. Equivalent plans are omitted: a single replica has nothing to
shard, and pipeline stages do not gather weights for every micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures import Transformer
from hwsim.models.framework import Framework
from hwsim.models.layer import Axis
from hwsim.models.plan import DerivedPlan, ParallelPlan, Recompute, Sharding, WrongPlan, derive_plan, powers_up_to, problems
from hwsim.records import dataclass

Ints = NDArray[np.int64]

MAX_COMBINATIONS: Final = 20_000_000  # maximum combinations
SHARDINGS: Final[tuple[Sharding, ...]] = ("zero-0", "zero-1", "zero-2", "zero-3", "fsdp")
RECOMPUTED: Final[tuple[Recompute, ...]] = ("none", "selective", "full")


@dataclass(frozen=True, slots=True)
class Space:
    """The legal plans as columns of equal length.

    Args:
        base: the plan with the fields that all plans share.
        tp, ...: the plans' numbers.
        sharded: 1 with sequence parallelism.
        sharding, recompute: indices into `shardings` and RECOMPUTED.
        batches: micro-batches per replica and step.
    """

    model: Transformer
    base: ParallelPlan
    gpus: int
    shardings: tuple[Sharding, ...]
    tp: Ints
    pp: Ints
    cp: Ints
    ep: Ints
    chunks: Ints
    microbatch: Ints
    sharding: Ints
    recompute: Ints
    sharded: Ints
    dp: Ints
    batches: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def plan(self, number: int) -> ParallelPlan:
        """Return one of the plans."""
        chunks = int(self.chunks[number])
        return replace(
            self.base,
            tp=int(self.tp[number]),
            pp=int(self.pp[number]),
            cp=int(self.cp[number]),
            ep=int(self.ep[number]),
            chunks=chunks,
            schedule="interleaved" if chunks > 1 else self.base.schedule,
            microbatch=int(self.microbatch[number]),
            sharding=self.shardings[int(self.sharding[number])],
            recompute=RECOMPUTED[int(self.recompute[number])],
            sequence_parallel=bool(self.sharded[number]),
        )

    def laid(self, number: int) -> DerivedPlan:
        """Return one of the plans with its derived numbers."""
        return derive_plan(self.model, self.plan(number), self.gpus)

    @property
    def level(self) -> Ints:
        """ZeRO stage, 0 to 3."""
        return np.array([replace(self.base, sharding=sharding).level for sharding in self.shardings], np.int64)[self.sharding]

    def stride(self, axis: Axis) -> Ints:
        """Return the distance between neighbours of a group; as `DerivedPlan.stride`."""
        sizes = {"tp": self.tp, "cp": self.cp, "ep": self.ep, "pp": self.pp, "dp": self.dp // self.ep}
        distance = np.ones_like(self.tp)
        for name in self.base.order:
            for inner in ("ep", "dp") if name == "dp" and "ep" not in self.base.order else (name,):
                if inner == axis:
                    return distance
                distance = distance * sizes[inner]
        return distance


def space(
    model: Transformer, plan: ParallelPlan, gpus: int, per_node: int, framework: Framework, fixed: frozenset[str] = frozenset()
) -> Space:
    """Return the legal plans on a number of GPUs.

    Raises:
        WrongPlan: no plan is legal, or there are too many combinations.
    """
    again = RECOMPUTED if framework.attention == "plain" or framework.repeated > 0 else ("none", "full")
    axes: dict[str, Sequence[int]] = {
        "tp": [n for n in range(1, min(per_node, gpus) + 1) if per_node % n == 0],
        "cp": powers_up_to(min(gpus, plan.sequence or model.sequence)),
        "ep": powers_up_to(min(gpus, max(kind.experts for kind in model.kinds))),
        "microbatch": powers_up_to(plan.global_batch),
    }
    axes = {name: [getattr(plan, name)] if name in fixed else values for name, values in axes.items()}
    shardings = (plan.sharding,) if "sharding" in fixed else SHARDINGS
    recomputed = [RECOMPUTED.index(mode) for mode in ((plan.recompute,) if "recompute" in fixed else again)]
    sharded = [int(plan.sequence_parallel)] if "sequence_parallel" in fixed else [0, 1]
    interleaves = "schedule" not in fixed or plan.schedule == "interleaved"
    waved: ParallelPlan = replace(plan, schedule="interleaved") if interleaves else plan
    staged = list(_stage_counts(model, plan, gpus, fixed, interleaves=interleaves))
    base = replace(plan, tp=1, pp=1, cp=1, ep=1, chunks=1, microbatch=1, sequence_parallel=False)
    groups = [
        (tp, pp, chunks, cp, ep)
        for tp, (pp, chunks), cp, ep in product(axes["tp"], staged, axes["cp"], axes["ep"])
        if _is_legal(model, replace(waved if chunks > 1 else plan, tp=tp, pp=pp, cp=cp, ep=ep, chunks=chunks), gpus)
    ]
    inner = list(product(axes["microbatch"], range(len(shardings)), recomputed, sharded))
    if len(groups) * len(inner) > MAX_COMBINATIONS:
        raise WrongPlan(
            (("plan", f"{len(groups) * len(inner):,} plans exceed the limit of {MAX_COMBINATIONS:,}: fix tp, pp, cp or ep"),)
        )
    outer = np.repeat(np.array(groups, np.int64).reshape(-1, 5), len(inner), axis=0).T
    tp, pp, chunks, cp, ep = outer
    microbatch, sharding, recompute, sequence_parallel = np.tile(np.array(inner, np.int64), (len(groups), 1)).T
    dp = np.maximum(1, gpus // (tp * pp * cp)) if plan.dp == "rest" else np.full_like(tp, plan.dp)
    legal = (plan.global_batch % (dp * microbatch) == 0) & ((sequence_parallel == 0) | (tp > 1))
    made = Space(model, base, gpus, shardings, tp, pp, cp, ep, chunks, microbatch, sharding, recompute, sequence_parallel, dp,
                 plan.global_batch // (dp * microbatch))  # fmt: skip
    if "sharding" not in fixed:
        legal &= ((made.level == 0) | (dp * cp > 1)) & ((made.level < 3) | (pp == 1))
    columns = ("tp", "pp", "cp", "ep", "chunks", "microbatch", "sharding", "recompute", "sharded", "dp", "batches")
    legals = replace(made, **{name: getattr(made, name)[legal] for name in columns})
    if not len(legals):
        derive_plan(model, plan, gpus)  # raises the reason if the given plan is illegal
        raise WrongPlan((("plan", f"no legal plan for {gpus} GPUs"),))
    return legals


def _stage_counts(
    model: Transformer, plan: ParallelPlan, gpus: int, fixed: frozenset[str], *, interleaves: bool
) -> Iterator[tuple[int, int]]:
    """Yield (stages, virtual stages per stage)."""
    stages = [plan.pp] if "pp" in fixed else [n for n in range(1, min(model.layers, gpus) + 1) if model.layers % n == 0]
    for pp in stages:
        if "chunks" in fixed:
            yield pp, plan.chunks if pp > 1 else 1
            continue
        of_stage = model.layers // pp if pp > 1 and interleaves and model.layers % pp == 0 else 1
        yield from ((pp, chunks) for chunks in range(1, of_stage + 1) if of_stage % chunks == 0)


def _is_legal(model: Transformer, plan: ParallelPlan, gpus: int) -> bool:
    """Return whether a plan is legal, except for its batch and sequence parallelism."""
    broken = problems(model, replace(plan, microbatch=1, sequence_parallel=False), gpus)
    return all(key == "global_batch" for key, _ in broken)
