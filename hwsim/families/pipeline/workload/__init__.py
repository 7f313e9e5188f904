"""`pipeline:` stages that run at the same time, with bounded buffers between them.

pipeline:
  batches: 1000
  ahead: 4
  stages:
    - read: {from: disk, bytes: 110 kB, times: 64}
    - copy: {from: cpu, to: gpu, bytes: 38.5 MB}
    - busy: {name: train, device: gpu, time: 90 ms}

A stage works on one batch after another, or on `at_once` of them. It starts a batch once the stage before has ended it, and
once there is room. Between two stages lie at most `ahead` batches. A later stage that is held up itself holds as many more as
it may have at once (see `writing`).
"""

from __future__ import annotations

from hwsim.devices import CannotCompute
from hwsim.families.pipeline.workload.keys import Checkpoint, PipelineKeys, StageKeys
from hwsim.families.pipeline.workload.reading import Reader, Stage, operations, time_of, with_defaults
from hwsim.families.pipeline.workload.schedule import bodies
from hwsim.families.pipeline.workload.writing import Writer
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import CannotPlace
from hwsim.spec import Mistakes, Tree, decode, decode_value
from hwsim.spec.limits import refuse_beyond
from hwsim.units import Seconds
from hwsim.workload.checkpoint import Saving, saving
from hwsim.workload.file import Each
from hwsim.workload.programs import MAIN, Program, find_programs

__all__ = ["PipelineKeys", "Saving", "StageKeys", "add_pipeline", "operations", "saving", "with_defaults"]


def add_pipeline(
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str = MAIN,
    start: float = 0.0,
) -> None:
    """Append the pipelines' ops to the graph.  start: seconds before the first batch."""
    keys = decode(tree, PipelineKeys, mistakes)
    if keys is None:
        return
    if not keys.stages:
        mistakes.add(tree.key_place("stages"), "a pipeline needs at least one stage")
    programs = find_programs(name, tree, Each(keys.each, ()) if keys.each or tree.get("each") else None, machine, mistakes)
    batches = _batches(keys, tree, len(programs), mistakes)
    if not programs or len(mistakes):
        return
    reader = Reader(keys, tree.get("dataset"), programs, mistakes)
    lines = [reader.stages(rank) for rank in range(len(programs))]
    if len(mistakes):
        return
    slowest = max((time_of(stage, machine.rates()) for stages in lines for stage in stages), default=0.0)
    every = _every(keys.checkpoint, batches, slowest, mistakes) if keys.checkpoint else 0
    saved = _saved(keys.checkpoint, programs[0], lines[0], mistakes) if keys.checkpoint and every else None
    if len(mistakes) or not batches or not keys.epochs:
        return
    ops = sum(len(stage.ops) for stages in lines for stage in stages)
    refuse_beyond("ops", ops * batches * keys.epochs, tree.key_place("epochs"))
    writer = Writer(builder, programs, lines, saved, keys.checkpoint is not None and keys.checkpoint.mode == "sync", mistakes)
    writer.prepare()
    if len(mistakes):
        return
    costs = max(len(op.placed) for stages in lines for stage in stages for op in stage.ops)
    epochs = tuple(min(epoch, costs - 1) for epoch in range(keys.epochs))
    begin = [builder.op("start", kind="start", program=program.name, time=start) for program in programs] if start else []
    begun = [writer.write(body) for body in bodies(epochs, batches, every if saved else 0, writer.reach)]
    for before, first in zip(begin, begun[0], strict=False):
        builder.tie(before, first)
    writer.train(batches * keys.epochs)
    samples = 0 if keys.dataset is None else keys.dataset.samples
    for rank in range(len(programs)):
        builder.line(writer.line(rank, keys.batch or 0, (batches,) * keys.epochs, samples))


def _batches(keys: PipelineKeys, tree: Tree, programs: int, mistakes: Mistakes) -> int:
    """Batches of one program in one epoch; a last one that is not full is dropped."""
    if keys.batches is not None:
        return keys.batches
    if keys.dataset is None or keys.batch is None:
        hint = "batches: 1000, or batch: 64 and dataset: {samples: 1281167, bytes: 110 kB}"
        mistakes.add(tree.place, "how many batches there are is missing", hint)
        return 0
    batches = keys.dataset.samples // (keys.batch * max(1, programs))
    if not batches:
        mistakes.add(
            tree.key_place("batch"), f"{keys.dataset.samples:,} samples are not one batch for each of {programs} programs"
        )
    return batches


def _every(keys: Checkpoint, batches: int, slowest: float, mistakes: Mistakes) -> int:
    """Batches from one checkpoint to the next; 0 once the mistakes are noted."""
    every = keys.every.value
    if every == "epoch":
        return batches
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        return every
    if isinstance(every, int | float | bool) or every is None:
        mistakes.add(keys.every.place, f"a checkpoint comes every so many batches, not every {keys.every.what()}", "such as 1000")
        return 0
    if every == "auto":
        message = "the best interval is known of a `train` with `failures`, not of a pipeline"
        mistakes.add(keys.every.place, message, "such as 1000, 30 min or epoch")
        return 0
    seconds = decode_value(keys.every, Seconds, mistakes)
    return max(1, round(seconds / slowest)) if seconds and slowest > 0 else 1 if seconds is not None else 0


def _saved(keys: Checkpoint, program: Program, stages: tuple[Stage, ...], mistakes: Mistakes) -> Saving | None:
    """A checkpoint of a program; None once the mistakes are noted."""
    source = keys.source or stages[-1].ops[-1].at(0).device
    try:
        return saving(program.scope, keys.bytes, source, keys.target, request=keys.request, depth=keys.depth)
    except (CannotCompute, CannotPlace, NoRoute, UnknownName) as error:
        mistakes.add(keys.place, error.message, error.hint)
        return None
