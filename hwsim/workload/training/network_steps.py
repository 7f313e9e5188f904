"""Steps of a network's training as ops: the hosts' threads, the GPUs' kernels, and what the GPUs exchange.

    a step = step of the software; forward and backward of every micro-batch, a layer after another, each issued by the
             host before; gradients in buckets as the last backward pass completes them; the update

What a framework costs is that of `hwsim.models.framework`: `dispatch` for every layer op and for every array that is
updated, `step` before each step, `array` for every array of gradients that was exchanged, `number` for the inputs.

**Error**: see `docs/validation/models.md`.
**Range**: the inputs are there; kernels of one GPU run one after another.
"""

from __future__ import annotations

from collections.abc import Sequence

from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.machine import Machine
from hwsim.models.architectures.unit_layers import UPDATED, optimizer
from hwsim.models.architectures.units import size
from hwsim.workload.programs import MAIN, Program
from hwsim.workload.training.network_exchange import Exchanges
from hwsim.workload.training.network_issue import Issuing, Marks, Thread, Worker
from hwsim.workload.training.network_items import Stage
from hwsim.workload.training.network_kernels import Costs
from hwsim.workload.training.network_plan import NetworkPlan
from hwsim.workload.training.schedule import turns


class Steps:
    """Adds the ops of a plan to a graph."""

    def __init__(
        self,
        plan: NetworkPlan,
        machine: Machine,
        programs: Sequence[Program],
        costs: Sequence[Costs],
        stages: Sequence[Sequence[Stage]],
        builder: GraphBuilder,
        *,
        name: str,
        copies: int,
    ) -> None:
        """programs, costs: of each GPU.  stages: of each copy.  copies: the first of them, which stand for all."""
        self.plan = plan
        self.name = name
        self.copies = copies
        self.devices = [program.own for program in programs]
        self.programs = tuple(programs)
        self.builder = builder
        self.stages = stages
        shared: dict[str, Thread] = {}
        self.workers: list[Worker] = []
        before = "" if name == MAIN else f"{name}:"
        for at, (program, own) in enumerate(zip(programs[: plan.at(copies, 0, 0)], costs, strict=False)):
            host = program.scope.host
            key = host if plan.one_thread else program.own
            if key not in shared:
                shown = f"{before}{host}.host" if plan.one_thread else f"{before}{program.own}:{host}.host"
                shared[key] = Thread(builder.queue(shown, host), host)
            queue = builder.queue(f"{before}{program.own}.compute", program.own)
            stage, copy = at // plan.tp % plan.pp, at // (plan.tp * plan.pp)
            self.workers.append(Worker(program.own, own, queue, shared[key], copy, stage))
        self.threads = list(shared.values())
        self.issuing = Issuing(plan, machine, builder, name, Exchanges(plan, machine, builder, name))

    def add(self, after: OpRef | None = None) -> list[OpRef]:
        """All steps; the last ops of the last of them."""
        with self.builder.repeat(self.plan.steps):
            begins = self._begin(waits=after is not None)
            marks = self._copies()
            ends = self._asynchronous(marks) if self.plan.asynchronous else self._together(marks)
            self._repeat(ends)
            self.builder.op("step", kind="step", program=self.name, after=ends)
        if after is not None:
            for each in begins:
                self.builder.tie(after, each)
        return ends

    def evaluate(self, after: Sequence[OpRef]) -> None:
        """Forward passes alone, as many as the plan has steps."""
        with self.builder.repeat(self.plan.steps):
            self._begin()
            for copy in range(self.copies):
                self.issuing.through(self._group(copy, 0), self.stages[copy][0].forward, "evaluate")
        for worker in self.workers:
            first = worker.first
            if first is not None:
                for each in after:
                    self.builder.tie(each, first)

    # ---- the parts of a step

    def _begin(self, *, waits: bool = False) -> list[OpRef]:
        """What the software does before each step, and the inputs that it makes ready.

        waits: the first step waits for something, so that every thread needs an op that can.
        """
        found: list[OpRef] = []
        software = self.plan.software
        for thread in self.threads:
            thread.begin = None
            if software.step > 0:
                thread.begin = self.issuing.host(thread, "between steps", software.step)
        held = {id(thread): self.issuing.host(thread, "begin", 0.0) for thread in self.threads if waits and thread.begin is None}
        found += held.values()
        for worker in self.workers:
            worker.first = worker.last = None
            begin = held.get(id(worker.thread), worker.thread.begin)
            worker.waits = [begin] if begin is not None else []
            if software.number > 0 and worker.stage == 0:
                numbers = self.plan.batches[worker.copy] * size(self.plan.network.input) / self.plan.tp
                queue = self.builder.queue(f"{worker.device}:inputs", worker.thread.host)
                ready = self.issuing.busy(worker.thread, "inputs", software.number * numbers, queue)
                worker.waits.append(ready)
                found.append(ready)
        return [*found, *(thread.begin for thread in self.threads if thread.begin is not None)]

    def _copies(self) -> list[Marks]:
        """Forward and backward of every copy; what completes gradients, by copy and stage."""
        plan = self.plan
        if plan.pp > 1:
            return [marks for copy in range(self.copies) for marks in self._pipeline(copy)]
        marks: list[Marks] = []
        groups = [(self._group(copy, 0), self.stages[copy][0]) for copy in range(self.copies)]
        for _ in range(plan.microbatches):
            for group, stage in groups:
                self.issuing.through(group, stage.forward, "forward")
            marks = [self.issuing.through(group, stage.backward, "backward")[1] for group, stage in groups]
        return marks

    def _pipeline(self, copy: int) -> list[Marks]:
        """A copy cut into stages: each hands its results to the next one, and gradients back."""
        plan, stages = self.plan, self.stages[copy]
        onward: dict[tuple[int, int], OpRef] = {}
        back: dict[tuple[int, int], OpRef] = {}
        waiting: dict[tuple[int, int], OpRef] = {}
        marks: list[Marks] = []
        for stage, own in enumerate(stages):
            (worker,) = group = self._group(copy, stage)
            found: Marks = []
            for number, _, forward in turns(plan.schedule, stage, plan.pp, plan.microbatches):
                if forward:
                    if stage:
                        worker.waits.append(onward[stage - 1, number])
                    self.issuing.through(group, own.forward, "forward")
                    if stage + 1 < plan.pp:
                        onward[stage, number] = self.issuing.send(worker, self._group(copy, stage + 1)[0], own.out, "activations")
                else:
                    firsts, found = self.issuing.through(group, own.backward, "backward")
                    waiting[stage, number] = firsts[0]
                    if stage:
                        back[stage, number] = self.issuing.send(
                            worker, self._group(copy, stage - 1)[0], stages[stage - 1].out, "gradients"
                        )
            marks.append(found)
        for (stage, number), first in waiting.items():
            if stage + 1 < plan.pp:
                self.builder.edge(back[stage + 1, number], first)
        return marks

    def _together(self, marks: Sequence[Marks]) -> list[OpRef]:
        """Gradients in buckets among the copies, and the updates."""
        plan = self.plan
        ends: list[OpRef] = []
        for stage in range(plan.pp):
            of_stage = [marks[copy * plan.pp + stage] if plan.pp > 1 else marks[copy] for copy in range(self.copies)]
            groups = [self._group(copy, stage) for copy in range(self.copies)]
            for part in range(plan.tp):
                workers = [group[part] for group in groups]
                summed = self._buckets(workers, of_stage, part)
                ends += [self._update(worker, summed) for worker in workers]
        return ends

    def _buckets(self, workers: Sequence[Worker], marks: Sequence[Marks], part: int) -> list[OpRef]:
        """One sum after another; the last of them, none where there is one copy and no server."""
        plan = self.plan
        if plan.dp == 1 and plan.by == "all-reduce":
            return []
        last: list[OpRef] = []
        members = [self.devices[plan.at(copy, workers[0].stage, part)] for copy in range(plan.dp)]
        late = [worker.last for worker in workers if worker.last is not None]
        filled = 0
        for at, (item, _) in enumerate(marks[0]):
            filled += item.parameters
            if filled and (filled * plan.software.gradient >= plan.bucket or at == len(marks[0]) - 1):
                hidden = plan.overlap and plan.software.hidden > 0
                ready = [own[at][1][part] for own in marks] if hidden else late
                last = self.issuing.exchanges.summed(members, filled, ready)
                filled = 0
        return last

    def _update(self, worker: Worker, summed: list[OpRef]) -> OpRef:
        """What a GPU does once it has the sums; servers update the parameters themselves."""
        plan, stage = self.plan, self.stages[worker.copy][worker.stage]
        worker.waits += summed
        if plan.dp > 1 and plan.software.array > 0:
            looked = self.issuing.host(worker.thread, "look at gradients", plan.software.array * stage.tensors, summed)
            worker.waits.append(looked)
        if plan.by == "parameter-server":
            return self.issuing.join(worker)
        op = optimizer(stage.layers, UPDATED[plan.optimizer])
        self.issuing.dispatch(worker, 1 + stage.tensors)
        return self.issuing.kernel(worker, op, "update")

    def _asynchronous(self, marks: Sequence[Marks]) -> list[OpRef]:
        """Every copy pushes its gradients and pulls new parameters on its own."""
        plan = self.plan
        for worker, own in zip(self.workers, marks, strict=True):
            filled = 0
            for at, (item, refs) in enumerate(own):
                filled += item.parameters
                if filled and (filled * plan.software.gradient >= plan.bucket or at == len(own) - 1):
                    ready = refs if plan.overlap else [worker.last or refs[0]]
                    worker.waits += self.issuing.exchanges.pushed(worker.device, filled, ready)
                    filled = 0
        return [self.issuing.join(worker) for worker in self.workers]

    def _repeat(self, ends: Sequence[OpRef]) -> None:
        """What a step waits for of the step before."""
        owners = self.workers if self.plan.asynchronous else None
        for at, end in enumerate(ends):
            worker = owners[at] if owners else self._owner(at)
            if worker.first is not None:
                self.builder.edge(end, worker.first, lag=1)
            if worker.thread.begin is not None:
                self.builder.edge(end, worker.thread.begin, lag=1)

    def _owner(self, at: int) -> Worker:
        """Whose end `_together` gave at that place: stage by stage, part by part, copy by copy."""
        plan = self.plan
        stage, rest = divmod(at, plan.tp * self.copies)
        part, copy = divmod(rest, self.copies)
        return self.workers[plan.at(copy, stage, part)]

    def _group(self, copy: int, stage: int) -> list[Worker]:
        """The GPUs that share a stage of a copy."""
        first = self.plan.at(copy, stage, 0)
        return self.workers[first : first + self.plan.tp]
