"""Plans of a training, tried one after another: those that fit into the memory, by the estimate of their step.

    tp            powers of two that divide the heads, up to a node's GPUs.
    pp            numbers that divide the layers.
    microbatch    1, 2, 4, 8, as far as the global batch allows.
    sharding      none, the optimizer's states (zero-1), everything (zero-3, if pp is 1).
    recompute     nothing, attention scores (if they are kept), all of a layer.

A network of convolutions or a perceptron has stages (pp) and micro-batches: the batch of a replica in 1, 2, 4, ... parts.
Everything else is as the plan at hand says, and so is whatever is fixed.

**Error**: of the estimate, see `docs/validation/models.md`; plans nearer to each other than that are equally good.
**Range**: what the estimate knows; it is no search over orders of axes, interleaving or context parallel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from hwsim.models.architectures import Model, Transformer
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework, Software
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.memory import SPREAD
from hwsim.models.plan import Laid, ParallelPlan, Recompute, Sharding, WrongPlan, lay, replicas
from hwsim.models.stages import largest
from hwsim.models.step import Step, step, times_of
from hwsim.records import dataclass

MICROBATCHES: Final = (1, 2, 4, 8)
SHARDINGS: Final[tuple[Sharding, ...]] = ("zero-0", "zero-1", "zero-3")


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search.

    Args:
        steps: steps of the plans that fit, fastest first.
        tried: number of plans that model and machine allow; fitting: number of plans whose memory suffices.
        nearest: the plan that needs least memory, if none fits.
    """

    steps: tuple[Step, ...]
    tried: int
    fitting: int
    nearest: Step | None


def search(
    model: Model, plan: ParallelPlan, cluster: Cluster, framework: Framework | Software, fixed: Collection[str] = ()
) -> Searched:
    """Plans by the estimate, best first.

    Args:
        plan: the fields that all of them share; fixed: names of its fields that stay as they are.

    Raises:
        WrongPlan: no plan is possible; the mistakes of the given one.
    """
    laids = tuple(_laid(model, plan, cluster, framework, frozenset(fixed)))
    if not laids:
        lay(model, plan, cluster.gpus)  # says why, if the plan itself is wrong
        raise WrongPlan((("plan", f"no plan lays it over {cluster.gpus} GPUs"),))
    times = times_of(cluster, framework)
    size = cluster.gpu.memory.size
    needs = [(_needed(laid, cluster, framework, times), laid) for laid in laids]
    fitting = [each for need, each in needs if size is None or need <= size]
    if not fitting and size is not None:  # those that may
        fitting = [each for need, each in needs if need * (1.0 - SPREAD) <= size]
    steps = sorted((step(each, cluster, framework, times) for each in fitting), key=_order)
    nearest = None
    if not steps:
        nearest = step(min(needs, key=lambda each: each[0])[1], cluster, framework, times)
    return Searched(tuple(steps), len(laids), len(fitting), nearest)


def _order(found: Step) -> tuple[float, float, int, int, int]:
    """Key that sorts steps: the faster, then the one that needs less memory, then the simpler plan."""
    plan = found.laid.plan
    return found.seconds, found.memory.total, plan.pp, plan.tp, plan.microbatch


def _laid(
    model: Model, plan: ParallelPlan, cluster: Cluster, framework: Framework | Software, fixed: frozenset[str]
) -> Iterator[Laid]:
    for candidate in _plans(model, plan, cluster, framework, fixed):
        try:
            laid = lay(model, candidate, cluster.gpus)
        except WrongPlan:
            continue
        if (
            laid.summing == 1 and candidate.level > 0 and "sharding" not in fixed
        ):  # one replica shares nothing: the same as zero-0
            continue
        if candidate.level == 3 and candidate.pp > 1 and "sharding" not in fixed:  # exchanges what zero-1 does, and keeps more
            continue
        yield laid


def _needed(laid: Laid, cluster: Cluster, framework: Framework | Software, times: KernelTimes) -> float:
    """Bytes on the GPU that needs most."""
    if isinstance(framework, Framework):
        return largest(laid, framework).total
    return step(laid, cluster, framework, times).memory.total


def _plans(
    model: Model, plan: ParallelPlan, cluster: Cluster, framework: Framework | Software, fixed: frozenset[str]
) -> Iterator[ParallelPlan]:
    if not isinstance(model, Transformer) or not isinstance(framework, Framework):
        yield from _of_network(plan, cluster.gpus, fixed)
        return
    again: tuple[Recompute, ...] = ("none", "full")
    if framework.attention == "plain" or framework.repeated > 0:
        again = ("none", "selective", "full")
    tps = (plan.tp,) if "tp" in fixed else _powers(min(cluster.per_node, model.heads))
    stages = tuple(n for n in range(1, min(model.layers, cluster.gpus) + 1) if model.layers % n == 0)
    for tp, pp, microbatch, sharding, recompute in product(
        tps,
        (plan.pp,) if "pp" in fixed else stages,
        (plan.microbatch,) if "microbatch" in fixed else MICROBATCHES,
        (plan.sharding,) if "sharding" in fixed else SHARDINGS,
        (plan.recompute,) if "recompute" in fixed else again,
    ):
        yield replace(
            plan,
            tp=tp,
            pp=pp,
            chunks=plan.chunks if pp > 1 else 1,
            microbatch=microbatch,
            sharding=sharding,
            recompute=recompute,
            sequence_parallel=plan.sequence_parallel if "sequence_parallel" in fixed else tp > 1,
        )


def _of_network(plan: ParallelPlan, gpus: int, fixed: frozenset[str]) -> Iterator[ParallelPlan]:
    """Stages of a network, and the batch of a replica whole, in 2, in 4, ... micro-batches."""
    for pp in (plan.pp,) if "pp" in fixed else range(1, gpus + 1):
        staged = replace(plan, pp=pp)
        batch = max(1, plan.global_batch // replicas(staged, gpus))
        parts = (1,) if pp == 1 else _powers(batch)
        for microbatch in (plan.microbatch,) if "microbatch" in fixed else (batch // count for count in parts):
            yield replace(staged, microbatch=microbatch)


def _powers(most: int) -> tuple[int, ...]:
    """
    >>> _powers(8)
    (1, 2, 4, 8)
    """
    return tuple(1 << n for n in range(most.bit_length()) if 1 << n <= most)
