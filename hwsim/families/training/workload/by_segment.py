"""Passes with one op per segment of a stage group, and exchanges among replicas in pieces, partly overlapped.

The GPUs of a stage group do the same work at the same time, so one op uses all of them, and its slowest GPU sets its time. Queues
are named after the first device of a group: compute; tp, cp, ep and dp for the collectives of each axis; sends in each direction.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.families.training.workload.loader import LoaderWriter
from hwsim.families.training.workload.plan import PieceExchange
from hwsim.families.training.workload.schedule import MicrobatchPass
from hwsim.families.training.workload.segments import Segments
from hwsim.families.training.workload.workers import OpWriter, Worker, latest
from hwsim.graph.builder import OpRef
from hwsim.models.exchanges import EXPOSED, HIDDEN
from hwsim.models.layer import Exchange, Kernel


class BySegment:
    """A writer of the passes and the end of a step, segment by segment.

    Attributes:
        workers: stage group by stage and replica.
        lives: ops of the first replica that use the activations of a pass, by stage, microbatch and virtual stage.
    """

    def __init__(self, pieces: PieceExchange, ops: OpWriter, segments: Segments) -> None:
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
        self._second: dict[tuple[int, int], OpRef] = {}  # first op after the first forward pass, by stage and replica
        self._sent: dict[tuple[int, int], OpRef] = {}  # send of the result of that pass, by stage and replica
        self._through: set[int] = set()  # stages whose first forward pass is written
        self._ends: dict[tuple[int, int], list[OpRef]] = {}  # last ops of pieces, by stage and replica
        self._gathered: dict[int, OpRef] = {}  # first op that gathers weights, by stage
        self._computed: dict[int, tuple[int, Sequence[OpRef]]] = {}  # last piece whose gradients are not yet sent, by stage
        self._exchanged: dict[int, list[OpRef]] = {stage: [] for stage in range(plan.layout.pp)}  # gradients, by stage

    def begin(self, batches: LoaderWriter | None, *, waits: bool) -> None:  # noqa: ARG002
        """Let the first stage wait for its batch; no host launches these ops."""
        if batches is None:
            return
        batches.begin(())
        batches.take()
        for (stage, replica), workers in self.workers.items():
            for worker in workers if stage == 0 else ():
                worker.waits = batches.taken(replica)

    def starts(self) -> list[OpRef]:
        """Return the ops that wait for the start of the training."""
        return [worker.first for (worker,) in self.workers.values() if worker.first is not None]

    def through(self, stage: int, done: MicrobatchPass, replicas: Sequence[int]) -> None:
        """Write the pass of one microbatch through a virtual stage."""
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
            worker.waits = []  # the queue orders the next pass
        if done.forward and done.chunk == self.plan.layout.chunks - 1:
            self._through.add(stage)

    def _op(self, worker: Worker, name: str, kind: str, cost: int, queue: str) -> OpRef:
        """Write an op of a stage group, which its next op waits for."""
        number = self.ops.queue(f"{worker.device}.{queue}", worker.device, worker.many, queue)
        op = self.ops.add(name, kind, worker.device, number, worker.waits, cost=cost)
        worker.issued(op)
        worker.waits = [op]
        return op

    def send(self, source: Worker, target: Worker, *, forward: bool) -> OpRef:
        """Write the send of the result of a pass to the next stage group."""
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
        """Write the overlapped or the exposed part of a collective among replicas of a stage, if it is not empty."""
        part = times * (1.0 - item.exposed if hidden else item.exposed)
        if part <= 0:
            return []
        cost = self.segments.scaled(self.segments.exchanging(stage, item, count), part, HIDDEN if hidden else EXPOSED)
        first = self.workers[stage, self.segments.replicas[0]][0].device
        return [self.ops.add(item.name, item.operation, first, self.ops.queue(f"{first}.dp", first, kind="dp"), after, cost=cost)]

    def _gather(self, stage: int, done: MicrobatchPass, count: int) -> list[OpRef]:
        """Write the gathering of the sharded weights of the next piece, after the piece before the current one.

        The exchange takes its full time, but kernels wait only for a part of it. The gradients of a piece follow the weights of
        the next one on the same queue, so a step is never shorter than its exchanges.
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
        """Write an exchange of sharded weights or gradients of one of `count` pieces, with its full time."""
        first = self.workers[stage, self.segments.replicas[0]][0].device
        cost = self.segments.scaled(self.segments.exchanging(stage, item, count), times, HIDDEN)
        return [self.ops.add(item.name, item.operation, first, self.ops.queue(f"{first}.dp", first, kind="dp"), after, cost=cost)]

    def _scattered(self, stage: int) -> None:
        """Write the exchange of the gradients of the last piece, after the gathering of weights."""
        computed = self._computed.pop(stage, None)
        if computed is not None:
            self._exchanged[stage] += self._sharded(stage, self.segments.stages[stage].gathered[1], computed[0], 1.0, computed[1])

    def _scatter(self, stage: int, count: int, after: Sequence[OpRef], *, last: bool, final: bool) -> list[OpRef]:
        """Write the exchange of a piece's gradients, which overlaps the next piece; the exchange of the last piece is exposed."""
        piece_count = count * self.plan.layout.chunks
        if self.segments.stages[stage].gathered:
            self._computed[stage] = count, after
            return []
        gradients = self.segments.gradients(stage)
        if gradients is None or final or not (last and gradients.exposed < 1.0):
            return []
        return self._exchange(stage, gradients, piece_count, after, hidden=True, times=piece_count / (piece_count - 1))

    def end(self) -> list[OpRef]:
        """Write the end of a step: exposed gradients, optimizer and updated weights; return its last ops."""
        return [op for stage in range(self.plan.layout.pp) for op in self._end(stage)]

    def _end(self, stage: int) -> list[OpRef]:
        """Write the end of a step of one stage; a part of the exchange of updated weights overlaps the next forward pass."""
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
