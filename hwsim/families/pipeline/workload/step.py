"""One step of a training as a stage: the ops that `train:` makes for it, in the body of a batch.

A step begins when the batches of all programs are there and ends with its last op: the next step begins after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from hwsim.graph.builder import GraphBuilder, OpRef, capacities_of
from hwsim.graph.opgraph import EVERY, LAST, Mark, OpGraph
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Tree, tree_of
from hwsim.ticks import FEMTO


def step_graph(tree: Tree, machine: Machine, mistakes: Mistakes, *, name: str, batch: int) -> OpGraph | None:
    """The ops of one step; None once the mistakes are noted.

    name: its program's name.
    batch: samples that the pipeline brings for a step, 0 if not given.
    """
    from hwsim.families.training.workload import Asked, add_training

    if tree.get("steps") is not None:
        mistakes.add(tree.key_place("steps"), "a stage trains for one step a batch", "leave `steps` out")
        return None
    for key in ("checkpoint", "failures"):
        if tree.get(key) is not None:
            hint = (
                "`checkpoint` stands next to `stages`" if key == "checkpoint" else "`failures` is of a `train` that is no stage"
            )
            mistakes.add(tree.key_place(key), f"a stage has no `{key}`", hint)
            return None
    stated = tree.get("global_batch")
    if batch and stated is not None and stated.value != batch:
        hint = "leave `global_batch` out: it is `batch` times the programs of `each`"
        mistakes.add(stated.place, f"the pipeline brings {batch} samples a step, not {stated.what()}", hint)
        return None
    if batch and stated is None and tree.is_mapping:
        tree = tree.put("global_batch", tree_of(batch, tree.place))
    builder = GraphBuilder(capacities_of(machine.capacities))
    before = len(mistakes)
    tree = tree.put("steps", tree_of(1, tree.place)) if tree.is_mapping else tree
    add_training(Asked(tree, machine, builder, mistakes, name))
    return builder.build() if len(mistakes) == before else None


def pace(graph: OpGraph, rates: Mapping[str, float]) -> float:
    """Seconds of a step, about: what its busiest queue takes alone."""
    alone = np.array([*(cost.demand.alone(rates) for cost in graph.costs), 0.0])
    busy = np.zeros(len(graph.queues) + 1)
    for block in graph.blocks:
        np.add.at(busy, block.queue, block.times * (block.time.astype(np.float64) / FEMTO + block.size * alone[block.cost]))
    return float(busy[:-1].max(initial=0.0))


def first_gpu(graph: OpGraph, machine: Machine) -> str:
    """The first GPU, in the order of the machine, that it runs on; else any device of it."""
    used = {label.device for label in graph.labels if label.device}
    gpus = [each for each in machine.devices_of("gpu") if each in used]
    return (gpus or sorted(used) or [""])[0]


@dataclass(slots=True)
class Embedding:
    """A graph whose ops are written into the bodies of another one, again and again."""

    graph: OpGraph
    builder: GraphBuilder
    _labels: list[int] = field(default_factory=list)
    _costs: list[int] = field(default_factory=list)
    _queues: list[int] = field(default_factory=list)
    _pools: list[int] = field(default_factory=list)
    _held: bool = False
    times: int = 1  # of the body that is being written

    def __post_init__(self) -> None:
        builder, graph = self.builder, self.graph
        self._labels = [builder.label(label.name, label.kind, label.device, label.program) for label in graph.labels]
        self._costs = [*(builder.cost(cost) for cost in graph.costs), -1]
        self._queues = [*(builder.queue(queue.name, queue.device, queue.depth, queue.kind) for queue in graph.queues), -1]
        self._pools = [*(builder.pool(pool.name, pool.servers) for pool in graph.pools), -1]

    def write(self, entry: OpRef) -> list[OpRef]:
        """Its ops once, all after `entry`; those that nothing else of it waits for."""
        refs: list[list[list[OpRef]]] = []  # block, iteration, position
        led: set[OpRef] = set()
        followed: set[OpRef] = set()
        for block in self.graph.blocks:
            columns = [column.tolist() for column in (block.label, block.cost, block.time, block.queue, block.insert)]
            rows = list(zip(*columns, block.size.tolist(), block.take.tolist(), block.give.tolist(), strict=True))
            iterations: list[list[OpRef]] = []
            for _ in range(block.times):
                here: list[OpRef] = []
                for label, cost, time, queue, insert, size, take, give in rows:
                    here.append(
                        self.builder.indexed(
                            self._labels[label],
                            self._costs[cost],
                            size=size,
                            time=time,
                            queue=self._queues[queue],
                            insert=here[insert] if insert >= 0 else None,
                            take=self._pools[take],
                            give=self._pools[give],
                        )
                    )
                iterations.append(here)
            refs.append(iterations)
        self._hold(refs)
        for before, then in self._edges(refs):
            self.builder.edge(before, then)
            followed.add(before)
            led.add(then)
        every = [op for iterations in refs for here in iterations for op in here]
        for op in every:
            if op not in led:
                self.builder.edge(entry, op)
        return [op for op in every if op not in followed]

    def train(self, steps: int) -> None:
        """Describe the trainings for the results, with `steps` steps."""
        for training in self.graph.trainings:
            inside = tuple((self._costs[cost], part) for cost, part in training.inside)
            self.builder.training(replace(training, steps=steps, inside=inside, whole=0.0))

    def _hold(self, refs: list[list[list[OpRef]]]) -> None:
        """Its buffers: what stays is taken once, what a step gives back in each."""

        def moved(mark: Mark) -> Mark:
            return Mark(*refs[mark.block][-1][mark.op])

        for buffer in self.graph.buffers:
            passing = buffer.free == "last-use" and len(buffer.users) > 1
            if self._held and not passing:
                continue
            made = moved(buffer.made)
            times = self.times if passing else 1
            users = tuple(moved(user) for user in buffer.users)
            self.builder.buffer(replace(buffer, made=made, users=users, renamed=None, block=made.block, first=0, times=times))
        self._held = True

    def _edges(self, refs: list[list[list[OpRef]]]) -> Iterator[tuple[OpRef, OpRef]]:
        for block, iterations in zip(self.graph.blocks, refs, strict=True):
            for before, then, lag in block.edges.tolist():
                for index in range(lag, block.times):
                    yield iterations[index - lag][before], iterations[index][then]
        for block_from, before, block_to, then, mode in self.graph.ties.tolist():
            sources, targets = refs[block_from], refs[block_to]
            if not (sources and targets):
                continue
            if mode == LAST:
                yield sources[-1][before], targets[0][then]
            elif mode == EVERY:
                yield from ((each[before], targets[0][then]) for each in sources)
            else:
                yield from ((source[before], target[then]) for source, target in zip(sources, targets, strict=True))
