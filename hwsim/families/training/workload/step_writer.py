"""Writer of the ops of the steps of a training.

    a step = host work before it; the passes of every microbatch through every stage, in the order of the schedule, with the sends
             between stages; the exchange of gradients among replicas; the update of the weights

`ByKernel` writes one op per kernel of each GPU, launched by a host thread, and exchanges gradients in buckets. `BySegment` writes
one op per segment of a pass of a stage group, and exchanges gradients and sharded weights in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwsim.families.training.workload.by_kernel import ByKernel
from hwsim.families.training.workload.by_segment import BySegment
from hwsim.families.training.workload.loader import LoaderWriter
from hwsim.families.training.workload.plan import BucketExchange, PieceExchange, PlacedPlan
from hwsim.families.training.workload.schedule import MicrobatchPass, in_order, successor
from hwsim.families.training.workload.segments import Segments
from hwsim.families.training.workload.workers import OpWriter
from hwsim.graph.builder import OpRef

Place = tuple[int, int, MicrobatchPass]  # replica, stage, pass


class StepWriter:
    """A writer of the steps of one training; `grain` writes the ops of a pass, kernel by kernel or segment by segment."""

    def __init__(
        self, placed: PlacedPlan, ops: OpWriter, *, hosts: Sequence[str], by_layer: bool, batches: LoaderWriter | None = None
    ) -> None:
        """Create the queues and workers of a training.

        Args:
            placed: plan on the machine.
            ops: writer of ops.
            hosts: host of each GPU, if hosts launch kernels.
            by_layer: one op for the kernels between two exchanges of a stage group.
            batches: writer of the data loaders; None: batches are in GPU memory.
        """
        self.plan, self.builder, self.name = placed.plan, ops.builder, ops.program
        self.batches = batches
        self.represented, self.replicas = placed.represented, placed.represented.replicas
        self.grain: ByKernel | BySegment
        match self.plan.exchange:
            case BucketExchange() as buckets:
                self.grain = ByKernel(placed, buckets, ops, hosts)
            case PieceExchange() as pieces:
                self.grain = BySegment(pieces, ops, Segments(placed, pieces, self.builder, by_layer=by_layer))
        self._arrived: dict[Place, OpRef] = {}  # sends to passes that are not yet written
        self._begun: dict[Place, OpRef] = {}  # first ops of passes whose incoming send is not yet written

    def write(self, after: OpRef | None = None) -> list[OpRef]:
        """Write all steps after `after`, and return the last ops of the last step."""
        with self.builder.repeat(self.plan.steps):
            self.grain.begin(self.batches, waits=after is not None)
            for replicas, stage, current in self._order():
                self._through(replicas, stage, current)
            ends = self.grain.end()
            step = self.builder.op("step", kind="step", program=self.name, after=ends)
            if self.batches is not None:
                self.batches.end(step, self.plan.steps)
        if after is not None:
            for start in self.grain.starts():
                self.builder.tie(after, start)
            if self.batches is not None:
                self.batches.hold(after)
        return ends

    def _order(self) -> Iterator[tuple[Sequence[int], int, MicrobatchPass]]:
        """Yield (replicas, stage, pass) in the order of writing.

        Segments: every pass after those that it waits for, for all replicas together. Kernels: by replica, then by stage.
        """
        if isinstance(self.grain, ByKernel) and self.plan.layout.pp > 1:
            stages = list(enumerate(self.plan.lines))
            return (([replica], stage, current) for replica in self.replicas for stage, line in stages for current in line)
        return ((self.replicas, stage, current) for stage, current in in_order(self.plan.lines, self.plan.layout.chunks))

    def _through(self, replicas: Sequence[int], stage: int, current: MicrobatchPass) -> None:
        """Write one pass of some replicas, and the sends of its results."""
        layout, edge = self.plan.layout, self.builder.edge
        for replica in replicas:
            for worker in self.grain.workers[stage, replica]:
                worker.begun = None
        self.grain.through(stage, current, replicas)
        following = successor(stage, current, layout.pp, layout.chunks)
        for replica in replicas:
            source = self.grain.workers[stage, replica][0]
            place = replica, stage, current
            if source.begun is not None:
                self._begun[place] = source.begun
                if place in self._arrived:
                    edge(self._arrived[place], source.begun)
            if following is None or following[0] == stage:
                continue
            sent = self.grain.send(source, self.grain.workers[following[0], replica][0], forward=current.forward)
            place = replica, *following
            self._arrived[place] = sent
            if place in self._begun:
                edge(sent, self._begun[place])
