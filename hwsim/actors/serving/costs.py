"""What an iteration asks of a machine: its kernels of the GPUs of a copy, its all-reduces of the links between them.

An iteration's kernels run one after another, some bound by the units, some by memory, some by their starts: together they
take their time even alone (a floor), and draw from each GPU what they need of its units and of its memory.  As costs they are
a second of such an iteration, and an op is so many of them; parts are rounded to five bits, so that there are few costs.

The two all-reduces of each layer are one op on the links that the machine's library uses, as many times one of them; it is
looked up for 16 numbers of tokens an octave, and its bytes are in proportion between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import Final

from hwsim import ticks
from hwsim.actors.serving.batching import Batch
from hwsim.collectives import timing
from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.engine import Host, IssuedOp
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.architectures.unit_layers import layers_of
from hwsim.models.framework import Framework, Software
from hwsim.models.inference import batch_pass
from hwsim.models.iteration import Iterations, Taken
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import kernels
from hwsim.records import dataclass
from hwsim.units import BYTES, precise
from hwsim.workload.serving.plan import ServicePlan

BITS: Final = 5
NAMED: Final = {"compute": "units", "memory": "memory"}
KERNELS: Final = "of the time of the iteration's kernels"
BOUND: Final = {"compute": "kernels (units)", "memory": "kernels (memory)", "start": "kernels (starts)"}


def kernels_of(plan: ServicePlan) -> Callable[[Batch], Taken]:
    """What the kernels of an iteration take of each GPU."""
    model = plan.model
    if isinstance(model, Transformer) and isinstance(plan.software, Framework):
        iterations = Iterations(model, KernelTimes(plan.gpu, plan.software), plan.keys.parallel.tp, plan.dtype)
        return lambda batch: iterations.of(batch.parts, batch.going_on, batch.context, batch.ended if model.causal else 0)
    if isinstance(model, Transformer) or not isinstance(plan.software, Software):
        raise TypeError("a transformer has a framework, a network of convolutions its software")
    known: dict[int, Taken] = {}
    times, software = KernelTimes(plan.gpu, plan.software.kernels), plan.software

    def of_images(batch: Batch) -> Taken:
        count = len(batch.prompts)
        if count not in known:
            step = batch_pass(model, count, plan.dtype, times, software)
            layers = layers_of(model, count, plan.dtype, training=False)
            works = [kernel.work for layer in layers for kernel in kernels(layer.forward)]
            busy = step.seconds - step.shares["host"]
            flop, moved = math.fsum(work.flop for work in works), math.fsum(work.traffic for work in works)
            known[count] = Taken(step.seconds, busy, min(busy, moved / plan.gpu.memory.bandwidth), flop, moved)
        return known[count]

    return of_images


@dataclass(slots=True)
class Costs:
    """The ops of one copy's iterations, made known to a driver."""

    plan: ServicePlan
    machine: Machine
    driver: Host
    gpus: tuple[str, ...]
    taken: Callable[[Batch], Taken]
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
        found = [IssuedOp(self._label(name), self.queue, self._kernels(taken), taken.seconds)]
        model = self.plan.model
        if len(self.gpus) > 1 and isinstance(model, Transformer):
            rows = batch.going_on + sum(tokens for tokens, _ in batch.parts)
            known, times = grid(rows), 2 * model.layers
            for cost, latency in self._all_reduce(known, model.hidden * BYTES[self.plan.dtype]):
                found.append(IssuedOp(self._label("all-reduce"), self.queue, cost, times * rows / known, (times - 1) * latency))
        return found

    def _label(self, name: str) -> int:
        if name not in self._labels:
            kind = "allreduce" if name == "all-reduce" else "infer"
            self._labels[name] = self.driver.label(Label(name, kind, self.gpus[0], self.plan.name or "main"))
        return self._labels[name]

    def _kernels(self, taken: Taken) -> int:
        """A second of kernels like these."""
        whole = taken.seconds
        key = tuple(rounded(part / whole) for part in (taken.compute, taken.memory, taken.flop, taken.moved))
        if key not in self._costs:
            self._costs[key] = self.driver.cost(a_second(self.gpus, self.plan.gpu.memory.bandwidth, *key))
        return self._costs[key]

    def _all_reduce(self, rows: int, width: float) -> tuple[tuple[int, int], ...]:
        """(cost, fs of its latency) of each phase of one, of so many tokens."""
        if rows not in self._reduced:
            flows = timing.timed(self.machine, None, "all-reduce", self.gpus, rows * width)
            self._reduced[rows] = tuple(
                (self.driver.cost(replace(each.cost, choice=None)), ticks.femtoseconds(each.cost.demand.latency))
                for each in flows.phases
            )
        return self._reduced[rows]


def a_second(gpus: tuple[str, ...], bandwidth: float, compute: float, memory: float, flop: float, moved: float) -> Cost:
    """A second of kernels that take these parts of the units and of the memory of each GPU, and do and move so much."""
    parts = {"compute": min(compute, 1.0), "memory": min(memory, 1.0)}
    amounts = [(f"{gpu}.{what}", part) for gpu in gpus for what, part in parts.items() if part > 0]
    bound = next((BOUND[what] for what, part in parts.items() if part >= max(0.5, *parts.values())), BOUND["start"])
    natural: tuple[tuple[str, float, Unit], ...] = (("compute", flop, "FLOP"), ("memory", moved, "B"))
    return Cost(
        Demand(amounts=tuple(sorted(amounts)), floor=1.0, share=bandwidth),
        moved=tuple((f"{gpu}.{what}", amount, unit) for gpu in gpus for what, amount, unit in natural if amount > 0),
        why=(
            Term(
                label=bound,
                formula="kernels one after another; units, memory",
                inputs=tuple((NAMED[what], precise(part, "%"), KERNELS) for what, part in parts.items()),
                seconds=1.0,
                kind="kernels",
            ),
        ),
    )


def grid(rows: int) -> int:
    """The number of tokens whose all-reduce stands for that of so many: at most a sixteenth more.

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
