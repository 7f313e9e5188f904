"""Checkpoints and failures of a training: the keys `checkpoint` and `failures`.

Checkpoints within the simulated steps are all simulated. If the interval is longer or a time, one checkpoint follows the last
step. After an asynchronous checkpoint, one more step is simulated, which the write slows down.

    step, step, ..., step | copy to the host | write                     sync: the next step waits for both
                                             | write, next steps         async
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Literal

from hwsim.demand import Cost
from hwsim.failures import CheckpointSchedule, FailingJob, Failures, MemoryCopies, NoProgress, goodput, job_of, load_failures
from hwsim.families.training.workload.plan import PlacedPlan, TrainingPlan
from hwsim.families.training.workload.schema import CheckpointKeys, TrainKeys
from hwsim.families.training.workload.step_writer import StepWriter
from hwsim.families.training.workload.workers import OpWriter
from hwsim.graph.builder import OpRef
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import CannotPlace
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, decode_value, find, read
from hwsim.units import Seconds
from hwsim.workload.checkpoint import COPY, WRITE, CheckpointStorage, ParallelCheckpoint, default_storage, parallel_checkpoint

MOST: Final = 64  # maximum number of simulated checkpoints
AUTO: Final[Literal["auto"]] = "auto"
EPOCH: Final = "epoch"


@dataclass(frozen=True, slots=True)
class TrainingCheckpoints:
    """The checkpoints of a training: numbers for the results, costs of the ops, and the device that writes."""

    saves: CheckpointSchedule
    ops: ParallelCheckpoint
    device: str

    def restricted(self, restrict: Callable[[Cost], Cost]) -> TrainingCheckpoints:
        """Return the checkpoints with a function applied to their costs."""
        copied, written = self.ops.copy, self.ops.write
        ops = replace(self.ops, copy=None if copied is None else restrict(copied), write=restrict(written))
        return replace(self, ops=ops)


def check(keys: TrainKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes that do not depend on the machine."""
    saved = keys.checkpoint
    if keys.failures is not None:
        rates_of(keys.failures, mistakes)
        if saved is None:
            message = "`failures` without `checkpoint`: every failure would restart the training from its first step"
            mistakes.add(tree.key_place("failures"), message, "checkpoint: {every: auto}")
    if saved is None:
        return
    given = [key for key, value in (("to", saved.target), ("bandwidth", saved.bandwidth), ("write", saved.write)) if value]
    if len(given) > 1:
        mistakes.add(
            saved.place, f"expected one of `to`, `bandwidth` and `write`, got {' and '.join(given)}", f"omit `{given[-1]}`"
        )
    if saved.memory is not None and keys.failures is None:
        mistakes.add(saved.place, "`memory` has no effect without `failures`", "failures: meta-llama-3")
    every_of(saved, keys, mistakes)


def every_of(saved: CheckpointKeys, keys: TrainKeys, mistakes: Mistakes) -> tuple[int, float]:
    """Return (steps, seconds) between checkpoints, one of them 0; both 0 for `auto`, or if mistakes were noted."""
    every, place = saved.every, saved.every.place
    if every.value == AUTO:
        if keys.failures is None:
            message = "`every: auto` needs `failures`: the best interval depends on the failure rate"
            mistakes.add(place, message, "failures: meta-llama-3, or every: 30 min")
        return 0, 0.0
    if every.value == EPOCH:
        if keys.samples is None:
            mistakes.add(place, "`every: epoch` needs `samples`, the length of an epoch", "samples: 1281167")
            return 0, 0.0
        return max(1, round(keys.samples / keys.global_batch)), 0.0
    if isinstance(every.value, int) and not isinstance(every.value, bool) and every.value > 0:
        return every.value, 0.0
    if not isinstance(every.value, str):
        message = f"expected steps or a time, got {every.what()}"
        mistakes.add(place, message, "every: 1000, 30 min, epoch or auto")
        return 0, 0.0
    seconds = decode_value(every, Seconds, mistakes)
    if seconds is not None and seconds <= 0:
        mistakes.add(place, f"expected a positive time, got {every.value}", "every: 30 min, or auto")
    return 0, float(seconds or 0.0)


def rates_of(tree: Tree, mistakes: Mistakes) -> Failures | None:
    """Return the failure rates of `failures:`, or None if mistakes were noted."""
    if not tree.is_mapping and not isinstance(tree.value, str):
        mistakes.add(tree.place, f"expected a name, a file or a mapping, got {tree.what()}", "failures: meta-llama-3")
        return None
    try:
        return load_failures(tree if tree.is_mapping else read(find("failures", str(tree.value), tree.place.folder, tree.place)))
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def job_for(keys: TrainKeys, machine: Machine, devices: Sequence[str], mistakes: Mistakes) -> FailingJob | None:
    """Return the job with its failure rates, or None without `failures` or if mistakes were noted."""
    failures = None if keys.failures is None else rates_of(keys.failures, mistakes)
    if keys.failures is None or failures is None:
        return None
    try:
        return job_of(machine, failures, devices)
    except ValueError as error:
        mistakes.add(keys.failures.place, str(error), "parts: {gpu: {mtbf: 50000 h}}")
        return None


