"""Intervals of times in closed form, from the shares of their kinds of work; goodput and days of a training by its step.

write = bytes of the state / min(storage, network cards of all nodes); the training stops for it, and reads it back at a restart
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from hwsim.devices import Gpu
from hwsim.devices.gpu_doubts import ORDER
from hwsim.failures import Failures, Saves
from hwsim.failures.job import job_sized
from hwsim.formats import format_quantity
from hwsim.models.cluster import Cluster
from hwsim.models.doubts import doubts, of_steps
from hwsim.models.memory import state_bytes
from hwsim.models.step import Step
from hwsim.origins import Case
from hwsim.results.doubts import MANY, Weight, Weights
from hwsim.results.failing import Checkpoints, Failing, failing
from hwsim.results.interval import Interval, interval


def of_step(step: Step, cluster: Cluster) -> Interval:
    """The interval of a training step."""
    laid, plan = step.laid, step.laid.plan
    regime = of_steps(plan.dtype, plan.tp * plan.pp, transformer=laid.unit == "tokens", experts=laid.routed)
    return of_shares(step.shares, cluster.gpu, plan.dtype, step.seconds, regime, links=cluster.by_library)


def of_shares(
    shares: Mapping[str, float],
    gpu: Gpu,
    dtype: str,
    seconds: float,
    regime: str = "",
    case: Case = "known",
    links: Case | None = None,
) -> Interval:
    """The interval of a time whose kinds of work take these seconds; the rest, a bubble, is as unsure as they are.

    Args:
        regime: that errors that were measured of such times as a whole. case: no part of it is known better than that.
        links: how well the library is known that moves exchanges over PCIe.
    """
    errors = [each._replace(case=max(each.case, case, key=ORDER.index)) for each in doubts(shares, gpu, dtype, links)]
    covered = math.fsum(doubt.seconds for doubt in errors)
    times = seconds / covered if covered > 0 else 0.0
    weights = tuple(Weight(doubt._replace(seconds=times * doubt.seconds), MANY) for doubt in errors)
    return interval(Weights(weights, 0.0 if weights else seconds, seconds), whole=regime)


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
        mode="sync",
        written=0,
        every_s=0.0,
        steps=0,
        stop_s=write,
        slower_s=0.0,
        write_s=write,
        lag_s=0.0,
        bytes=size,
        target=target,
        load_s=write,
    )
    return failing(job, saves, saved, step.seconds, tokens / step.tokens_per_second)
