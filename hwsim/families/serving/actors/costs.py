"""The ops of an iteration: kernels on the GPUs of a replica, and collectives on the links between them.

The kernels of an iteration run one after another, each bound by compute, memory bandwidth or launch latency. Their total is the
minimum time of the op (its floor), during which it draws compute and memory bandwidth from each GPU. One cost stands for one
second of such kernels, and the size of an op is its number of seconds. Shares are rounded to five bits, so that few costs exist.

All equal collectives of the layers are one op with their total time, on the links that the machine's library uses. Its cost is
computed for 16 token counts per octave; in between, bytes are scaled in proportion to tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest
from operator import attrgetter
from typing import Final, TypeAlias

from hwsim import ticks
from hwsim.communication import timing
from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices.gpu_cases import case
from hwsim.engine import Host, IssuedOp
from hwsim.engine.issued import IssuedOps
from hwsim.families.serving.actors.iteration_times import Pace
from hwsim.families.serving.actors.run import IterationRun
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.formats import family, precise
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.framework import Framework
from hwsim.models.iteration import IterationExchange, sends
from hwsim.models.kernel_tables import KernelSeconds, knot
from hwsim.origins import CASES, Case, UncertaintySource
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.units import BYTES

BITS: Final = 5  # mantissa bits of shares and token counts
LONGEST: Final = 10**15  # fs: longest op whose time in seconds is exact to the femtosecond
MOST_PIECES: Final = 1000  # ops of a run; a run above 17 minutes has longer ops, and its rounding error becomes an own time
NAMED: Final = {"compute": "compute", "memory": "memory bandwidth"}
KERNELS: Final = "of the time of the iteration's kernels"
BOUND: Final = {"compute": "kernels (units)", "memory": "kernels (memory)", "small": "kernels (small)"}


Registry: TypeAlias = "Host | IssuedOps"  # registry of labels, queues and costs
Phase: TypeAlias = tuple[Cost, int, float]  # (cost, latency in fs, body in seconds)
Piece: TypeAlias = tuple[int, int, int, float, int, int]  # fields of an `IssuedOp`
Exchanged: TypeAlias = tuple[IssuedOp, float, int]  # (op of all equal phases, body of its cost in s, transfer time of all in fs)


class CollectivePhases(dict[tuple[str, str, tuple[str, ...], float], tuple[Phase, ...]]):
    """A cache of the phases of a machine's collectives, by (framework, operation, devices, bytes)."""


@dataclass(slots=True)
class ReplicaCollectives:
    """The cost of a replica's collectives on the links between its GPUs."""

    plan: ServicePlan
    machine: Machine
    gpus: tuple[str, ...]
    slower: float = 1.0
    _phases: dict[int, tuple[tuple[int, Phase], ...]] = field(default_factory=dict)
    _sizes: dict[int, list[tuple[IssuedOp, Phase]]] = field(default_factory=dict)
    _known: CollectivePhases = field(init=False)

    def __post_init__(self) -> None:
        self._known = self.machine.kept(CollectivePhases)

    def seconds(self, rows: int) -> int:
        """Return the time of all collectives of an iteration of `rows` tokens (fs)."""
        return sum(op.time + ticks.femtoseconds(body * op.size) for op, (_, _, body) in self.of(rows))  # integers

    @property
    def case(self) -> Case:
        """Case of the most uncertain collective so far, which sets the width of its interval."""
        costs = [phase[0] for phases in self._phases.values() for _, phase in phases]
        cases = [doubt.case for cost in costs for term in cost.why for doubt in term.doubts if doubt.case in CASES]
        return max(cases, key=CASES.index, default="known")

    def of(self, rows: int) -> list[tuple[IssuedOp, Phase]]:
        """Return (op, phase) of each phase of an iteration of `rows` tokens; the op stands for that phase in all layers."""
        ops = self._sizes.get(rows)
        if ops is not None:
            return ops
        model, parallel = self.plan.model, self.plan.keys.parallel
        if len(self.gpus) < 2 or not isinstance(model, Transformer) or not rows:
            return []
        priced = grid(rows)
        phases = self._phases.get(priced)
        if phases is None:
            width = max(2.0, BYTES[self.plan.dtype])  # bytes per value: 8-bit formats are used in matmuls only
            phases = self._phases[priced] = tuple(
                (send.times, phase)
                for send in sends(model, priced, tp=parallel.tp, groups=parallel.groups, pp=parallel.pp, width=width)
                for phase in self._collective_phases(send)
            )
        ops = self._sizes[rows] = [
            (IssuedOp(-1, -1, -1, self.slower * times * rows / priced, times * phase[1]), phase) for times, phase in phases
        ]
        return ops

    def _collective_phases(self, sent: IterationExchange) -> tuple[Phase, ...]:
        """Return the phases of one collective."""
        software = self.plan.software
        framework = software.all_reduce if isinstance(software, Framework) and sent.operation == "all-reduce" else ""
        gpus, stages = self.gpus, self.plan.stages
        width = len(gpus) // stages
        key = framework, sent.operation, gpus, sent.size
        cached = self._known.get(key)
        if cached is None:
            if sent.operation == "send":  # from each stage to the next
                groups = [gpus[index : index + width + 1 : width] for index in range(0, len(gpus) - width, width)]
            else:
                groups = [gpus[index : index + sent.ranks] for index in range(0, len(gpus), width)]
            kernel, rates = timing.own_kernel(framework), self.machine.rates()
            phases_of_groups = [timing.timed(self.machine, kernel, sent.operation, group, sent.size).phases for group in groups]
            cached = self._known[key] = tuple(
                _average_phase([phase.cost for phase in alike], stages, rates)
                for alike in zip_longest(*phases_of_groups, fillvalue=phases_of_groups[0][-1])
            )
        return cached


