"""Passes with one op per kernel of each GPU, launched by a host thread, and gradients in buckets.

    a step = step of the framework; forward and backward pass of every microbatch, layer by layer, each launched by the host
             first; gradient buckets as the last backward pass completes them; the update

The host time of a framework is `dispatch` per kernel and per updated array, `step` before each step, `array` per exchanged array
of gradients, and `number` per element of the inputs.

Every exchange is one op per phase of its algorithm, and the exchanges of one group follow each other. Parameter servers update
their parameters between push and pull.

**Error**: see `docs/validation/models.md`.
**Range**: inputs are in memory; kernels of one GPU run in sequence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import takewhile

from hwsim.communication.flows import Flows
from hwsim.demand import Cost
from hwsim.families.training.workload.buckets import all_reduce, fill_buckets
from hwsim.families.training.workload.costs import busy_cost
from hwsim.families.training.workload.loader import TAKE, LoaderWriter
from hwsim.families.training.workload.plan import BucketExchange, PlacedPlan
from hwsim.families.training.workload.schedule import MicrobatchPass
from hwsim.families.training.workload.servers import server_flows, servers_near, update_cost
from hwsim.families.training.workload.workers import LaunchThread, OpWriter, Worker, latest
from hwsim.graph.builder import OpRef
from hwsim.models.capacity_amounts import Names
from hwsim.models.layer import Exchange, Item, Kernel, Layer, exchanges, kernels
from hwsim.units import BYTES

Marks = list[tuple[Layer, list[OpRef]]]  # (layer with parameters, ops of the GPUs that complete its gradients)


class ByKernel:
    """A writer of host work, passes and the end of a step, kernel by kernel.

    Attributes:
        workers: GPUs by stage and replica.
    """

    def __init__(self, placed: PlacedPlan, buckets: BucketExchange, ops: OpWriter, hosts: Sequence[str]) -> None:
        """Create threads, queues and workers; `hosts`: host of each GPU."""
        self.buckets, self.ops = buckets, ops
        self.machine, self.exchanges = placed.machine, placed.exchanges
        self.plan, self.represented = plan, represented = placed.plan, placed.represented
        self._busy_cost = cache(partial(busy_cost, placed.machine))
        self.software = software = buckets.software
        self._dispatching = software.dispatch * (software.casting if BYTES[plan.dtype] < 4 else 1.0)
        self.replicas = replicas = represented.replicas
        self.workers: dict[tuple[int, int], list[Worker]] = {}
        self._marks: dict[tuple[int, int], Marks] = {}
        self._comm: dict[Names, int] = {}
        threads: dict[str, LaunchThread] = {}
        for replica in replicas:
            for stage in range(plan.layout.pp):
                for part in range(plan.layout.tp):
                    place = plan.layout.place(part, 0, stage, replica)
                    device, host = plan.layout.devices[place], hosts[place]
                    key, many = host if buckets.one_thread else device, represented.stands_for(replica)
                    if key not in threads:
                        name = f"{host}.host" if buckets.one_thread else f"{device}:{host}.host"
                        near = len(represented.near[replica])
                        threads[key] = LaunchThread(ops.queue(name, host, many), host, 1 if buckets.one_thread else near)
                    ops.queue(f"{device}.compute", device, many, "compute")
                    worker = Worker((device,), stage, replica, threads[key], many=many)
                    self.workers.setdefault((stage, replica), []).append(worker)
        self.threads = list(threads.values())
        self._held: list[OpRef] = []  # first ops of threads that have no other op before a step

    # ---- the hosts

    def begin(self, batches: LoaderWriter | None, *, waits: bool) -> None:
        """Write the host work before each step, and for its batch and inputs.

        Args:
            batches: data loaders; None: batches are in GPU memory.
            waits: whether the first step waits for another op, so that every thread needs a first op.
        """
        self._held = []
        inputs: list[OpRef] = []
        for thread in self.threads:
            thread.begin = self._busy(thread, "between steps", self.software.step) if self.software.step > 0 else None
        held = {id(thread): self._busy(thread, "begin", 0.0) for thread in self.threads if waits and thread.begin is None}
        taken: dict[int, OpRef] = {}
        if batches is not None:
            first = {id(worker.thread): _thread(worker) for worker in self._all() if worker.stage == 0}
            batches.begin([self._busy(thread, "next batch", 0.0) for thread in first.values()])
            for number, thread in first.items():
                replicas = [worker.replica for worker in self._all() if worker.thread is thread and worker.stage == 0]
                loaded = [op for replica in replicas for op in batches.ready_for(replica)]
                taken[number] = self._busy(thread, TAKE, batches.loader.handoff, loaded)
        for worker in self._all():
            thread = _thread(worker)
            begin = taken.get(id(thread), held.get(id(thread), thread.begin))
            worker.first = worker.last = None
            worker.waits = [begin] if begin is not None else []
            if self.software.number > 0 and worker.stage == 0:
                batch = () if batches is None else batches.ready_for(worker.replica)
                numbers = self.plan.batch * self.buckets.numbers / self.plan.layout.tp
                queue = self.ops.queue(f"{worker.device}:inputs", thread.host, worker.many)
                ready = self._busy(thread, "inputs", self.software.number * numbers, batch, queue)
                worker.waits.append(ready)
                inputs.append(ready)
        self._held = [*held.values(), *inputs]

    def starts(self) -> list[OpRef]:
        """Return the ops that wait for the start of the training."""
        return [*self._held, *(thread.begin for thread in self.threads if thread.begin is not None)]

    def _all(self) -> Iterator[Worker]:
        return (worker for group in self.workers.values() for worker in group)

    def _busy(
        self, thread: LaunchThread, name: str, seconds: float, after: Sequence[OpRef] = (), queue: int | None = None
    ) -> OpRef:
        """Write an op that occupies a core of the host for `seconds`; without a host, only the time counts."""
        queue = thread.queue if queue is None else queue
        return self.ops.add(name, "host", thread.host, queue, after, cost=self._busy_cost(thread.host, seconds, thread.many))

    def _dispatch(self, worker: Worker, count: int) -> None:
        """Write the launch of `count` kernels by the host."""
        seconds = self._dispatching * count
        if seconds > 0:
            worker.waits.append(self._busy(_thread(worker), "dispatch", seconds))

    # ---- passes

    def through(self, stage: int, done: MicrobatchPass, replicas: Sequence[int]) -> None:
        """Write the pass of one microbatch through a stage."""
        for replica in replicas:
            group, layers = self.workers[stage, replica], self.plan.stages[stage].layers
            if done.forward:
                for layer in layers:
                    self._layer(group, layer.forward, "forward")
                continue
            marks: Marks = []
            for layer in reversed(layers):
                self._layer(group, (*layer.recompute, *layer.backward), "backward")
                if layer.parameters:
                    marks.append((layer, latest(group)))
            self._marks[stage, replica] = marks

    def _layer(self, group: Sequence[Worker], items: Sequence[Item], direction: str) -> None:
        """Write a layer on the GPUs that share it: kernels wait for the exchanges before them, the next layer for later ones."""
        ahead = list(takewhile(lambda item: isinstance(item, Exchange), items))
        ready = [op for item in exchanges(ahead) for op in self._inside(group, item)]
        for worker in group:
            worker.waits += ready
            self._dispatch(worker, len(kernels(items)))
        behind: list[OpRef] = []
        for item in items[len(ahead) :]:
            if isinstance(item, Exchange):
                behind += self._inside(group, item)
                continue
            for worker in group:
                self._kernel(worker, item, direction)
        for worker in group:
            worker.waits += behind

    def _kernel(self, worker: Worker, kernel: Kernel, direction: str) -> None:
        """Write all kernels that the library launches for one kernel of the model."""
        queue = self.ops.queue(f"{worker.device}.compute", worker.device, kind="compute")
        for cost in self.plan.kinds.on(worker.device).apart(kernel, worker.device):
            worker.issued(self.ops.add(f"{direction} {kernel.name}", kernel.kind, worker.device, queue, worker.waits, cost=cost))

    def send(self, source: Worker, target: Worker, *, forward: bool) -> OpRef:
        """Write the send of the result of a pass to the next GPU."""
        size = self.plan.stages[min(source.stage, target.stage)].passed
        flows = self.exchanges.flows("send", [source.device, target.device], size, None, named=False)
        name = f"send {'activations' if forward else 'gradients'}"
        return self._phases(flows, (source.device, target.device), source.latest, name)[-1]

    # ---- exchanges

    def _inside(self, group: Sequence[Worker], item: Exchange) -> list[OpRef]:
        """Write an exchange of the GPUs that share a layer."""
        devices = tuple(worker.device for worker in group)
        flows = self.exchanges.flows(item.operation, devices, item.size, None, named=False)
        return self._phases(flows, devices, latest(group), item.name)

    def _phases(self, flows: Flows, devices: Names, ready: Sequence[OpRef], name: str) -> list[OpRef]:
        """Write one op per phase in sequence, and return the last one."""
        after = list(ready)
        for phase in flows.phases:
            called, cost = name if len(flows.phases) == 1 else f"{name}: {phase.name}", self.represented.restricted(phase.cost)
            after = [self._phase(called, cost, devices, after)]
        return after

    def _phase(self, name: str, cost: Cost, group: Names, ready: Sequence[OpRef]) -> OpRef:
        if group not in self._comm:
            queue = f"{group[0]}.comm" if len(group) == 1 else f"{group[0]}.comm {len(self._comm)}"
            self._comm[group] = self.ops.queue(queue, group[0], kind="comm")
        return self.ops.add(name, "exchange", group[0], self._comm[group], ready, cost=cost)

    def _summed(self, devices: Names, parameters: float, ready: Sequence[OpRef]) -> list[OpRef]:
        """Write the sum of gradients by the replicas or by servers, and return the ops that the GPUs wait for.

        Raises:
            CannotCollect, NoRoute, UnknownName: as for any collective.
        """
        if self.buckets.by == "all-reduce":
            return self._phases(all_reduce(self.exchanges, self.buckets, devices, parameters), devices, ready, "gradients")
        servers = servers_near(self.machine, self.buckets.servers, devices[0])
        phases = server_flows(self.exchanges, servers, devices, parameters * self.buckets.bytes).phases
        after = list(ready)
        for phase in phases[:1]:
            after = [self._phase("gradients: push", phase.cost, devices, after)]
        cost = partial(update_cost, self.machine, moved=parameters / len(servers) * self.buckets.updated)
        after = [self.ops.add("update", "optimizer", server, -1, after, cost=cost(server)) for server in servers]
        for phase in phases[1:]:
            after = [self._phase("parameters: pull", phase.cost, devices, after)]
        return after

    # ---- the end of a step

    def end(self) -> list[OpRef]:
        """Write the gradient buckets and the updates, and return the last ops, which the next step waits for."""
        ends: list[OpRef] = []
        for stage in range(self.plan.layout.pp):
            for part in range(self.plan.layout.tp):
                workers = [self.workers[stage, replica][part] for replica in self.replicas]
                summed = self._buckets(workers, part)
                for worker in workers:
                    ends.append(self._update(worker, summed))
                    for first in (worker.first, _thread(worker).begin):
                        if first is not None:
                            self.ops.builder.edge(ends[-1], first, lag=1)
        return ends

    def _buckets(self, workers: Sequence[Worker], part: int) -> list[OpRef]:
        """Write the sums of all buckets, and return the last ops; none for one replica without servers."""
        layout, stage = self.plan.layout, workers[0].stage
        if layout.dp == 1 and self.buckets.by == "all-reduce":
            return []
        last: list[OpRef] = []
        members = tuple(layout.device(part, 0, stage, replica) for replica in range(layout.dp))
        late = latest(workers)
        marks = [self._marks[stage, replica] for replica in self.replicas]
        for index, parameters in fill_buckets([layer for layer, _ in marks[0]], self.buckets):
            ready = [own[index][1][part] for own in marks] if self.buckets.overlap else late
            last = self._summed(members, parameters, ready)
        return last

    def _update(self, worker: Worker, summed: list[OpRef]) -> OpRef:
        """Write the update of one GPU after the sums of gradients; parameter servers update on their own."""
        stage = self.plan.stages[worker.stage]
        tensors = sum(layer.tensors for layer in stage.layers)
        worker.waits += summed
        if self.plan.layout.dp > 1 and self.software.array > 0:
            worker.waits.append(self._busy(_thread(worker), "look at gradients", self.software.array * tensors, summed))
        if self.buckets.by == "parameter-server":
            return self._join(worker)
        self._dispatch(worker, 1 + tensors)
        for kernel in kernels(stage.ending):
            self._kernel(worker, kernel, "update")
        return worker.last or self._join(worker)

    def _join(self, worker: Worker) -> OpRef:
        """Write the op at which all ops have ended that a GPU waits for."""
        after = [*worker.waits, *worker.latest]
        worker.waits = []
        return self.ops.add("parameters", "join", worker.device, -1, after)


def _thread(worker: Worker) -> LaunchThread:
    if worker.thread is None:
        raise ValueError(f"no host thread launches the kernels of {worker.device}")
    return worker.thread