def saved_by(keys: TrainKeys, plan: TrainingPlan, machine: Machine, mistakes: Mistakes) -> TrainingCheckpoints | None:
    """Return the checkpoints of a training on a machine, or None without `checkpoint` or if mistakes were noted."""
    saved = keys.checkpoint
    if saved is None:
        return None
    before = len(mistakes)
    steps, seconds = every_of(saved, keys, mistakes)
    if len(mistakes) > before:
        return None
    if steps and plan.steps // steps > MOST:
        message = f"{plan.steps // steps:,} simulated checkpoints: expected at most {MOST}"
        mistakes.add(saved.every.place, message, f"steps: {MOST * steps}")
        return None
    layout = plan.layout
    writers = list(layout.devices)
    if not saved.sharded:
        writers = [name for stage in range(layout.pp) for name in layout.group(stage, 0)]
    size = plan.state if saved.bytes == AUTO else float(saved.bytes)
    try:
        storage = _storage(saved, machine)
        ops = parallel_checkpoint(
            machine,
            writers,
            size,
            storage,
            request=saved.request,
            depth=saved.depth,
            snapshot=saved.snapshot,
            held=saved.mode == "async",
        )
    except (CannotPlace, NoRoute, UnknownName) as error:
        mistakes.add(saved.place, getattr(error, "message", str(error)), getattr(error, "hint", None))
        return None
    first = steps if 0 < steps <= plan.steps else plan.steps
    copied, _, read_back = ops.seconds(machine.rates())
    saves = CheckpointSchedule(
        mode=saved.mode,
        every=steps,
        every_s=seconds,
        first=first,
        extra=saved.mode == "async" and plan.steps % first == 0,
        size=size,
        target=str(storage),
        load_s=copied + read_back,
        near=near_of(saved),
    )
    return TrainingCheckpoints(
        saves, ops, machine.select(storage.target, machine.node_of(writers[0]))[0] if storage.target else ""
    )


def near_of(saved: CheckpointKeys) -> MemoryCopies | None:
    """Return the copies in the memory of other nodes, or None."""
    copies = saved.memory
    if copies is None:
        return None
    return MemoryCopies(survives=copies.survives, write_s=copies.write, load_s=copies.load, every_s=copies.every)


def refuse_hopeless(saved: TrainingCheckpoints, job: FailingJob, machine: Machine, tree: Tree, mistakes: Mistakes) -> None:
    """Add a mistake if failures certainly prevent progress of the training, before it is simulated."""
    copied, written, _ = saved.ops.seconds(machine.rates())
    stops = copied if saved.saves.mode == "async" else copied + written
    try:
        goodput(job, stops, job.restart.loading(saved.saves.load_s), saved.saves.every_s or AUTO, near=saved.saves.near)
    except NoProgress as error:
        mistakes.add(tree.key_place("failures"), error.message, error.hint)


def _storage(saved: CheckpointKeys, machine: Machine) -> CheckpointStorage:
    """Return the storage of checkpoints.

    Raises:
        UnknownName: no disk is named, and the machine does not have exactly one file system.
    """
    if saved.bandwidth is not None or saved.write is not None:
        return CheckpointStorage(bandwidth=saved.bandwidth, seconds=saved.write)
    return CheckpointStorage(target=saved.target or default_storage(machine))


def write(
    placed: PlacedPlan,
    saved: TrainingCheckpoints,
    begin: OpRef | None,
    ops: OpWriter,
    steps_of: Callable[[PlacedPlan, OpWriter], StepWriter],
) -> StepWriter:
    """Write all steps of a training with its checkpoints, and return the writer of the first steps."""
    first, gate = None, begin
    left, size = placed.plan.steps, saved.saves.first
    for count in (*[size] * (left // size), *([left % size] if left % size else []), *([1] if saved.saves.extra else [])):
        steps = steps_of(replace(placed, plan=replace(placed.plan, steps=count)), ops)
        ends = steps.write(gate)
        first = first or steps
        if left >= size:
            gate = _checkpoint(saved, ends, ops)
        left -= size
    if first is None:
        raise ValueError("a training has at least one step")
    return first


def _checkpoint(saved: TrainingCheckpoints, after: Sequence[OpRef], ops: OpWriter) -> OpRef:
    """Write a checkpoint, and return the op that the next step waits for."""
    queue = ops.queue(WRITE, saved.device)
    with ops.builder.repeat(1):
        copied = None
        if saved.ops.copy is not None:
            copied = ops.add(COPY, "copy", saved.device, queue, (), cost=saved.ops.copy)
        written = ops.add(WRITE, "write", saved.device, queue, () if copied is None else [copied], cost=saved.ops.write)
    for end in after:
        ops.builder.tie(end, copied or written)
    return copied if saved.saves.mode == "async" and copied is not None else written
