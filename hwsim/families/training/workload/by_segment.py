"""Passes as an op for each segment of a stage group, and exchanges among replicas in pieces with a hidden and an exposed part.

The GPUs of a stage group do the same at the same time, so that what they do is one op that draws on all of them; a slow one
among them slows it. Queues are named after the first device of a group: compute; tp, cp, ep and dp, one for each kind of group
that exchanges; sends in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.families.training.workload.plan import Pieces
from hwsim.families.training.workload.schedule import Pass
from hwsim.families.training.workload.segments import Segments
from hwsim.families.training.workload.workers import Ops, Worker, latest
from hwsim.graph.builder import OpRef
from hwsim.models.exchanges import EXPOSED, HIDDEN
from hwsim.models.layer import Exchange, Kernel


class BySegment:
    """Writes the passes and the end of a step.

    Attributes:
        workers: by stage and replica the stage group.
        lives: by stage, micro-batch and virtual stage the ops of the first replica that need the activations of a pass.
    """

    def __init__(self, pieces: Pieces, ops: Ops, segments: Segments) -> None:
        self.plan = plan = segments.plan
        self.pieces, self.ops, self.segments = pieces, ops, segments
        self.workers = {
            (stage, replica): [
                Worker(plan.layout.group(stage, replica), stage, replica, many=segments.represented.stands_for(replica))
            ]
            for stage in range(plan.layout.pp)
            for replica in segments.replicas
        }
        self._lines = plan.lines
        self._finals = [{done.chunk: done for done in line} for line in self._lines]  # last pass through each virtual stage
        self.lives: dict[tuple[int, int, int], list[OpRef]] = {}
        self._second: dict[tuple[int, int], OpRef] = {}  # by stage and replica the first op after its first forward pass
        self._sent: dict[tuple[int, int], OpRef] = {}  # the send of the result of that pass
        self._through: set[int] = set()  # stages whose first forward pass is written
        self._ends: dict[tuple[int, int], list[OpRef]] = {}  # by stage and replica the ends of pieces
        self._gathered: dict[int, OpRef] = {}  # by stage the first op that gathers its weights
        self._computed: dict[int, tuple[int, Sequence[OpRef]]] = {}  # by stage the last piece, whose gradients are not yet sent
        self._exchanged: dict[int, list[OpRef]] = {stage: [] for stage in range(plan.layout.pp)}  # gradients, meanwhile

    def begin(self, *, waits: bool) -> None:
        """Nothing: no host issues these ops."""

    def starts(self) -> list[OpRef]:
        """The ops that wait for the start of the training."""
        return [worker.first for (worker,) in self.workers.values() if worker.first is not None]

    def through(self, stage: int, done: Pass, replicas: Sequence[int]) -> None:
        """One micro-batch through a virtual stage."""
        last = self._finals[stage][done.chunk] == done
        count = self.segments.count(stage, last=last)
        workers = [self.workers[stage, replica][0] for replica in replicas]
        lives = self.lives.setdefault((stage, done.microbatch, done.chunk), [])
        for number in range(count):
            gathered = self._gather(stage, done, count)
            ends: list[OpRef] = []
            for worker in workers:
                for segment in self.segments.of(stage, done, last, number, worker.replica):
                    worker.waits += gathered
                    op = self._op(worker, segment.name, segment.kind, segment.cost, segment.queue)
                    if stage in self._through:
                        self._second.setdefault((stage, worker.replica), op)
                    if worker.replica == self.segments.replicas[0]:
                        lives.append(op)
                ends += worker.waits
                self._ends.setdefault((stage, worker.replica), []).extend(worker.waits)
            if not done.forward:
                self._exchanged[stage] += self._scatter(
                    stage, count, ends, last=last, final=done == self._lines[stage][-1] and number == count - 1
                )
        for worker in workers:
            worker.waits = []  # the next pass follows it on its queue
        if done.forward and done.chunk == self.plan.layout.chunks - 1:
            self._through.add(stage)

    def _op(self, worker: Worker, name: str, kind: str, cost: int, queue: str) -> OpRef:
        """An op of a stage group behind all that it waits for, which its next op waits for."""
        number = self.ops.queue(f"{worker.device}.{queue}", worker.device, worker.many, queue)
        op = self.ops.add(name, kind, worker.device, number, worker.waits, cost=cost)
        worker.issued(op)
        worker.waits = [op]
        return op

    def send(self, source: Worker, target: Worker, *, forward: bool) -> OpRef:
        """The result of a pass to the stage group that takes it."""
        cost = self.segments.sending(source.stage, target.stage, source.replica)
        name, suffix = ("send activations", "send") if forward else ("send gradients back", "send back")
        queue = self.ops.queue(f"{source.device}.{suffix}", source.device, source.many)
        sent = self.ops.add(name, "send", source.device, queue, source.latest, cost=cost)
        if forward and source.stage in self._through:
            self._sent.setdefault((source.stage, source.replica), sent)
        return sent

    # ---- exchanges among replicas

    def _exchange(
        self, stage: int, item: Exchange, count: float, after: Sequence[OpRef], *, hidden: bool, times: float = 1.0
    ) -> list[OpRef]:
        """A collective of the stage's replicas: the part of it that hides behind kernels, or the exposed part; none if empty."""
        part = times * (1.0 - item.exposed if hidden else item.exposed)
        if part <= 0:
            return []
        cost = self.segments.scaled(self.segments.exchanging(stage, item, count), part, HIDDEN if hidden else EXPOSED)
        first = self.workers[stage, self.segments.replicas[0]][0].device
        return [self.ops.add(item.name, item.operation, first, self.ops.queue(f"{first}.dp", first, kind="dp"), after, cost=cost)]

    def _gather(self, stage: int, done: Pass, count: int) -> list[OpRef]:
        """Sharded weights of the next piece, once the piece before the current one has been computed.

        The exchange takes all of its time, though computing waits for a part of it. Gradients of a piece follow the weights of
        the next one on the same queue: a step is never shorter than its exchanges.
        """
        if not self.segments.stages[stage].gathered:
            return []
        times = self.segments.gathers(stage, forward=done.forward)
        gathered = []
        if times > 0:
            item = self.segments.stages[stage].gathered[0]
            after = [ends[-2] for replica in self.segments.replicas if len(ends := self._ends.get((stage, replica), [])) > 1]
            gathered = self._sharded(stage, item, count, times, after)
            self._gathered.setdefault(stage, gathered[0])
        self._scattered(stage)
        return gathered

    def _sharded(self, stage: int, item: Exchange, count: int, times: float, after: Sequence[OpRef]) -> list[OpRef]:
        """An exchange of sharded weights or gradients of one of `count` pieces, with all of its time."""
        first = self.workers[stage, self.segments.replicas[0]][0].device
        cost = self.segments.scaled(self.segments.exchanging(stage, item, count), times, HIDDEN)
        return [self.ops.add(item.name, item.operation, first, self.ops.queue(f"{first}.dp", first, kind="dp"), after, cost=cost)]

    def _scattered(self, stage: int) -> None:
        """Write the exchange of the gradients of the last piece, behind the weights that are gathered meanwhile."""
        computed = self._computed.pop(stage, None)
        if computed is not None:
            self._exchanged[stage] += self._sharded(stage, self.segments.stages[stage].gathered[1], computed[0], 1.0, computed[1])

    def _scatter(self, stage: int, count: int, after: Sequence[OpRef], *, last: bool, final: bool) -> list[OpRef]:
        """Gradients of a piece, while the next one is computed; the last piece's are among the exposed ones."""
        many = count * self.plan.layout.chunks
        if self.segments.stages[stage].gathered:
            self._computed[stage] = count, after
            return []
        gradients = self.segments.gradients(stage)
        if gradients is None or final or not (last and gradients.exposed < 1.0):
            return []
        return self._exchange(stage, gradients, many, after, hidden=True, times=many / (many - 1))

    def end(self) -> list[OpRef]:
        """The end of a step in every stage: gradients that nothing hides, the optimizer, updated weights; its last ops."""
        return [op for stage in range(self.plan.layout.pp) for op in self._end(stage)]

    def _end(self, stage: int) -> list[OpRef]:
        """The next step starts with the updated weights, but for the part that hides behind its first forward pass."""
        workers = [self.workers[stage, replica][0] for replica in self.segments.replicas]
        edge = self.ops.builder.edge
        self._scattered(stage)
        waited = [*latest(workers), *self._exchanged[stage]]
        for part in self.segments.stages[stage].ending:
            if isinstance(part, Kernel):
                optimized = []
                for worker in workers:
                    worker.waits = waited
                    cost = self.segments.kernel(part, worker.devices, self.pieces.waiting)
                    optimized.append(self._op(worker, "optimizer", "optimizer", cost, "compute"))
                waited = optimized
                for op in optimized if stage in self._gathered else ():
                    edge(op, self._gathered[stage], lag=1)
                continue
            item = (self.segments.gradients(stage) or part) if part.name == "gradients" else part
            exposed = self._exchange(stage, item, 1.0, waited, hidden=False)
            waited = exposed or waited
            if item.name == "weights":
                hidden = self._exchange(stage, item, 1.0, waited, hidden=True)
                for worker in workers:
                    for op in exposed:
                        edge(op, worker.first or op, lag=1)
                    place = stage, worker.replica
                    for needs in (self._second[place], *([self._sent[place]] if place in self._sent else [])):
                        for op in hidden:
                            edge(op, needs, lag=1)
        return waited
