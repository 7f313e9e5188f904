"""Ops of an iteration: its kernels on the GPUs of a replica, and its all-reduces on the links between them.

An iteration's kernels run one after another. Some are bound by the units, some by memory, some by their starts. Their sum is
a floor, the time they take alone; meanwhile they draw from each GPU its units and its memory. A cost is one second of such an
iteration, and an op is a number of seconds. Parts are rounded to five bits, so that there are few costs.

The two all-reduces of each layer are one op, as long as all of them, on the links that the machine's library uses. Its cost is
worked out for 16 numbers of tokens an octave; between them its bytes are in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import Final

from hwsim import ticks
from hwsim.actors.serving.batching import Batch
from hwsim.collectives import timing
from hwsim.demand import Cost, Demand, Doubt, Term, Unit
from hwsim.devices.gpu_doubts import case
from hwsim.engine import Host, IssuedOp
from hwsim.formats import precise
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.architectures.unit_layers import layers_of
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import batch_pass
from hwsim.models.iteration import Iterations
from hwsim.models.kernel_tables import Taken
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels
from hwsim.records import dataclass
from hwsim.results.cause import family
from hwsim.units import BYTES
from hwsim.workload.serving.plan import ServicePlan

BITS: Final = 5
NAMED: Final = {"compute": "units", "memory": "memory"}
KERNELS: Final = "of the time of the iteration's kernels"
BOUND: Final = {"compute": "kernels (units)", "memory": "kernels (memory)", "start": "kernels (starts)"}


def kernels_of(plan: ServicePlan) -> Callable[[Batch], Taken]:
    """Time of the kernels of an iteration on each GPU."""
    model = plan.model
    if isinstance(model, Transformer) and isinstance(plan.software, Framework):
        iterations = Iterations(model, KernelTimes(plan.gpu, plan.software), plan.keys.parallel.tp, plan.dtype)
        return lambda batch: iterations.of(batch.parts, batch.going_on, batch.context, batch.ended if model.causal else 0)
    if isinstance(model, Transformer) or not isinstance(plan.software, Software):
        raise TypeError("a transformer has a framework, a network of convolutions its software")
    by_count: dict[int, Taken] = {}
    times, software = KernelTimes(plan.gpu, plan.software.kernels), plan.software

    def of_images(batch: Batch) -> Taken:
        count = len(batch.prompts)
        if count not in by_count:
            step = batch_pass(model, count, plan.dtype, times, software)
            layers = layers_of(model, count, plan.dtype, training=False)
            works = [kernel.work for layer in layers for kernel in kernels(layer.forward)]
            busy = step.seconds - step.shares["host"]
            flop, moved = math.fsum(work.flop for work in works), math.fsum(work.traffic for work in works)
            by_count[count] = Taken(step.seconds, busy, min(busy, moved / plan.gpu.memory.bandwidth), flop, moved)
        return by_count[count]

    return of_images


@dataclass(slots=True)
class Costs:
    """The ops of the iterations of one replica."""

    plan: ServicePlan
    machine: Machine
    driver: Host
    gpus: tuple[str, ...]
    taken: Callable[[Batch], Taken]
    slower: float = 1.0
    queue: int = -1
    _labels: dict[str, int] = field(default_factory=dict)
    _costs: dict[tuple[float, ...], int] = field(default_factory=dict)
    _reduced: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first, name = self.gpus[0], self.plan.name
        self.queue = self.driver.queue(Queue(f"{name}:{first}.serving" if name else f"{first}.serving", first))

    def ops(self, batch: Batch) -> list[IssuedOp]:
        """The chain of one iteration."""
        taken = self.taken(batch)
        name = (
            "batch"
            if not self.plan.answers
            else "prompts"
            if not batch.answers
            else "tokens"
            if not batch.prompts
            else "prompts and tokens"
        )
        chain = [IssuedOp(self._label(name), self.queue, self._kernels(taken), self.slower * taken.seconds)]
        model = self.plan.model
        if len(self.gpus) > 1 and isinstance(model, Transformer):
            rows = batch.going_on + sum(tokens for tokens, _ in batch.parts)
            priced, times = grid(rows), 2 * model.layers
            for cost, latency in self._all_reduce(priced, model.hidden * BYTES[self.plan.dtype]):
                chain.append(
                    IssuedOp(
                        self._label("all-reduce"), self.queue, cost, self.slower * times * rows / priced, (times - 1) * latency
                    )
                )
        return chain

    def _label(self, name: str) -> int:
        if name not in self._labels:
            kind = "allreduce" if name == "all-reduce" else "infer"
            self._labels[name] = self.driver.label(Label(name, kind, self.gpus[0], self.plan.name or "main"))
        return self._labels[name]

    def _kernels(self, taken: Taken) -> int:
        """The cost of a second of such kernels."""
        seconds = taken.seconds
        key = tuple(rounded(part / seconds) for part in (taken.compute, taken.memory, taken.flop, taken.moved))
        if key not in self._costs:
            self._costs[key] = self.driver.cost(self._unsure(a_second(self.gpus, self.plan.gpu.memory.bandwidth, *key)))
        return self._costs[key]

    def _all_reduce(self, rows: int, width: float) -> tuple[tuple[int, int], ...]:
        """(cost, fs of its latency) of each phase of one all-reduce of `rows` tokens."""
        if rows not in self._reduced:
            software = self.plan.software
            framework = software.all_reduce if isinstance(software, Framework) else ""
            flows = timing.timed(self.machine, timing.own_kernel(framework), "all-reduce", self.gpus, rows * width)
            self._reduced[rows] = tuple(
                (self.driver.cost(replace(each.cost, choice=None)), ticks.femtoseconds(each.cost.demand.latency))
                for each in flows.phases
            )
        return self._reduced[rows]

    def _unsure(self, cost: Cost) -> Cost:
        """The cost with the errors of passes: of prompts if the units bind, else of tokens."""
        phase = "prefill" if cost.why[0].label == BOUND["compute"] else "decode"
        phase = phase if isinstance(self.plan.model, Transformer) else "cnn"
        number = "matmul" if phase == "prefill" else "sustained.read"
        sure = case(self.plan.gpu, number, self.plan.dtype)
        doubt = Doubt(f"infer/{phase}", sure, family(self.gpus[0]), 1.0)
        return replace(cost, why=(replace(cost.why[0], doubts=(doubt,)), *cost.why[1:]))


def a_second(gpus: tuple[str, ...], bandwidth: float, compute: float, memory: float, flop: float, moved: float) -> Cost:
    """A second of kernels.

    Args:
        compute, memory: parts of the units and of the memory of each GPU; flop, moved: operations and bytes.
    """
    parts = {"compute": min(compute, 1.0), "memory": min(memory, 1.0)}
    amounts = [(f"{gpu}.{kind}", part) for gpu in gpus for kind, part in parts.items() if part > 0]
    bound = next((BOUND[kind] for kind, part in parts.items() if part >= max(0.5, *parts.values())), BOUND["start"])
    natural: tuple[tuple[str, float, Unit], ...] = (("compute", flop, "FLOP"), ("memory", moved, "B"))
    return Cost(
        Demand(amounts=tuple(sorted(amounts)), floor=1.0, share=bandwidth),
        moved=tuple((f"{gpu}.{kind}", amount, unit) for gpu in gpus for kind, amount, unit in natural if amount > 0),
        why=(
            Term(
                label=bound,
                formula="kernels one after another; units, memory",
                inputs=tuple((NAMED[kind], precise(part, "%"), KERNELS) for kind, part in parts.items()),
                seconds=1.0,
                kind="kernels",
            ),
        ),
    )


def grid(rows: int) -> int:
    """The number of tokens whose all-reduce represents one of `rows` tokens: at most a sixteenth more.

    >>> grid(3), grid(16), grid(33), grid(1000)
    (3, 16, 34, 1024)
    """
    step = 1 << max(0, (rows - 1).bit_length() - 5)
    return -(-rows // step) * step


def rounded(value: float) -> float:
    """To five bits.

    >>> rounded(1.0), rounded(0.7), rounded(0.0)
    (1.0, 0.6875, 0.0)
    """
    if value <= 0:
        return 0.0
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * (1 << BITS)), exponent - BITS)
