"""What a GPU of a training does, one op after another: kernels that the host issues, and exchanges they wait for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from hwsim.demand import Cost
from hwsim.devices import Cpu
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import Operation
from hwsim.models.layer import Kernel
from hwsim.records import dataclass
from hwsim.units import BYTES
from hwsim.workload.training.network_exchange import Exchanges
from hwsim.workload.training.network_items import AFTER, BEFORE, Item
from hwsim.workload.training.network_kernels import Costs
from hwsim.workload.training.network_plan import NetworkPlan

Marks = list[tuple[Item, list[OpRef]]]  # items with parameters, and the last kernel of each GPU that completes their gradients


@dataclass(slots=True)
class Thread:
    """A host's thread that issues kernels for one GPU, or for all."""

    queue: int
    host: str
    begin: OpRef | None = None


@dataclass(slots=True)
class Worker:
    """A GPU: its queue, its thread, what its next kernel waits for, its first kernel of the step and its latest."""

    device: str
    costs: Costs
    queue: int
    thread: Thread
    copy: int
    stage: int
    waits: list[OpRef] = field(default_factory=list)
    first: OpRef | None = None
    last: OpRef | None = None


@dataclass(slots=True)
class Issuing:
    """Adds the ops of workers to a graph."""

    plan: NetworkPlan
    machine: Machine
    builder: GraphBuilder
    name: str
    exchanges: Exchanges
    _spent: dict[tuple[str, float], Cost | None] = field(default_factory=dict)

    def through(self, group: Sequence[Worker], items: Sequence[Item], direction: str) -> tuple[list[OpRef], Marks]:
        """A micro-batch through the layers of a stage; the first kernel of each GPU, and what completes gradients."""
        firsts: dict[str, OpRef] = {}
        marks: Marks = []
        devices = [worker.device for worker in group]
        for item in items:
            going: list[OpRef] = []
            gathered = self._exchange(group, BEFORE, devices, item.gathered, f"gather {item.name}") if item.gathered else []
            for worker in group:
                worker.waits += gathered
                self.dispatch(worker, len(item.ops))
            for at, op in enumerate(item.ops):
                for worker in group:
                    here = self.kernel(worker, op, direction, firsts)
                    worker.first = worker.first or firsts[worker.device]
                    worker.last = here
                if item.scattered and at == 0:  # the gradient of the weights is computed meanwhile
                    going = self._exchange(group, AFTER, devices, item.scattered, f"scatter {item.name}")
            for worker in group:
                worker.waits += going
            if item.parameters:
                marks.append((item, [worker.last for worker in group if worker.last is not None]))
        return [firsts[worker.device] for worker in group], marks

    def _exchange(
        self, group: Sequence[Worker], operation: Operation, devices: Sequence[str], amount: float, name: str
    ) -> list[OpRef]:
        """The GPUs of a split put together what each has."""
        ready = [worker.last for worker in group if worker.last is not None]
        return self.exchanges.among(operation, devices, amount, ready, name)

    @property
    def _casting(self) -> float:
        """What converting numbers adds to the host's time."""
        return self.plan.software.casting if BYTES[self.plan.dtype] < 4 else 1.0

    def dispatch(self, worker: Worker, count: int) -> None:
        """The host issues so many kernels."""
        seconds = self.plan.software.dispatch * self._casting * count
        if seconds > 0:
            worker.waits.append(self.host(worker.thread, "dispatch", seconds))

    def kernel(self, worker: Worker, op: Kernel, direction: str, firsts: dict[str, OpRef] | None = None) -> OpRef:
        """All kernels of one layer op, after all that the GPU waits for."""
        here = None
        for at, timed in enumerate(worker.costs.chosen(op)):
            here = self.builder.op(
                f"{direction} {op.name}" if direction != op.name else op.name,
                kind=op.kind,
                device=worker.device,
                program=self.name,
                cost=worker.costs.of(timed, worker.device),
                queue=worker.queue,
                after=worker.waits if at == 0 else (),
            )
            worker.waits = []
            if firsts is not None:
                firsts.setdefault(worker.device, here)
        if here is None:
            raise ValueError(f"no kernel for {op.name}")
        return here

    def join(self, worker: Worker) -> OpRef:
        """The point at which a GPU has all it waits for."""
        after = [*worker.waits, *([worker.last] if worker.last is not None else [])]
        worker.waits = []
        return self.builder.op("parameters", kind="join", device=worker.device, program=self.name, after=after)

    def send(self, source: Worker, target: Worker, amount: float, name: str) -> OpRef:
        ready = [source.last] if source.last is not None else []
        return self.exchanges.among("send", [source.device, target.device], amount, ready, f"send {name}")[-1]

    def host(self, thread: Thread, name: str, seconds: float, after: Sequence[OpRef] = ()) -> OpRef:
        return self.busy(thread, name, seconds, thread.queue, after)

    def busy(self, thread: Thread, name: str, seconds: float, queue: int, after: Sequence[OpRef] = ()) -> OpRef:
        """So long on a core of the host; without a host the time alone."""
        key = thread.host, seconds
        if key not in self._spent:
            model = self.machine.device(thread.host).model if thread.host else None
            self._spent[key] = model.busy(thread.host, seconds) if isinstance(model, Cpu) and seconds > 0 else None
        cost = self._spent[key]
        time = 0.0 if cost is not None else seconds
        return self.builder.op(
            name, kind="host", device=thread.host, program=self.name, cost=cost, time=time, queue=queue, after=after
        )
