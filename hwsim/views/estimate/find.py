"""Intervals of times in closed form, from the shares of their kinds of work; goodput and days of a training by its step.

write = bytes of the state / min(storage, network cards of all nodes); the training stops for it, and reads it back at a restart
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from hwsim.devices.gpu_doubts import ORDER
from hwsim.failures import Failures, Saves
from hwsim.failures.job import job_sized
from hwsim.formats import format_quantity
from hwsim.models.cluster import Cluster
from hwsim.models.doubts import doubts, of_steps
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import Pass, Service
from hwsim.models.memory import state_bytes
from hwsim.models.step import Step, estimate
from hwsim.origins import Case
from hwsim.results.doubts import MANY, Weight, Weights
from hwsim.results.failing import Checkpoints, Failing, failing
from hwsim.results.felt import felt
from hwsim.results.interval import Interval, interval

T = TypeVar("T", Step, Service, Pass)


def of_step(step: Step, cluster: Cluster, framework: Framework | Software) -> Interval:
    """The interval of a training step."""
    laid, plan = step.laid, step.laid.plan
    regime = of_steps(plan.dtype, plan.tp * plan.pp, transformer=laid.unit == "tokens", experts=laid.routed)

    def at(other: Cluster) -> Step:
        return step if other is cluster else estimate(laid.model, plan, other, framework)

    return of_found(at, cluster, plan.dtype, regime)[1]


def of_found(
    find: Callable[[Cluster], T], cluster: Cluster, dtype: str, regime: str = "", case: Case = "known"
) -> tuple[T, Interval]:
    """What is found on a cluster, and the interval of its time, whose kinds of work take their shares of it.

    The rest of the time, a bubble, is as unsure as they are.

    Args:
        regime: that errors that were measured of such times as a whole. case: no part of it is known better than that.
    """

    def at(other: Cluster) -> Interval:
        made = find(other)
        found = doubts(made.shares, other.gpu, dtype, other.by_library)
        errors = [each._replace(case=max(each.case, case, key=ORDER.index)) for each in found]
        covered = math.fsum(doubt.seconds for doubt in errors)
        times = made.seconds / covered if covered > 0 else 0.0
        weights = tuple(Weight(doubt._replace(seconds=times * doubt.seconds), MANY) for doubt in errors)
        return interval(Weights(weights, 0.0 if weights else made.seconds, made.seconds), whole=regime)

    return find(cluster), felt(cluster, cluster.moved, at)


def left(step: Step, cluster: Cluster, failures: Failures, storage: float, tokens: float) -> tuple[Checkpoints, Failing]:
    """(its checkpoints, what failures leave) of a training of a transformer.

    Args:
        storage: B/s at which all nodes together write and read.
        tokens: tokens of the whole training.

    Raises:
        NoProgress: it never ends.
    """
    nodes = max(1, cluster.gpus // cluster.per_node)
    size = step.laid.transformer.parameters * state_bytes(step.laid.plan)
    write = size / min(storage, nodes * cluster.across if math.isfinite(cluster.across) else math.inf)
    job = job_sized(failures, {"gpu": cluster.gpus, "node": nodes})
    target = f"storage of {format_quantity(storage, 'B/s')}"
    saves = Saves(mode="sync", every=0, every_s=0.0, first=1, extra=False, size=size, target=target, load_s=write)
    saved = Checkpoints(
        mode="sync", written=0, every_s=0.0, steps=0, stop_s=write, slower_s=0.0, write_s=write, lag_s=0.0, bytes=size,
        target=target, load_s=write,
    )  # fmt: skip
    return failing(job, saves, saved, step.seconds, tokens / step.tokens_per_second)
