"""State of a step while it is written: queues, and the GPUs whose ops are issued together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from hwsim import ticks
from hwsim.demand import Cost
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.models.numbered import Names
from hwsim.records import dataclass
from hwsim.workload.programs import MAIN


@dataclass(slots=True)
class Thread:
    """A thread of a host that issues kernels for one GPU, or for all.

    Args:
        many: threads of its host that it represents, itself among them. begin: its first op of the step.
    """

    queue: int
    host: str
    many: int = 1
    begin: OpRef | None = None


@dataclass(slots=True)
class Worker:
    """GPUs whose ops are issued together: a stage group of a replica, or one GPU of it.

    Args:
        waits: ops that the next op waits for.
        first, last: ops of the step so far; begun: the first op of the pass.
        many: workers that it represents, itself among them.
    """

    devices: Names
    stage: int
    replica: int
    thread: Thread | None = None
    waits: list[OpRef] = field(default_factory=list)
    first: OpRef | None = None
    last: OpRef | None = None
    begun: OpRef | None = None
    many: int = 1

    @property
    def device(self) -> str:
        """The device that its ops and queues are called after."""
        return self.devices[0]

    @property
    def latest(self) -> list[OpRef]:
        """Its last op, if it has one."""
        return [] if self.last is None else [self.last]

    def issued(self, op: OpRef) -> None:
        """Take note of its latest op."""
        self.first, self.begun, self.last = self.first or op, self.begun or op, op
        self.waits = []


def latest(workers: Iterable[Worker]) -> list[OpRef]:
    """The last op of each that has one."""
    return [op for worker in workers for op in worker.latest]


@dataclass(slots=True)
class Ops:
    """Ops and queues of one program."""

    builder: GraphBuilder
    program: str
    many: dict[int, int] = field(default_factory=dict)  # by queue the number that it represents, if several
    _queues: dict[str, int] = field(default_factory=dict)

    def queue(self, name: str, device: str, many: int = 1, kind: str = "") -> int:
        """The queue of that name, made at its first use; many: queues that it represents, itself among them."""
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
        """Add an op.

        Args:
            after: ops that end before it starts.
            cost: the cost, or its index in the builder; seconds: its own time before the cost.
        """
        index = cost if isinstance(cost, int) else self.builder.cost(cost)
        label, time = self.builder.label(name, kind, device, self.program), ticks.femtoseconds(seconds)
        return self.builder.indexed(label, index, list(dict.fromkeys(after)), time=time, queue=queue)
