"""State of a step while its ops are written: queues, host threads, and groups of GPUs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.models.capacity_amounts import Names
from hwsim.records import dataclass
from hwsim.workload.programs import MAIN


@dataclass(slots=True)
class LaunchThread:
    """A host thread that launches kernels for one GPU, or for all.

    Args:
        queue: index of its queue.
        host: name of the CPU.
        many: number of threads that it represents, including itself.
        begin: its first op of the step.
    """

    queue: int
    host: str
    many: int = 1
    begin: OpRef | None = None


@dataclass(slots=True)
class Worker:
    """A group of GPUs with common ops: a stage group of a replica, or one GPU of it.

    Args:
        devices: names of the GPUs.
        stage: index of the stage.
        replica: index of the replica.
        thread: host thread that launches its kernels; None: no host is modelled.
        waits: ops that the next op waits for.
        first: first op of the step.
        last: last op of the step so far.
        begun: first op of the pass.
        many: number of workers that it represents, including itself.
    """

    devices: Names
    stage: int
    replica: int
    thread: LaunchThread | None = None
    waits: list[OpRef] = field(default_factory=list)
    first: OpRef | None = None
    last: OpRef | None = None
    begun: OpRef | None = None
    many: int = 1

    @property
    def device(self) -> str:
        """Device that names its ops and queues."""
        return self.devices[0]

    @property
    def latest(self) -> list[OpRef]:
        """List of its last op; empty if it has none."""
        return [] if self.last is None else [self.last]

    def issued(self, op: OpRef) -> None:
        """Record its latest op."""
        self.first, self.begun, self.last = self.first or op, self.begun or op, op
        self.waits = []


def latest(workers: Iterable[Worker]) -> list[OpRef]:
    """Return the last ops of workers."""
    return [op for worker in workers for op in worker.latest]


@dataclass(slots=True)
class OpWriter:
    """A writer of ops and queues of one program.

    Args:
        builder: builder of the graph.
        program: name of the program.
        many: number of queues that a queue represents, by its index, if more than one.
    """

    builder: GraphBuilder
    program: str
    many: dict[int, int] = field(default_factory=dict)
    _queues: dict[str, int] = field(default_factory=dict)

    def queue(self, name: str, device: str, many: int = 1, kind: str = "") -> int:
        """Return the index of a queue, created at its first use; `many`: number of queues that it represents."""
        if name not in self._queues:
            shown = name if self.program == MAIN else f"{self.program}:{name}"
            number = self._queues[name] = self.builder.queue(shown, device, kind=kind)
            if many > 1:
                self.many[number] = many
        return self._queues[name]

    def add(
        self,
        name: str,
        kind: str,
        device: str,
        queue: int,
        after: Iterable[OpRef],
        *,
        cost: int | Cost | None = None,
        seconds: float = 0.0,
    ) -> OpRef:
        """Add an op, and return it.

        Args:
            name: label of the op.
            kind: kind of the op.
            device: device of the op.
            queue: index of its queue; -1: none.
            after: ops that it waits for.
            cost: cost, or its index in the builder.
            seconds: time before the cost (s).
        """
        index = cost if isinstance(cost, int) else self.builder.cost(cost)
        label, time = self.builder.label(name, kind, device, self.program), ticks.femtoseconds(seconds)
        return self.builder.indexed(label, index, list(dict.fromkeys(after)), time=time, queue=queue)
