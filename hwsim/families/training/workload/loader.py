"""Data loader of a training: the stages that prepare the batch of each step, while earlier steps run.

A loader is a pipeline (`hwsim.families.pipeline`) whose last stage is the training step: a stage begins a batch when the previous
stage has ended it, one of its workers is free, and the next buffer has space. The step begins when every loader of its GPUs has
its batch; the thread that launches the kernels takes the batch (`handoff` of the last stage). In steady state:

    step = max(training step + handoff, longest bound of the loader), and the first batch comes before the first step

    bounds of the loader:  a stage:                its time / workers
                           two neighbouring stages: (their times) / (ahead + workers of the later one); the last with the step
                           a capacity:             what all loaders draw from it for one batch each / its rate

Source: the bounds are the cycles of the event graph (Baccelli et al., "Synchronization and Linearity", 1992, theorem 3.28).
Range: equal loaders; a batch has the samples of one step of its GPUs, with all microbatches. The bounds of capacities count only
what the loaders draw, so a simulated step is longer if the training uses the same cores, links or disks, or if all workers of a
stage with several ops (`do`) contend in one of them at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from hwsim.families.pipeline.workload.keys import LoaderKeys, as_pipeline
from hwsim.families.pipeline.workload.parser import PlacedStage, StageParser, check_stages
from hwsim.families.training.workload.workers import OpWriter
from hwsim.graph.builder import OpRef
from hwsim.graph.opgraph import BatchPipeline, BatchStage, Label
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree
from hwsim.workload.file import RankProgram
from hwsim.workload.programs import Program, find_programs, host_cost

TAKE = "take batch"  # name of the op with which the training takes a batch
ROUNDS = 2  # simulated steps per batch in flight, if `steps` is omitted
LEAST = 16  # minimum of them
Mark = tuple[int, int]  # loader, stage; stage -1: the training is free to take a batch


@dataclass(frozen=True, slots=True)
class Loader:
    """The data loader of a training on a machine.

    Args:
        programs: loaders, one per device or node of `each`.
        lines: stages of each loader.
        feeds: loaders of each replica.
        batch: samples per batch of one loader.
        epoch: epoch of the simulated steps (from 1).
        machine: machine.
    """

    programs: Sequence[Program]
    lines: Sequence[Sequence[PlacedStage]]
    feeds: Sequence[Sequence[int]]
    batch: int
    epoch: int
    machine: Machine

    @property
    def steps(self) -> int:
        """Number of steps that reach the steady state."""
        return max(LEAST, ROUNDS * max(stage.ahead + stage.at_once for stage in self.lines[0]))

    @property
    def first_replicas(self) -> list[int]:
        """First replica that each loader feeds."""
        return [next(replica for replica, ranks in enumerate(self.feeds) if rank in ranks) for rank in range(len(self.programs))]

    @property
    def workers(self) -> int:
        """Number of workers of its largest stage."""
        return max(stage.at_once for stage in self.lines[0])

    @property
    def handoff(self) -> float:
        """Time of the training to take a batch (s)."""
        return self.lines[0][-1].handoff

    def bounds(self, step_s: float) -> Iterator[tuple[str, float]]:
        """Yield (name, seconds per step) of each bound; `step_s`: training step with an unlimited loader."""
        rates = self.machine.rates()
        training = PlacedStage("training step", (), 1, 0)
        drawn: dict[str, float] = {}
        for stages in self.lines:
            times = [*(self._seconds(stage, rates) for stage in stages), step_s + self.handoff]
            for stage, time in zip([*stages, training], times, strict=True):
                yield stage.name, time / stage.at_once
            for (before, first_s), (then, then_s) in pairwise(zip([*stages, training], times, strict=True)):
                yield f"{before.name} + {then.name}", (first_s + then_s) / (before.ahead + then.at_once)
            for op in (op.at(self.epoch - 1) for stage in stages for op in stage.ops):
                demand = None if op.cost is None else op.cost.demand
                body = 0.0 if demand is None else demand.alone(rates) - demand.latency
                for name, amount in () if demand is None else demand.amounts:
                    drawn[name] = drawn.get(name, 0.0) + amount / rates[name]
                for name, share in () if demand is None else demand.holds:
                    drawn[name] = drawn.get(name, 0.0) + share * body
        yield from drawn.items()

    def _seconds(self, stage: PlacedStage, rates: Mapping[str, float]) -> float:
        """Return the time of a batch in a stage without contention (s)."""
        placed = [op.at(self.epoch - 1) for op in stage.ops]
        return math.fsum(op.cost.demand.alone(rates) if op.cost else op.time for op in placed)


def check(keys: LoaderKeys, tree: Tree, mistakes: Mistakes) -> None:
    """Note the mistakes of a loader that do not depend on the machine; `tree`: tree of the keys."""
    _refuse_empty(keys, tree, mistakes)
    check_stages(as_pipeline(keys, 1), tree, mistakes)


def _refuse_empty(keys: LoaderKeys, tree: Tree, mistakes: Mistakes) -> None:
    if not keys.stages:
        mistakes.add(tree.key_place("stages"), "a loader needs at least one stage", "stages: [{read: {from: disk, bytes: 1 MB}}]")


def placed_loader(
    keys: LoaderKeys,
    tree: Tree,
    global_batch: int,
    machine: Machine,
    groups: Sequence[Sequence[str]],
    name: str,
    mistakes: Mistakes,
) -> Loader | None:
    """Return the loaders of a training on a machine, or None if mistakes were noted.

    Args:
        keys: keys of the loader.
        tree: tree of the keys.
        global_batch: samples per step of all loaders.
        machine: machine.
        groups: GPUs of the first pipeline stage of each replica.
        name: name of the loaders.
        mistakes: list for mistakes.
    """
    _refuse_empty(keys, tree, mistakes)
    each = keys.each or tuple(dict.fromkeys(machine.home_of(device) for group in groups for device in group))
    ranks = RankProgram(each, ()) if any(each) else None
    programs = find_programs(name, tree, ranks, machine, mistakes)
    place = tree.key_place("each")
    feeds = [
        [rank for rank, program in enumerate(programs) if any(_is_in(machine, device, program.own) for device in group)]
        for group in groups
    ]
    fed = [sum(rank in ranks_of for ranks_of in feeds) for rank in range(len(programs))]
    if programs and (len(set(fed)) > 1 or len(set(map(len, feeds))) > 1 or not all((*fed, *map(len, feeds)))):
        few = programs[min(range(len(fed)), key=fed.__getitem__)].own
        message = (
            f"the {len(programs)} loaders do not share the {len(groups)} replicas equally: {few} prepares batches for {min(fed)}"
        )
        mistakes.add(place, message, "each: node*, or each: gpu*; a loader is on the GPUs of the first pipeline stage")
    batch, left = divmod(global_batch, max(1, len(programs)))
    if left:
        message = f"a batch of {global_batch} cannot be split evenly over {len(programs)} loaders"
        mistakes.add(place, message, f"global_batch: {len(programs) * max(1, batch)}")
    if len(mistakes):
        return None
    parser = StageParser(as_pipeline(keys, batch), tree.get("dataset"), programs, mistakes)
    lines = [parser.stages(rank) for rank in range(len(programs))]
    joint = next((op for stages in lines for stage in stages for op in stage.ops if op.together), None)
    if joint is not None:
        mistakes.add(place, f"`{joint.name}` joins several loaders: a loader has only ops of its own", "write a `pipeline`")
    return None if len(mistakes) else Loader(programs, lines, feeds, batch, keys.epoch, machine)


def _is_in(machine: Machine, device: str, place: str) -> bool:
    while device and device != place:
        device = machine.node_of(device)
    return device == place


class LoaderWriter:
    """A writer of the loaders of a training, one batch of each for every step.

    Attributes:
        ready: op after which the batch of each loader is ready for the current step.
        free: op after which the training can take the batch of the current step.
    """

    def __init__(self, loader: Loader, ops: OpWriter) -> None:
        self.loader, self.ops, self.steps = loader, ops, 0
        self.ready: list[OpRef] = []
        self.free = OpRef(-1, -1)
        self._writers = [OpWriter(ops.builder, program.name) for program in loader.programs]
        self._marks: dict[Mark, OpRef] = {}  # last ops of the stages in the current body
        self._wanted: list[tuple[Mark, OpRef, int]] = []  # (mark, waiting op, batches between them)
        self._before: list[tuple[dict[Mark, OpRef], int]] = []  # marks and repetitions of earlier bodies
        self._stages: list[tuple[BatchStage, ...]] = []
        self._taken: list[OpRef] = []
        self._in_steps = False

    def ready_for(self, replica: int) -> list[OpRef]:
        """Return the ops after which the batch of a replica is ready."""
        return [self.ready[rank] for rank in self.loader.feeds[replica]]

    def taken(self, replica: int) -> list[OpRef]:
        """Return the ops after which a replica has its batch; the host takes it, if that takes time."""
        return [self._taken[rank] for rank in self.loader.feeds[replica]]

    def take(self) -> None:
        """Write the ops with which the hosts take the batches, if no thread of the training does."""
        self._taken = []
        for program, ready in zip(self.loader.programs, self.ready, strict=True):
            host, after = program.scope.host, [self.free, ready]
            cost, queue = host_cost(program, self.loader.handoff, self.ops.builder), self.ops.queue(f"{program.name}.take", host)
            seconds = 0.0 if cost >= 0 else self.loader.handoff
            self._taken.append(self.ops.add(TAKE, "host", host, queue, after, cost=cost, seconds=seconds))

    def begin(self, after: Sequence[OpRef]) -> None:
        """Write one batch of every loader into the current body.

        Args:
            after: ops after which the training can take a batch; (): the end of the step before.
        """
        self._in_steps = not after
        self._wanted, self.ready, self._stages = [], [], []
        self.free = self.ops.add("free for a batch", "join", "", -1, after)
        self._marks = {(rank, -1): self.free for rank in range(len(self._writers))}
        for rank, (writer, stages) in enumerate(zip(self._writers, self.loader.lines, strict=True)):
            shown, last = [], None
            for number, (stage, then) in enumerate(zip(stages, [*stages[1:], None], strict=True)):
                first, last, of_stage = self._stage(writer, rank, number, stage, last)
                self._wanted.append(((rank, number), first, stage.at_once))
                space = ((rank, number + 1), stage.ahead + then.at_once) if then is not None else ((rank, -1), stage.ahead)
                self._wanted.append((space[0], first, space[1]))
                shown.append(of_stage)
            self.ready.append(last or self.free)
            writer.add("batch", "begin", "", -1, [self.ready[-1], self.free])
            self._stages.append(tuple(shown))

    def _stage(
        self, writer: OpWriter, rank: int, number: int, stage: PlacedStage, after: OpRef | None
    ) -> tuple[OpRef, OpRef, BatchStage]:
        """Write one batch of a stage; return its first and last op, and its description."""
        program, refs, labels = self.loader.programs[rank], list[OpRef](), list[Label]()
        for index, op in enumerate(stage.ops):
            placed, name = op.at(self.loader.epoch - 1), op.name if len(stage.ops) == 1 else f"{op.name} {index}"
            queue = writer.queue(f"{name} {number}", placed.device) if stage.at_once == 1 else -1
            before = refs[-1:] or ([] if after is None else [after])
            refs.append(writer.add(name, op.kind, placed.device, queue, before, cost=placed.cost, seconds=placed.time))
            labels.append(Label(name, op.kind, placed.device, program.name))
        if stage.handoff and number + 1 < len(self.loader.lines[rank]):
            name, host = f"{stage.name} handed over", program.scope.host
            cost = host_cost(program, stage.handoff, writer.builder)
            seconds = 0.0 if cost >= 0 else stage.handoff
            refs.append(writer.add(name, "busy", host, writer.queue(name, host), refs[-1:], cost=cost, seconds=seconds))
            labels.append(Label(name, "busy", host, program.name))
        self._marks[rank, number] = refs[-1]
        device = stage.ops[-1].at(0).device
        ops = tuple(labels[: len(stage.ops)])
        return refs[0], refs[-1], BatchStage(stage.name, device, labels[0], labels[-1], ops, stage.at_once, stage.ahead)

    def end(self, step: OpRef, times: int) -> None:
        """Write the edges to earlier batches; `step`: op that ends the step; `times`: repetitions of the body."""
        builder = self.ops.builder
        if self._in_steps:
            builder.edge(step, self.free, lag=1)
        for mark, op, lag in self._wanted:
            builder.edge(self._marks[mark], op, lag=lag)
            for marks, count in reversed(self._before):
                if lag > 0:
                    builder.tie(marks[mark], op, lag=lag)
                lag -= count
        self._before.append((self._marks, times))
        self.steps += times

    def hold(self, before: OpRef) -> None:
        """Let the training take its next batch after an op, and the first batches wait for the start of the training."""
        self.ops.builder.tie(before, self.free)
        for (_, number), op, lag in self._wanted if len(self._before) == 1 else ():
            for late in range(1, lag + 1) if number == 0 else ():
                self.ops.builder.tie(before, op, lag=late)

    def describe(self, devices: Sequence[str]) -> None:
        """Add the loaders as pipelines to the graph, for the results; `devices`: first GPU of each loader."""
        builder = self.ops.builder
        labels = [builder.label_at(index) for index in range(builder.label_count())]
        last = Label("step", "step", "", self.ops.program)
        for writer, stages, device in zip(self._writers, self._stages, devices, strict=True):
            own = tuple(label for label in labels if label.device == device and label.program == self.ops.program)
            step = BatchStage("training step", device, Label("batch", "begin", "", writer.program), last, own)
            builder.line(BatchPipeline(writer.program, (*stages, step), self.loader.batch, (self.steps,)))
