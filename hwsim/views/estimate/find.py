"""Intervals of closed-form times, from the shares of their kinds of work; goodput and duration of a training.

Time of a checkpoint: bytes of the state / min(storage, NICs of all nodes). The training pauses for it, and reads the checkpoint
at a restart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

from hwsim.devices.gpu_cases import ORDER
from hwsim.failures import CheckpointSchedule, Failures
from hwsim.failures.job import job_sized
from hwsim.formats import format_quantity
from hwsim.models.cluster import Cluster
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import InferencePass, ServedBatch
from hwsim.models.kernel_errors import kernel_errors, step_errors
from hwsim.models.memory import state_bytes
from hwsim.models.step import TrainingStep, times_of
from hwsim.models.step import step as estimated_step
from hwsim.origins import Case, UncertaintySource
from hwsim.results.error_weights import MANY, Weight, Weights
from hwsim.results.errors import table, table_of
from hwsim.results.interval import Interval, interval
from hwsim.results.machine_errors import widen_by_machine_errors
from hwsim.results.training_failures import Checkpoints, FailureOutcome, failing

T = TypeVar("T", TrainingStep, ServedBatch, InferencePass)


def step_interval(step: TrainingStep, cluster: Cluster, framework: Framework | Software) -> Interval:
    """Return the interval of a training step."""
    laid, regime, unlike = step.laid, "step/cnn", tuple[UncertaintySource, ...]()
    if isinstance(framework, Framework):
        regime, kind = step_errors(laid, framework, times_of(cluster, framework))
        unlike = table().kinds.unlike(kind)

    def step_on(other: Cluster) -> TrainingStep:
        return step if other is cluster else estimated_step(laid, other, framework, times_of(other, framework))

    return estimate_with_interval(step_on, cluster, laid.plan.dtype, regime, unlike=unlike)[1]


def estimate_with_interval(
    find: Callable[[Cluster], T],
    cluster: Cluster,
    dtype: str,
    regime: str = "",
    case: Case = "known",
    unlike: Sequence[UncertaintySource] = (),
) -> tuple[T, Interval]:
    """Return (result on a cluster, interval of its time).

    Each kind of work has its share of the time; the remaining time, such as a pipeline bubble, has their relative uncertainty.

    Args:
        find: function from a cluster to the result.
        cluster: cluster.
        dtype: data type.
        regime: regime of errors measured of such times as a whole; "" without one.
        case: most certain case of any part.
        unlike: errors of a training that differs from all measured ones.
    """

    def interval_on(other: Cluster) -> Interval:
        made = find(other)
        found = kernel_errors(made.shares, other.gpu, dtype, other.by_library)
        errors = [doubt._replace(case=max(doubt.case, case, key=ORDER.index)) for doubt in found]
        covered = math.fsum(doubt.seconds for doubt in errors)
        times = made.seconds / covered if covered > 0 else 0.0
        weights = tuple(Weight(doubt._replace(seconds=times * doubt.seconds), MANY) for doubt in errors)
        weights += tuple(Weight(doubt._replace(seconds=made.seconds)) for doubt in unlike)
        return interval(
            Weights(weights, 0.0 if weights else made.seconds, made.seconds), whole=regime, errors=table_of(cluster.scores)
        )

    return find(cluster), widen_by_machine_errors(cluster, cluster.moved, interval_on)


def training_with_failures(
    step: TrainingStep, cluster: Cluster, failures: Failures, storage: float, tokens: float
) -> tuple[Checkpoints, FailureOutcome]:
    """Return (checkpoints, goodput and time with failures) of a transformer training.

    Args:
        step: training step.
        cluster: cluster.
        failures: failure rates.
        storage: total rate of reading and writing of all nodes (B/s).
        tokens: tokens of the whole training.

    Raises:
        NoProgress: the training never ends.
    """
    nodes = max(1, cluster.gpus // cluster.per_node)
    size = step.laid.transformer.parameters * state_bytes(step.laid.plan)
    write = size / min(storage, nodes * cluster.across if math.isfinite(cluster.across) else math.inf)
    job = job_sized(failures, {"gpu": cluster.gpus, "node": nodes})
    target = f"storage of {format_quantity(storage, 'B/s')}"
    saves = CheckpointSchedule(mode="sync", every=0, every_s=0.0, first=1, extra=False, size=size, target=target, load_s=write)
    saved = Checkpoints(
        mode="sync", written=0, interval_s=0.0, interval_steps=0, pause_s=write, slowdown_s=0.0, write_s=write, lag_s=0.0,
        bytes=size, storage=target, load_s=write,
    )  # fmt: skip
    return failing(job, saves, saved, step.seconds, tokens / step.tokens_per_second)
