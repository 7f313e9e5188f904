"""Writer of the stages of a pipeline as ops, batch by batch, with the edges between them.

A stage begins batch i when three conditions hold:

- The previous stage has ended batch i.

- The stage itself has ended batch i - at_once, because its workers take batches in turn.

- The next buffer has space: the next stage has ended batch i - ahead - (its at_once), so that it can begin batch i - ahead.

So a buffer contains at most `ahead` batches. A next stage that is blocked itself has up to its at_once more. The last stage takes
no batch while it waits for a checkpoint: the buffer has space for batch i after the checkpoint that follows batch i - ahead - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise
from typing import Final

from hwsim import ticks
from hwsim.families.pipeline.workload.parser import PlacedStage, StageOp
from hwsim.families.pipeline.workload.schedule import BatchKind, Body
from hwsim.families.pipeline.workload.step import EmbeddedGraph
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.graph.opgraph import BatchPipeline, BatchStage, Label
from hwsim.records import dataclass
from hwsim.spec import Mistakes
from hwsim.workload.checkpoint import COPY, WRITE, ProgramCheckpoint
from hwsim.workload.collectives import CollectiveBuilder
from hwsim.workload.placement import OpPlacer
from hwsim.workload.programs import MAIN, Program, Queues, host_cost
from hwsim.workload.statements import CollectiveStatement, PlacedOp

Mark = tuple[str, int, int]  # "stage" or "gate", program, stage
GATE: Final[Mark] = ("gate", 0, 0)

ARRIVE: Final = "arrive"
JOINS: Final = (ARRIVE, "insert", "wait", "step")  # kinds of ops without work on a device


@dataclass(frozen=True, slots=True)
class WrittenOp:
    """An op of a stage with its name and queue in the graph."""

    op: StageOp
    name: str
    queue: int


@dataclass(slots=True)
class PipelineWriter:
    """A writer of the pipelines of all programs, body by body.

    Args:
        builder: builder of the graph.
        programs: programs, one per pipeline.
        lines: stages of each program.
        saved: checkpoint of the first program; None: none.
        waits: whether its last stage waits for the write, too.
        mistakes: list for mistakes.
    """

    builder: GraphBuilder
    programs: Sequence[Program]
    lines: Sequence[Sequence[PlacedStage]]
    saved: ProgramCheckpoint | None
    waits: bool
    mistakes: Mistakes
    _ops: dict[tuple[int, int], tuple[WrittenOp, ...]] = field(default_factory=dict)
    _meetings: dict[tuple[int, int], CollectiveStatement | None] = field(default_factory=dict)
    _steps_of: dict[tuple[int, int], EmbeddedGraph] = field(default_factory=dict)
    _queues: dict[tuple[int, str], int] = field(default_factory=dict)
    _marks: dict[Mark, list[OpRef | None]] = field(default_factory=dict)  # ops of the current body, by batch
    _before: dict[Mark, list[OpRef | None]] = field(default_factory=dict)  # ops of the previous batches, up to `reach`
    _wanted: list[tuple[Mark, int, int, OpRef]] = field(default_factory=list)  # (mark, batch of the body, lag, waiting op)

    def prepare(self) -> None:
        """Create labels, queues and collectives."""
        for rank, stages in enumerate(self.lines):
            names = [op.name for stage in stages for op in stage.ops]
            for number, stage in enumerate(stages):
                shown = [op.name if names.count(op.name) == 1 else f"{op.name} {number}" for op in stage.ops]
                self._ops[rank, number] = tuple(
                    WrittenOp(
                        op, name, -1 if stage.at_once > 1 or op.step is not None else self._queue(rank, name, op.at(0).device)
                    )
                    for op, name in zip(stage.ops, shown, strict=True)
                )
        for number, stage in enumerate(self.lines[0]):
            for index, op in enumerate(stage.ops):
                if op.exchange is not None:
                    self._meetings[number, index] = self._meeting(number, index)
                elif op.step is not None:
                    self._steps_of[number, index] = EmbeddedGraph(op.step, self.builder)

    @property
    def reach(self) -> int:
        """Maximum number of batches that an edge spans."""
        stages = self.lines[0]
        rooms = [stage.ahead + then.at_once for stage, then in pairwise(stages)]
        return max(1, *rooms, *(stage.at_once for stage in stages))

    def write(self, body: Body) -> list[list[OpRef]]:
        """Write one body, and return for each of its batches the first op of each program."""
        first: list[list[OpRef]] = []
        self._marks, self._wanted = {}, []
        for step in self._steps_of.values():
            step.times = body.times
        with self.builder.repeat(body.times):
            for batch, kind in enumerate(body.batches):
                for number in range(len(self.lines[0])):
                    begun = self._stage(number, batch, kind)
                    first += [begun] if number == 0 else []
                if self.saved is not None:
                    self._mark(GATE, self._save(self.saved) if kind.saves else None)
        self._tie(body)
        return first

    def train(self, steps: int) -> None:
        """Describe the trainings for the results, with one step per batch."""
        for step in self._steps_of.values():
            step.train(steps, max(stage.at_once for stage in self.lines[0]))

    def line(self, rank: int, batch: int, epochs: Sequence[int], samples: int) -> BatchPipeline:
        """Return the stages of the pipeline of one program, for the results."""
        stages = self.lines[rank]
        shown = []
        for number, stage in enumerate(stages):
            written = self._ops[rank, number]
            labels = [self._label(rank, op) for op in written]
            together = [self._steps(number, index) for index in range(len(written))]
            first, left = self._ends(rank, number, 0)[0], self._ends(rank, number, len(written) - 1)[1]
            last = Label(f"{stage.name} handed over", "busy", self.programs[rank].scope.host, self.programs[rank].name)
            ops = tuple(label for own, steps in zip(labels, together, strict=True) for label in (steps or (own,)))
            shown.append(
                BatchStage(stage.name, labels[-1].device, first, last if stage.handoff else left, ops, stage.at_once, stage.ahead)
            )
        return BatchPipeline(self.programs[rank].name, tuple(shown), batch, tuple(epochs), samples)

    # ---- one batch

    def _stage(self, number: int, batch: int, kind: BatchKind) -> list[OpRef]:
        """Write a stage of all programs, and return its first op in each."""
        first: list[OpRef] = []
        before: dict[int, OpRef | None] = dict.fromkeys(range(len(self.programs)))
        for index in range(len(self._ops[0, number])):
            together = self._ops[0, number][index].op.together
            begun, ended = self._together(number, index) if together else self._apart(number, index, kind.epoch)
            for rank, op in begun.items():
                self._follow(rank, number, batch, op, before[rank])
            first = first or list(begun.values())
            before = dict(ended)
        for rank, ended_last in before.items():
            stage = self.lines[rank][number]
            left = self._hand_over(rank, stage, ended_last) if stage.handoff and ended_last else ended_last
            self._mark(("stage", rank, number), left)
        return first

    def _apart(self, number: int, at: int, epoch: int) -> tuple[dict[int, OpRef], dict[int, OpRef]]:
        refs = {}
        for rank, program in enumerate(self.programs):
            written = self._ops[rank, number][at]
            placed = written.op.at(epoch)
            refs[rank] = self.builder.op(
                written.name,
                kind=written.op.kind,
                device=written.op.at(0).device,
                program=program.name,
                cost=placed.cost,
                time=placed.time,
                queue=written.queue,
            )
        return refs, refs

    def _together(self, number: int, at: int) -> tuple[dict[int, OpRef], dict[int, OpRef]]:
        """Write a collective or training step: arrival of all programs, its steps, departure of all programs."""
        arrived: dict[int, OpRef] = {}
        left: dict[int, OpRef] = {}
        for rank in range(len(self.programs)):
            arrived[rank] = self._join(rank, self._ends(rank, number, at)[0], number, at)
        last: dict[int, list[OpRef]] = {}
        if (training := self._steps_of.get((number, at))) is not None:
            entry = self.builder.op("all there", kind="wait", after=list(arrived.values()))
            last = dict.fromkeys(range(len(self.programs)), training.write(entry))
        meeting = self._meetings.get((number, at))
        for gathering in meeting.gatherings if meeting is not None else ():
            steps: list[OpRef] = []
            for step in gathering.steps:
                after = [*(arrived[rank] for rank in step.begins), *(steps[earlier] for earlier in step.after)]
                steps.append(self.builder.indexed(step.label, step.cost, after))
                for rank in step.ends:
                    last.setdefault(rank, []).append(steps[-1])
        for rank in range(len(self.programs)):
            left[rank] = self._join(rank, self._ends(rank, number, at)[1], number, at, last.get(rank, [arrived[rank]]))
        return arrived, left

    def _join(self, rank: int, label: Label, number: int, at: int, after: Sequence[OpRef] = ()) -> OpRef:
        queue = self._ops[rank, number][at].queue
        return self.builder.op(label.name, kind=label.kind, device=label.device, program=label.program, queue=queue, after=after)

    def _follow(self, rank: int, number: int, batch: int, op: OpRef, before: OpRef | None) -> None:
        """Let an op wait for the previous op of the stage, or the first op for the conditions of the batch."""
        if before is not None:
            self.builder.edge(before, op)
            return
        stages, saves = self.lines[rank], self.saved is not None and rank == 0
        stage = stages[number]
        if number:
            self._wanted.append((("stage", rank, number - 1), batch, 0, op))
        if len(stage.ops) > 1 or stage.at_once > 1 or stage.ops[0].together:
            self._wanted.append((("stage", rank, number), batch, stage.at_once, op))  # otherwise its queue keeps the order
        if number + 1 < len(stages):
            self._wanted.append((("stage", rank, number + 1), batch, stage.ahead + stages[number + 1].at_once, op))
            if number + 2 == len(stages) and saves:  # a stage that waits for a checkpoint takes no batch
                self._wanted.append((GATE, batch, stage.ahead + 1, op))
        elif saves:
            self._wanted.append((GATE, batch, 1, op))

    def _hand_over(self, rank: int, stage: PlacedStage, op: OpRef) -> OpRef:
        """Write the op with which the host takes a batch from a worker."""
        program = self.programs[rank]
        cost = host_cost(program, stage.handoff, self.builder)
        label = self.builder.label(f"{stage.name} handed over", "busy", program.scope.host, program.name)
        queue = self._queue(rank, f"{stage.name} handed over", program.scope.host)
        return self.builder.indexed(label, cost, [op], time=0 if cost >= 0 else ticks.femtoseconds(stage.handoff), queue=queue)

    def _save(self, saving: ProgramCheckpoint) -> OpRef:
        """Write a checkpoint after the last stage, and return the op that its next batch waits for."""
        program, queue = self.programs[0].name, self._queue(0, WRITE, saving.write.device)
        trained = self._marks["stage", 0, len(self.lines[0]) - 1][-1]
        after = [trained] if trained is not None else []
        gate = trained
        if (copy := saving.copy) is not None:
            gate = self.builder.op(
                COPY, kind="copy", device=copy.device, program=program, cost=copy.cost, time=copy.time, queue=queue, after=after
            )
            after = []
        write = saving.write
        written = self.builder.op(
            WRITE, kind="write", device=write.device, program=program, cost=write.cost, time=write.time, queue=queue, after=after
        )
        return written if self.waits or gate is None else gate

    # ---- edges between batches

    def _mark(self, mark: Mark, op: OpRef | None) -> None:
        self._marks.setdefault(mark, []).append(op)

    def _tie(self, body: Body) -> None:
        """Write the edges of a body, from this batch, an earlier one, or one of the previous bodies."""
        size = len(body.batches)
        for mark, batch, lag, op in self._wanted:
            at = batch - lag
            refs = self._marks[mark]
            if at >= 0:
                self._edge(refs[at], op, 0)
                continue
            earlier = self._before.get(mark, [])
            if -at <= len(earlier) and (source := earlier[at]) is not None:
                self.builder.tie(source, op)
            if body.times > 1:
                back = -(at // size)
                self._edge(refs[at + back * size], op, back)
        for mark, refs in self._marks.items():
            self._before[mark] = [*self._before.get(mark, []), *refs][-self.reach :]

    def _edge(self, before: OpRef | None, then: OpRef, lag: int) -> None:
        if before is not None:
            self.builder.edge(before, then, lag=lag)

    # ---- names

    def _queue(self, rank: int, name: str, device: str) -> int:
        if (rank, name) not in self._queues:
            program = self.programs[rank].name
            self._queues[rank, name] = self.builder.queue(name if program == MAIN else f"{program}:{name}", device)
        return self._queues[rank, name]

    def _label(self, rank: int, written: WrittenOp) -> Label:
        return Label(written.name, written.op.kind, written.op.at(0).device, self.programs[rank].name)

    def _ends(self, rank: int, number: int, at: int) -> tuple[Label, Label]:
        """Return the labels of the first and the last graph op of one op of a stage."""
        written = self._ops[rank, number][at]
        label = self._label(rank, written)
        if written.op.exchange is not None:
            return label._replace(kind=ARRIVE), label
        if written.op.step is not None:
            return label._replace(kind="begin", device=""), label._replace(kind="end", device="")
        return label, label

    def _steps(self, number: int, at: int) -> tuple[Label, ...]:
        if (step := self._steps_of.get((number, at))) is not None:
            device = self._ops[0, number][at].op.at(0).device
            return tuple(label for label in step.graph.labels if label.device == device and label.kind not in JOINS)
        meeting = self._meetings.get((number, at))
        if meeting is None:
            return ()
        return tuple(self.builder.label_at(step.label) for gathering in meeting.gatherings for step in gathering.steps)

    def _meeting(self, number: int, at: int) -> CollectiveStatement | None:
        """Return the collective of all programs at an op of a stage, or None if mistakes were noted."""
        label = self.builder.label
        ops, placed = [], []
        for rank, program in enumerate(self.programs):
            written = self._ops[rank, number][at]
            if written.op.exchange is None:
                return None
            ops.append(replace(written.op.exchange, name=written.name))
            device = written.op.at(0).device
            placed.append(
                PlacedOp(written.name, label(written.name, written.op.kind, device, program.name), -1, -1, -1, -1, device=device)
            )
        placing = OpPlacer(None, self.builder, Queues(self.builder, None), self.mistakes)
        return CollectiveBuilder(self.programs, placing, {}).collective(ops, placed, ops[0].kind, 1)
