"""Goodput and days of a training whose step is estimated: checkpoints in closed form.

write = bytes of the state / min(storage, network cards of all nodes); the training stops for it, and reads it back at a restart
"""

from __future__ import annotations

import math

from hwsim.failures import Failures, Saves
from hwsim.failures.job import job_sized
from hwsim.formats import format_quantity
from hwsim.models.cluster import Cluster
from hwsim.models.memory import state_bytes
from hwsim.models.step import Step
from hwsim.results.failing import Checkpoints, Failing, failing


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