def _average_phase(costs: Sequence[Cost], stages: int, rates: Mapping[str, float]) -> Phase:
    """Return the average of the phases of all pipeline stages, as one phase that draws a share of each stage's amounts.

    A stage works on one batch at a time, so as many batches as stages can be in flight. Sends occur in all stages except one.
    The latency is a fixed time of the op.
    """
    first, part, demands = costs[0], 1.0 / len(costs), [cost.demand for cost in costs]
    latency, body = part * math.fsum(need.latency for need in demands), part * math.fsum(need.body(rates) for need in demands)
    demand, moved = replace(first.demand, latency=0.0), first.moved
    if stages > 1:
        amounts, holds, clocks = (
            _sum_by_name((name, part * amount) for need in demands for name, amount in pairs(need))
            for pairs in (attrgetter("amounts"), attrgetter("holds"), attrgetter("clocks"))
        )
        holds = tuple(hold for hold in holds if hold[0] not in dict(amounts))
        demand = replace(demand, floor=body, amounts=amounts, holds=holds, clocks=clocks)
        moved = tuple((name, part * amount, unit) for cost in costs for name, amount, unit in cost.moved)
    return replace(first, choice=None, demand=demand, moved=moved), ticks.femtoseconds(latency), body


def _sum_by_name(pairs: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = {}
    for name, value in pairs:
        sums[name] = sums.get(name, 0.0) + value
    return tuple(sorted(sums.items()))


@dataclass(slots=True)
class IterationCosts:
    """The ops of the iterations of one replica, or of one of its batches in flight (pipeline parallelism).

    Args:
        plan: plan of the service.
        pace: times of iterations.
        exchanges: costs of collectives.
        known: registry of labels, queues and costs.
        gpus: GPUs of the replica.
        batch: index of the batch in the replica.
        queue: queue of the ops.
    """

    plan: ServicePlan
    pace: Pace
    exchanges: ReplicaCollectives
    known: Registry
    gpus: tuple[str, ...]
    batch: int = 0
    queue: int = -1
    _labels: dict[str, int] = field(default_factory=dict)
    _costs: dict[tuple[float, ...], int] = field(default_factory=dict)
    _drawn: dict[tuple[int, ...], int] = field(default_factory=dict)
    _phases: dict[int, int] = field(default_factory=dict)
    _exchanged: dict[int, list[Exchanged]] = field(default_factory=dict)  # by number of tokens
    _stages: int = 1
    _answers: bool = True
    _hosted: int = -1  # cost whose clock scales host time, if the speed of the host changes

    def __post_init__(self) -> None:
        first, name = self.gpus[0], self.plan.name
        self._stages, self._answers = self.plan.stages, self.plan.answers
        cores = f"{self.exchanges.machine.host_of(first)}.cores"
        if cores in self.known.changing:
            self._hosted = self.known.cost(Cost(Demand(latency=1.0, clocks=((cores, 1.0),), start=1.0)))
        called = f"{first}.serving{self.batch or ''}"
        self.queue = self.known.queue(Queue(f"{name}:{called}" if name else called, first))

    def _named(self, run: IterationRun) -> int:
        if not run.parts:
            return self._label("decode")
        return self._label("batch" if not self._answers else "prefill and decode" if run.answers else "prefill")

    def exchanged(self, rows: int) -> list[Exchanged]:
        """Return the collectives of an iteration that exchanges `rows` tokens."""
        collectives = self._exchanged[rows] = list[Exchanged]()
        for bare_op, (phase, _, body) in self.exchanges.of(rows):
            op = bare_op._replace(label=self._label("all-reduce"), queue=self.queue, cost=self._phase(phase))
            collectives.append((op, body, ticks.femtoseconds(body * op.size)))
        return collectives

    def ops(self, run: IterationRun, under_way: int = 0) -> list[Piece]:
        """Return the chain of ops of a run: host time and kernels of all its iterations, then their collectives.

        If GPUs change speed, a batch passes the pipeline stages one after another, each at the speed of its own GPUs. Other
        batches in flight are in the next stages. So with as many batches as stages, all run at the speed of the slowest stage.

        Args:
            run: the iterations.
            under_way: number of batches in flight in the replica, including this one; 0: as many as stages.
        """
        chain: list[Piece] = []
        count, kernels, stages = run.count, run.computed, self._stages
        if 0 < under_way < stages and not self.known.changing.isdisjoint(f"{gpu}.compute" for gpu in self.gpus):
            for stage in range(stages - 1):
                part = kernels // (stages - stage)
                chain += self.chain(self._named(run), self._kernels(run, stage, under_way), part, 0)
                kernels -= part
            cost = self._kernels(run, stages - 1, under_way)
        else:
            cost = self._kernels(run)
        chain += self.chain(self._named(run), cost, kernels, run.host * count)
        exchanged = self._exchanged.get(run.padded)
        for op, body, flowing in self.exchanged(run.padded) if exchanged is None else exchanged:
            if count == 1:
                chain.append(op)
            elif (flowing := count * flowing) <= LONGEST:
                size, rest = _op_size(flowing, body)
                chain.append((op[0], op[1], op[2], size, rest + count * op[4], -1))
            else:
                chain += _repeat_op(op, body, flowing, count)
        return chain

    def chain(self, label: int, cost: int, kernels: int, host: int) -> list[Piece]:
        """Return a chain of ops with these total times of kernels and host (fs)."""
        if kernels <= LONGEST:
            return [(label, self.queue, cost, kernels / FEMTO, host, self._hosted)]
        if kernels > MOST_PIECES * LONGEST:
            size, rest = _op_size(kernels, 1.0)
            return [(label, self.queue, cost, size, host + rest, self._hosted)]
        chain = [(label, self.queue, cost, LONGEST / FEMTO, host, self._hosted)]
        while kernels > LONGEST:
            kernels -= LONGEST
            chain.append((label, self.queue, cost, min(kernels, LONGEST) / FEMTO, 0, -1))
        return chain

    def _label(self, name: str) -> int:
        label = self._labels.get(name)
        if label is None:
            kind = "allreduce" if name == "all-reduce" else "infer"
            label = self._labels[name] = self.known.label(Label(name, kind, self.gpus[0], self.plan.name or "main"))
        return label

    def _phase(self, cost: Cost) -> int:
        if id(cost) not in self._phases:
            self._phases[id(cost)] = self.known.cost(cost)
        return self._phases[id(cost)]

    def _kernels(self, run: IterationRun, stage: int = 0, stage_count: int = 0) -> int:
        """Return the cost of one second of the run's kernels, on `many` stages from `stage` on; 0: on all stages."""
        answers, parts = run.answers, run.parts
        key: tuple[int, ...]
        if not parts:  # amounts at the knot below: the same for all iterations of a run
            key = stage, stage_count, answers, run.low if run.low >= 0 else knot(run.context // answers)[0]
        else:  # one cost for iterations with similar token counts
            before = parts[0][0].read if len(parts) == 1 else sum([sequence.read for sequence, _ in parts])  # integers
            key = stage, stage_count, grid(run.tokens), grid(1 + before), len(parts)
            if answers:
                key += grid(answers), grid(run.context // answers)
        cost = self._drawn.get(key)
        if cost is None:
            cost = self._drawn[key] = self._cost(self.pace.taken(run), stage, stage_count or self._stages)
        return cost

    def _cost(self, taken: KernelSeconds, stage: int, count: int) -> int:
        seconds, stages = taken.seconds, self._stages
        parts = [rounded(part / seconds) for part in (taken.compute, taken.memory, taken.flop, taken.moved)]
        if (key := (stage, count, *parts)) not in self._costs:
            gpus = tuple(gpu for rank, gpu in enumerate(self.gpus) if (rank * stages // len(self.gpus) - stage) % stages < count)
            self._costs[key] = self.known.cost(a_second(gpus, self.plan.gpu.memory.bandwidth, self._doubt, count, *parts))
        return self._costs[key]

    def _doubt(self, bound: str) -> UncertaintySource:
        """Return the error of kernels: the error of prefill if they are bound by compute, else of decode."""
        phase = "prefill" if bound == BOUND["compute"] else "decode"
        phase = phase if isinstance(self.plan.model, Transformer) else "cnn"
        number = "matmul" if phase == "prefill" else "sustained.read"
        sure: Case = "outside" if self.plan.is_unlike else case(self.plan.gpu, number, self.plan.dtype)
        return UncertaintySource(f"infer/{phase}", sure, family(self.gpus[0]), 1.0)


def a_second(
    gpus: tuple[str, ...],
    bandwidth: float,
    doubt: Callable[[str], UncertaintySource],
    stages: int,
    compute: float,
    memory: float,
    flop: float,
    moved: float,
) -> Cost:
    """Return the cost of one second of kernels, at the speed of the slowest of these GPUs.

    Args:
        gpus: GPUs that run the kernels.
        bandwidth: memory bandwidth of a GPU (bytes/s), the weight of its share of contended memory.
        doubt: function of the bound that returns its error.
        stages: number of pipeline stages that these GPUs belong to; each GPU works in one of them.
        compute, memory: shares of the compute and of the memory bandwidth of a GPU in use.
        flop, moved: FLOP and bytes.
    """
    parts = {"compute": min(compute, 1.0), "memory": min(memory, 1.0)}
    amounts = [(f"{gpu}.{kind}", part / stages) for gpu in gpus for kind, part in parts.items() if part > 0]
    clocks = tuple((f"{gpu}.compute", 1.0) for gpu in gpus)
    bound = next((BOUND[kind] for kind, part in parts.items() if part >= max(0.5, *parts.values())), BOUND["small"])
    natural: tuple[tuple[str, float, Unit], ...] = (("compute", flop, "FLOP"), ("memory", moved, "B"))
    return Cost(
        Demand(amounts=tuple(sorted(amounts)), floor=1.0, share=bandwidth, clocks=clocks),
        moved=tuple((f"{gpu}.{kind}", amount / stages, unit) for gpu in gpus for kind, amount, unit in natural if amount > 0),
        why=(
            Term(
                label=bound,
                formula="kernels one after another; compute, memory",
                inputs=tuple((NAMED[kind], precise(part, "%"), KERNELS) for kind, part in parts.items()),
                seconds=1.0,
                kind="kernels",
                doubts=(doubt(bound),),
            ),
        ),
    )


def grid(rows: int) -> int:
    """Round a number of tokens up, by at most 1/16, to the size whose collective time is used for it.

    >>> grid(3), grid(16), grid(33), grid(1000)
    (3, 16, 34, 1024)
    """
    if rows <= 1 << BITS:
        return rows
    step = 1 << (rows - 1).bit_length() - BITS
    return -(-rows // step) * step


def rounded(value: float) -> float:
    """Return a value rounded to five bits.

    >>> rounded(1.0), rounded(0.7), rounded(0.0)
    (1.0, 0.6875, 0.0)
    """
    if value <= 0:
        return 0.0
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * (1 << BITS)), exponent - BITS)


def _repeat_op(op: IssuedOp, body: float, flowing: int, count: int) -> Iterator[Piece]:
    """Yield ops that together equal `count` ops like this one; `flowing` is their total transfer time (fs)."""
    pieces = min(-(-flowing // LONGEST), MOST_PIECES)
    for number in range(pieces):
        size, rest = _op_size(flowing // pieces + (number < flowing % pieces), body)
        yield op._replace(size=size, time=rest + (0 if number else count * op.time))


def _op_size(part: int, body: float) -> tuple[float, int]:
    """Return (size, rest in fs) of an op with a transfer time of `part` fs; `body` is the time of size 1 (s)."""
    size = part / FEMTO / body if body > 0 else 0.0
    while (rest := part - ticks.femtoseconds(body * size)) < 0:
        size = min((part + rest) / FEMTO / body, math.nextafter(size, 0.0))
    return size, rest
