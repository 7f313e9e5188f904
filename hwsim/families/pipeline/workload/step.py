"""A training step as a stage of a pipeline: the ops of `train:` in the body of a batch.

A step begins when the batches of all programs are ready, and ends with its last op; the next step begins after it.
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
    """Return the ops of one step, or None if mistakes were noted.

    Args:
        tree: keys of the training.
        machine: machine.
        mistakes: list for mistakes.
        name: name of its program.
        batch: samples per step from the pipeline; 0: unknown.
    """
    from hwsim.families.training.workload import TrainingRequest, add_training

    if tree.get("steps") is not None:
        mistakes.add(tree.key_place("steps"), "`steps` has no effect in a stage: it trains one step per batch", "omit `steps`")
        return None
    for key in ("checkpoint", "failures", "loader"):
        if tree.get(key) is not None:
            hint = "write `checkpoint` next to `stages`" if key == "checkpoint" else "use a `train:` without a pipeline"
            mistakes.add(tree.key_place(key), f"a stage has no `{key}`", hint)
            return None
    stated = tree.get("global_batch")
    if batch and stated is not None and stated.value != batch:
        hint = "omit `global_batch`: it is `batch` times the number of programs of `each`"
        mistakes.add(stated.place, f"expected the {batch} samples per step of the pipeline, got {stated.what()}", hint)
        return None
    if batch and stated is None and tree.is_mapping:
        tree = tree.put("global_batch", tree_of(batch, tree.place))
    builder = GraphBuilder(capacities_of(machine.capacities))
    before = len(mistakes)
    tree = tree.put("steps", tree_of(1, tree.place)) if tree.is_mapping else tree
    add_training(TrainingRequest(tree, machine, builder, mistakes, name))
    return builder.build() if len(mistakes) == before else None


def step_time_estimate(graph: OpGraph, rates: Mapping[str, float]) -> float:
    """Return an estimate of the step time: the time of its busiest queue without contention (s)."""
    alone = np.array([*(cost.demand.alone(rates) for cost in graph.costs), 0.0])
    busy = np.zeros(len(graph.queues) + 1)
    for block in graph.blocks:
        np.add.at(busy, block.queue, block.times * (block.time.astype(np.float64) / FEMTO + block.size * alone[block.cost]))
    return float(busy[:-1].max(initial=0.0))


def first_gpu(graph: OpGraph, machine: Machine) -> str:
    """Return the first GPU of a graph, in the order of the machine, or else its first device by name."""
    used = {label.device for label in graph.labels if label.device}
    gpus = [name for name in machine.devices_of("gpu") if name in used]
    return (gpus or sorted(used) or [""])[0]


@dataclass(slots=True)
class EmbeddedGraph:
    """A graph whose ops are written repeatedly into the bodies of another graph."""

    graph: OpGraph
    builder: GraphBuilder
    _labels: list[int] = field(default_factory=list)
    _costs: list[int] = field(default_factory=list)
    _queues: list[int] = field(default_factory=list)
    _pools: list[int] = field(default_factory=list)
    _held: bool = False
    times: int = 1  # repetitions of the current body

    def __post_init__(self) -> None:
        builder, graph = self.builder, self.graph
        self._labels = [builder.label(label.name, label.kind, label.device, label.program) for label in graph.labels]
        self._costs = [*(builder.cost(cost) for cost in graph.costs), -1]
        self._queues = [*(builder.queue(queue.name, queue.device, queue.depth, queue.kind) for queue in graph.queues), -1]
        self._pools = [*(builder.pool(pool.name, pool.servers) for pool in graph.pools), -1]

    def write(self, entry: OpRef) -> list[OpRef]:
        """Write its ops once, after `entry`, and return those without successors."""
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

    def train(self, steps: int, workers: int) -> None:
        """Describe the trainings for the results, with `steps` steps after stages of at most `workers` workers."""
        for training in self.graph.trainings:
            inside = tuple((self._costs[cost], part) for cost, part in training.inside)
            self.builder.training(replace(training, steps=steps, workers=workers, inside=inside, whole=0.0))

    def _hold(self, refs: list[list[list[OpRef]]]) -> None:
        """Add its buffers: permanent ones once, temporary ones in each step."""

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
                yield from ((source[before], targets[0][then]) for source in sources)
            else:
                yield from ((source[before], target[then]) for source, target in zip(sources, targets, strict=True))
