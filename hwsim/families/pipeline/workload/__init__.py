"""Planner of `pipeline:`: stages that run concurrently, with bounded buffers between them.

pipeline:
  batches: 1000
  ahead: 4
  stages:
    - read: {from: disk, bytes: 110 kB, times: 64}
    - copy: {from: cpu, to: gpu, bytes: 38.5 MB}
    - busy: {name: train, device: gpu, time: 90 ms}

A stage processes one batch at a time, or `at_once` of them. It begins a batch when the previous stage has ended it and the next
buffer has space. A buffer contains at most `ahead` batches. A later stage that is blocked itself has up to `at_once` more (see
`writing`).
"""

from __future__ import annotations

from hwsim.devices import CannotCompute
from hwsim.families.pipeline.workload.keys import Checkpoint, LoaderKeys, PipelineKeys, StageKeys
from hwsim.families.pipeline.workload.parser import PlacedStage, StageParser, operations, time_of
from hwsim.families.pipeline.workload.schedule import bodies
from hwsim.families.pipeline.workload.writer import PipelineWriter
from hwsim.graph.builder import GraphBuilder
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.ops import CannotPlace
from hwsim.spec import Mistakes, Tree, decode, decode_value
from hwsim.spec.limits import refuse_beyond
from hwsim.units import Seconds
from hwsim.workload.checkpoint import ProgramCheckpoint, checkpoint_ops
from hwsim.workload.file import RankProgram
from hwsim.workload.programs import MAIN, Program, find_programs

__all__ = ["LoaderKeys", "PipelineKeys", "ProgramCheckpoint", "StageKeys", "add_pipeline", "checkpoint_ops", "operations"]


def add_pipeline(
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str = MAIN,
    start: float = 0.0,
) -> None:
    """Append the ops of the pipelines to the graph.

    Args:
        tree: keys of the pipeline.
        machine: machine.
        builder: builder of the graph.
        mistakes: list for mistakes.
        name: name of the program.
        start: time before the first batch (s).
    """
    keys = decode(tree, PipelineKeys, mistakes)
    if keys is None:
        return
    if not keys.stages:
        mistakes.add(tree.key_place("stages"), "a pipeline needs at least one stage")
    programs = find_programs(name, tree, RankProgram(keys.each, ()) if keys.each or tree.get("each") else None, machine, mistakes)
    batches = _batches(keys, tree, len(programs), mistakes)
    if not programs or len(mistakes):
        return
    reader = StageParser(keys, tree.get("dataset"), programs, mistakes)
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
    writer = PipelineWriter(
        builder, programs, lines, saved, keys.checkpoint is not None and keys.checkpoint.mode == "sync", mistakes
    )
    writer.prepare()
    if len(mistakes):
        return
    costs = max(len(op.placed) for stages in lines for stage in stages for op in stage.ops)
    epochs = tuple(min(epoch, costs - 1) for epoch in range(keys.epochs))
    begin = [builder.op("start", kind="start", program=program.name, time=start) for program in programs] if start else []
    free, done = lines[0][0].at_once, 0  # batches that no earlier one delays
    for body in bodies(epochs, batches, every if saved else 0, writer.reach):
        for batch, firsts in enumerate(writer.write(body), done):
            for turn in range(1, min(body.times, -((batch - free) // len(body.batches))) + 1):
                for before, first in zip(begin, firsts, strict=False):
                    builder.tie(before, first, lag=turn)
        done += len(body.batches) * body.times
    writer.train(batches * keys.epochs)
    samples = 0 if keys.dataset is None else keys.dataset.samples
    for rank in range(len(programs)):
        builder.line(writer.line(rank, keys.batch or 0, (batches,) * keys.epochs, samples))


def _batches(keys: PipelineKeys, tree: Tree, programs: int, mistakes: Mistakes) -> int:
    """Return the batches per program and epoch; an incomplete last batch is dropped."""
    if keys.batches is not None:
        return keys.batches
    if keys.dataset is None or keys.batch is None:
        hint = "batches: 1000, or batch: 64 and dataset: {samples: 1281167, bytes: 110 kB}"
        mistakes.add(tree.place, "the number of batches is missing", hint)
        return 0
    batches = keys.dataset.samples // (keys.batch * max(1, programs))
    if not batches:
        mistakes.add(
            tree.key_place("batch"), f"{keys.dataset.samples:,} samples are less than one batch for each of {programs} programs"
        )
    return batches


def _every(keys: Checkpoint, batches: int, slowest: float, mistakes: Mistakes) -> int:
    """Return the batches between checkpoints; 0 if mistakes were noted."""
    every = keys.every.value
    if every == "epoch":
        return batches
    if isinstance(every, int) and not isinstance(every, bool) and every > 0:
        return every
    if isinstance(every, int | float | bool) or every is None:
        mistakes.add(keys.every.place, f"expected a positive number of batches, got {keys.every.what()}", "every: 1000")
        return 0
    if every == "auto":
        message = "`every: auto` needs a `train:` with `failures`; a pipeline has no failure rates"
        mistakes.add(keys.every.place, message, "every: 1000, 30 min or epoch")
        return 0
    seconds = decode_value(keys.every, Seconds, mistakes)
    return max(1, round(seconds / slowest)) if seconds and slowest > 0 else 1 if seconds is not None else 0


def _saved(keys: Checkpoint, program: Program, stages: tuple[PlacedStage, ...], mistakes: Mistakes) -> ProgramCheckpoint | None:
    """Return the checkpoint of a program, or None if mistakes were noted."""
    source = keys.source or stages[-1].ops[-1].at(0).device
    try:
        return checkpoint_ops(program.scope, keys.bytes, source, keys.target, request=keys.request, depth=keys.depth)
    except (CannotCompute, CannotPlace, NoRoute, UnknownName) as error:
        mistakes.add(keys.place, error.message, error.hint)
        return None
