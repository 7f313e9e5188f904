"""Checkpoint times of a training in closed form: storage, write time, and stall of the training.

The storage bandwidth is from the question, else from the workload's `checkpoint`, else from the only file system of the
machine. Otherwise the rate of a large published training is assumed, in proportion to the number of GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hwsim.failures import MemoryCopies
from hwsim.families.training.workload.checkpoints import AUTO, every_of, near_of
from hwsim.families.training.workload.schema import TrainKeys
from hwsim.formats import format_quantity
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.models import DerivedPlan
from hwsim.models.memory import state_bytes
from hwsim.records import dataclass
from hwsim.spec import Mistakes
from hwsim.workload.checkpoint import CheckpointStorage, checkpoint_times, default_storage

DEFAULT_WRITE_RATE: Final = (
    2e12 / 16384
)  # B/s for each GPU: 2 TB/s for 16,384 (Grattafiori et al., arXiv:2407.21783, section 3.3.1)
ASSUMED: Final = "assumed, 2 TB/s for 16,384 GPUs in proportion: neither the machine nor the workload names a storage"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTimes:
    """A checkpoint of a training.

    Args:
        bytes: size of the state (bytes).
        pause_s: stall of the training (seconds).
        write_s: write time (seconds).
        load_s: read time (seconds).
        lag_s: time from the end of the stall until an asynchronous checkpoint is complete (seconds).
        interval_s: checkpoint interval (seconds); 0: the interval with the highest goodput.
        near: copies in memory as well.
        storage: storage, as text.
    """

    bytes: float
    pause_s: float
    write_s: float
    load_s: float
    lag_s: float
    interval_s: float
    near: MemoryCopies | None
    storage: str

    @property
    def part(self) -> float:
        """Checkpoint stall per second of work without failures; 0 if no interval is stated."""
        return self.pause_s / self.interval_s if self.interval_s > 0 else 0.0

    def __str__(self) -> str:
        stops = "" if self.pause_s >= self.write_s else f", of which {format_quantity(self.pause_s, 's')} stop the training"
        return f"{format_quantity(self.bytes, 'B')} in {format_quantity(self.write_s, 's')}{stops}; {self.storage}"


def checkpoint_storage_times(
    keys: TrainKeys, laid: DerivedPlan, machines: Sequence[Machine], nodes: int, step_s: float, rate: float | None
) -> CheckpointTimes:
    """Return the checkpoint times of a training.

    Args:
        keys: keys of its `train:`.
        laid: training with its parallel plan.
        machines: the machine, or one with fewer and one with more nodes.
        nodes: number of nodes of the machine.
        step_s: step time (seconds).
        rate: storage bandwidth in the question (B/s); None if it is not stated.

    Raises:
        SpecError: `checkpoint` has mistakes.
    """
    saved, lag, every = keys.checkpoint, 0.0, 0.0
    size = laid.transformer.parameters * state_bytes(laid.plan)
    size = size if saved is None or saved.bytes == AUTO else float(saved.bytes)
    times_and_places = [_seconds(keys, laid, machine, nodes, size, rate) for machine in machines]
    copy, write, load = (_mean([times[index] for times, _ in times_and_places]) for index in range(3))
    stop = copy + write
    if saved is not None and saved.mode == "async":
        stop, lag = copy, write
    if saved is not None and saved.every.value != AUTO:
        mistakes = Mistakes()
        steps, every = every_of(saved, keys, mistakes)
        mistakes.raise_if_any()
        every = every or steps * step_s
        stop += max(0.0, lag - every)  # the one before is written before the next begins
    near = None if saved is None else near_of(saved)
    return CheckpointTimes(
        bytes=size,
        pause_s=stop,
        write_s=copy + write,
        load_s=copy + load,
        lag_s=lag,
        interval_s=every,
        near=near,
        storage=times_and_places[0][1],
    )


def _mean(times: Sequence[float]) -> float:
    """Return the time at the average rate of the machines (seconds)."""
    return len(times) / math.fsum(1.0 / time_ for time_ in times) if min(times) > 0 else max(times)


def _seconds(
    keys: TrainKeys, laid: DerivedPlan, machine: Machine, nodes: int, size: float, rate: float | None
) -> tuple[tuple[float, float, float], str]:
    """Return ((copy, write, read) in seconds, storage) on one machine."""
    saved, gpus = keys.checkpoint, machine.devices_of("gpu")
    node = machine.node_of(gpus[0])
    inside = [name for name in gpus[:1024] if machine.node_of(name) == node]
    if saved is not None and not saved.sharded:
        writers = laid.gpus // laid.dp
        inside, nodes = inside[:writers], max(1, math.ceil(writers / len(inside)))
    try:
        storage, where = _storage(keys, machine, rate)
        if saved is None:
            return checkpoint_times(machine, inside, size, storage, nodes), where
        times = checkpoint_times(
            machine, inside, size, storage, nodes, request=saved.request, depth=saved.depth, snapshot=saved.snapshot
        )
    except (UnknownName, NoRoute):
        seconds = size / (DEFAULT_WRITE_RATE * laid.gpus)
        return (0.0, seconds, seconds), ASSUMED
    return times, where


def _storage(keys: TrainKeys, machine: Machine, rate: float | None) -> tuple[CheckpointStorage, str]:
    """Return the storage and its origin.

    Raises:
        UnknownName: neither question, workload nor machine states a storage.
    """
    saved = keys.checkpoint
    if rate is not None:
        return CheckpointStorage(bandwidth=rate), f"to storage of {format_quantity(rate, 'B/s')}, of the plan"
    if saved is not None and (saved.bandwidth is not None or saved.write is not None):
        storage = CheckpointStorage(bandwidth=saved.bandwidth, seconds=saved.write)
        return storage, f"to {storage}, of the workload"
    if saved is not None and saved.target:
        return CheckpointStorage(target=saved.target), f"to {saved.target}, of the workload"
    target = default_storage(machine)
    return CheckpointStorage(target=target), f"to {target}, the machine's file system"
