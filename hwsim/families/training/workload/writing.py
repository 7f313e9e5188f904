"""Steps of a training as ops: the only writer of its op graph.

    a step = what the hosts do before it; the passes of every micro-batch through every stage, in the order of the schedule,
             with the sends between stages; the exchange of gradients among replicas; the update of the weights

The plan holds what differs between trainings. `ByKernel` writes an op for each kernel of each GPU, issued by a thread of the
host, and exchanges gradients in buckets. `BySegment` writes an op for each segment of a pass of a stage group, and exchanges
gradients and sharded weights in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hwsim.families.training.workload.by_kernel import ByKernel
from hwsim.families.training.workload.by_segment import BySegment
from hwsim.families.training.workload.plan import Buckets, Pieces, PlacedPlan
from hwsim.families.training.workload.schedule import Pass, in_order, successor
from hwsim.families.training.workload.segments import Segments
from hwsim.families.training.workload.workers import Ops
from hwsim.graph.builder import OpRef

Place = tuple[int, int, Pass]  # replica, stage, pass


class Steps:
    """Writes the steps of one training.

    grain: writes the ops of a pass, kernel by kernel or segment by segment.
    """

    def __init__(self, placed: PlacedPlan, ops: Ops, *, hosts: Sequence[str], by_layer: bool) -> None:
        """Queues and workers of a training.

        Args:
            hosts: the host of each GPU, if it issues kernels.
            by_layer: an op for every stretch between two exchanges of a stage group.
        """
        self.plan, self.builder, self.name = placed.plan, ops.builder, ops.program
        self.represented, self.replicas = placed.represented, placed.represented.replicas
        self.grain: ByKernel | BySegment
        match self.plan.exchange:
            case Buckets() as buckets:
                self.grain = ByKernel(placed, buckets, ops, hosts)
            case Pieces() as pieces:
                self.grain = BySegment(pieces, ops, Segments(placed, pieces, self.builder, by_layer=by_layer))
        self._arrived: dict[Place, OpRef] = {}  # sends whose pass is not yet written
        self._begun: dict[Place, OpRef] = {}  # first ops of passes whose send is not yet written

    def write(self, after: OpRef | None = None) -> list[OpRef]:
        """All steps, once `after` has ended; the last ops of the last step."""
        with self.builder.repeat(self.plan.steps):
            self.grain.begin(waits=after is not None)
            for replicas, stage, current in self._order():
                self._through(replicas, stage, current)
            ends = self.grain.end()
            self.builder.op("step", kind="step", program=self.name, after=ends)
        if after is not None:
            for start in self.grain.starts():
                self.builder.tie(after, start)
        return ends

    def _order(self) -> Iterator[tuple[Sequence[int], int, Pass]]:
        """(replicas, stage, pass) in the order in which they are written.

        Segments: every pass behind those it waits for, for all replicas at once. Kernels: replica by replica and stage by stage.
        """
        if isinstance(self.grain, ByKernel) and self.plan.layout.pp > 1:
            stages = list(enumerate(self.plan.lines))
            return (([replica], stage, current) for replica in self.replicas for stage, line in stages for current in line)
        return ((self.replicas, stage, current) for stage, current in in_order(self.plan.lines, self.plan.layout.chunks))

    def _through(self, replicas: Sequence[int], stage: int, current: Pass) -> None:
        """Write one pass of some replicas, after the sends that it waits for, and the sends of its results."""
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
