"""Ops of an iteration: its kernels on the GPUs of a replica, and its all-reduces on the links between them.

An iteration's kernels run one after another. Some are bound by the units, some by memory, some by their starts. Their sum is
a floor, the time they take alone; meanwhile they draw from each GPU its units and its memory. A cost is one second of such an
iteration, and an op is a number of seconds. Parts are rounded to five bits, so that there are few costs.

The collectives of all layers that are alike are one op, as long as all of them, on the links that the machine's library uses. Its
cost is worked out for 16 numbers of tokens an octave; between them its bytes are in proportion.
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
from hwsim.devices.gpu_doubts import case
from hwsim.engine import Host, IssuedOp
from hwsim.engine.issued import Issued
from hwsim.families.serving.actors.pace import Pace
from hwsim.families.serving.actors.run import Run
from hwsim.families.serving.workload.plan import ServicePlan
from hwsim.formats import family, precise
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.framework import Framework
from hwsim.models.iteration import Sent, sends
from hwsim.models.kernel_tables import Taken, knot
from hwsim.origins import CASES, Case, Doubt
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.units import BYTES

BITS: Final = 5
LONGEST: Final = 10**15  # fs of one op: as seconds it is rounded to no other femtosecond
MOST_PIECES: Final = 1000  # ops of a run: beyond 17 minutes they are longer, and what rounding leaves is a time of its own
NAMED: Final = {"compute": "units", "memory": "memory"}
KERNELS: Final = "of the time of the iteration's kernels"
BOUND: Final = {"compute": "kernels (units)", "memory": "kernels (memory)", "start": "kernels (starts)"}


Registry: TypeAlias = "Host | Issued"  # labels, queues and costs are made known to it
Phase: TypeAlias = tuple[Cost, int, float]  # (cost, fs of its latency, seconds of its body)
Piece: TypeAlias = tuple[int, int, int, float, int, int]  # an op, as of `IssuedOp`
Exchanged: TypeAlias = tuple[IssuedOp, float, int]  # (all such phases, body of their cost, fs of the flow of all)


class Priced(dict[tuple[str, str, tuple[str, ...], float], tuple[Phase, ...]]):
    """The phases of the collectives of a machine, by framework, operation, devices and bytes."""


@dataclass(slots=True)
class Exchanges:
    """The phases of the exchanges of one copy: what its collectives cost on the links between its GPUs."""

    plan: ServicePlan
    machine: Machine
    gpus: tuple[str, ...]
    slower: float = 1.0
    _phases: dict[int, tuple[tuple[int, Phase], ...]] = field(default_factory=dict)
    _sizes: dict[int, list[tuple[IssuedOp, Phase]]] = field(default_factory=dict)
    _known: Priced = field(init=False)

    def __post_init__(self) -> None:
        self._known = self.machine.kept(Priced)

    def seconds(self, rows: int) -> int:
        """fs of all exchanges of an iteration of `rows` tokens."""
        return sum(op.time + ticks.femtoseconds(body * op.size) for op, (_, _, body) in self.of(rows))  # integers

    @property
    def case(self) -> Case:
        """The case of the exchanges that were made: the case of the least sure exchange."""
        costs = [phase[0] for phases in self._phases.values() for _, phase in phases]
        cases = [doubt.case for cost in costs for term in cost.why for doubt in term.doubts if doubt.case in CASES]
        return max(cases, key=CASES.index, default="known")

    def of(self, rows: int) -> list[tuple[IssuedOp, Phase]]:
        """For each phase an op of all such phases of the layers, and the (cost, fs of its latency, seconds of its body)."""
        ops = self._sizes.get(rows)
        if ops is not None:
            return ops
        model, parallel = self.plan.model, self.plan.keys.parallel
        if len(self.gpus) < 2 or not isinstance(model, Transformer) or not rows:
            return []
        priced = grid(rows)
        phases = self._phases.get(priced)
        if phases is None:
            width = max(2.0, BYTES[self.plan.dtype])  # of what passes between GPUs: 8 bits are of products alone
            phases = self._phases[priced] = tuple(
                (send.times, phase)
                for send in sends(model, priced, tp=parallel.tp, groups=parallel.groups, pp=parallel.pp, width=width)
                for phase in self._priced(send)
            )
        ops = self._sizes[rows] = [
            (IssuedOp(-1, -1, -1, self.slower * times * rows / priced, times * phase[1]), phase) for times, phase in phases
        ]
        return ops

    def _priced(self, sent: Sent) -> tuple[Phase, ...]:
        """(cost, fs of its latency, seconds of its body) of each phase of one collective."""
        software = self.plan.software
        framework = software.all_reduce if isinstance(software, Framework) and sent.operation == "all-reduce" else ""
        gpus, stages = self.gpus, self.plan.stages
        width = len(gpus) // stages
        key = framework, sent.operation, gpus, sent.size
        cached = self._known.get(key)
        if cached is None:
            if sent.operation == "send":  # from each stage to the next
                among = [gpus[index : index + width + 1 : width] for index in range(0, len(gpus) - width, width)]
            else:
                among = [gpus[at : at + sent.ranks] for at in range(0, len(gpus), width)]
            own, rates = timing.own_kernel(framework), self.machine.rates()
            every = [timing.timed(self.machine, own, sent.operation, each, sent.size).phases for each in among]
            cached = self._known[key] = tuple(
                _of_stages([phase.cost for phase in alike], stages, rates)
                for alike in zip_longest(*every, fillvalue=every[0][-1])
            )
        return cached


def _of_stages(costs: Sequence[Cost], stages: int, rates: Mapping[str, float]) -> Phase:
    """One of a number of equal phases, of which each stage has as many: it draws a part of what the phase of each stage does.

    A stage works for one batch at a time, so as many batches as there are stages have room; a send is of all stages but one.
    The latency is own time of the op.
    """
    first, part, demands = costs[0], 1.0 / len(costs), [cost.demand for cost in costs]
    latency, body = part * math.fsum(of.latency for of in demands), part * math.fsum(of.body(rates) for of in demands)
    demand, moved = replace(first.demand, latency=0.0), first.moved
    if stages > 1:
        amounts, holds, clocks = (
            _summed((name, part * amount) for of in demands for name, amount in pairs(of))
            for pairs in (attrgetter("amounts"), attrgetter("holds"), attrgetter("clocks"))
        )
        holds = tuple(each for each in holds if each[0] not in dict(amounts))
        demand = replace(demand, floor=body, amounts=amounts, holds=holds, clocks=clocks)
        moved = tuple((name, part * amount, unit) for cost in costs for name, amount, unit in cost.moved)
    return replace(first, choice=None, demand=demand, moved=moved), ticks.femtoseconds(latency), body


def _summed(pairs: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = {}
    for name, value in pairs:
        sums[name] = sums.get(name, 0.0) + value
    return tuple(sorted(sums.items()))


@dataclass(slots=True)
class Costs:
    """The ops of the iterations of one copy, or of one of the batches that a copy works on at once."""

    plan: ServicePlan
    pace: Pace
    exchanges: Exchanges
    known: Registry
    gpus: tuple[str, ...]
    batch: int = 0
    queue: int = -1
    _labels: dict[str, int] = field(default_factory=dict)
    _costs: dict[tuple[float, ...], int] = field(default_factory=dict)
    _drawn: dict[tuple[int, ...], int] = field(default_factory=dict)
    _phases: dict[int, int] = field(default_factory=dict)
    _exchanged: dict[int, list[Exchanged]] = field(default_factory=dict)  # by the tokens that pass
    _stages: int = 1
    _answers: bool = True
    _hosted: int = -1  # the cost at whose clock the host's time goes, if its speed changes

    def __post_init__(self) -> None:
        first, name = self.gpus[0], self.plan.name
        self._stages, self._answers = self.plan.stages, self.plan.answers
        cores = f"{self.exchanges.machine.host_of(first)}.cores"
        if cores in self.known.changing:
            self._hosted = self.known.cost(Cost(Demand(latency=1.0, clocks=((cores, 1.0),), start=1.0)))
        called = f"{first}.serving{self.batch or ''}"
        self.queue = self.known.queue(Queue(f"{name}:{called}" if name else called, first))

    def _named(self, run: Run) -> int:
        name = "tokens"
        if run.parts:
            name = "batch" if not self._answers else "prompts and tokens" if run.answers else "prompts"
        label = self._labels.get(name)
        return self._label(name) if label is None else label

    def exchanged(self, rows: int) -> list[Exchanged]:
        """The exchanges of an iteration, by the tokens that they pass."""
        made = self._exchanged[rows] = list[Exchanged]()
        for each, (phase, _, body) in self.exchanges.of(rows):
            op = each._replace(label=self._label("all-reduce"), queue=self.queue, cost=self._phase(phase))
            made.append((op, body, ticks.femtoseconds(body * op.size)))
        return made

    def ops(self, run: Run, under_way: int = 0) -> list[Piece]:
        """The chain of the iterations of a run: host and kernels of all of them, then their exchanges.

        Where GPUs change their speed, a batch passes the stages one after another, each at the speed of its own GPUs. Other
        batches of the copy that are under way are in the stages after it and go on with it, so that with as many as there
        are stages all of them go at the speed of the slowest.

        Args:
            under_way: batches of the copy that are worked on, this one among them; 0: as many as there are stages.
        """
        chain, count, kernels, stages = list[Piece](), run.count, run.computed, self._stages
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
                size, rest = _of(flowing, body)
                chain.append((op[0], op[1], op[2], size, rest + count * op[4], -1))
            else:
                chain += _repeated(op, body, flowing, count)
        return chain

    def chain(self, label: int, cost: int, kernels: int, host: int) -> list[Piece]:
        """The chain of iterations that take these fs of kernels and host, all together, but for their exchanges."""
        if kernels <= LONGEST:
            return [(label, self.queue, cost, kernels / FEMTO, host, self._hosted)]
        if kernels > MOST_PIECES * LONGEST:
            size, rest = _of(kernels, 1.0)
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

    def _kernels(self, run: Run, stage: int = 0, many: int = 0) -> int:
        """The cost of a second of the run's kernels, in `many` stages from one on; 0: in all."""
        answers, parts = run.answers, run.parts
        drawn: tuple[int, ...]
        if not parts:  # as at the knot before its contexts: all iterations of a run draw alike
            drawn = stage, many, answers, run.low if run.low >= 0 else knot(run.context // answers)[0]
        else:  # iterations of about as many tokens draw alike
            before = parts[0][0].read if len(parts) == 1 else sum([sequence.read for sequence, _ in parts])  # integers
            drawn = stage, many, grid(run.tokens), grid(1 + before), len(parts)
            if answers:
                drawn += grid(answers), grid(run.context // answers)
        cost = self._drawn.get(drawn)
        if cost is None:
            cost = self._drawn[drawn] = self._cost(self.pace.taken(run), stage, many or self._stages)
        return cost

    def _cost(self, taken: Taken, stage: int, many: int) -> int:
        """The cost of a second of such kernels."""
        seconds, stages = taken.seconds, self._stages
        parts = [rounded(part / seconds) for part in (taken.compute, taken.memory, taken.flop, taken.moved)]
        if (key := (stage, many, *parts)) not in self._costs:
            gpus = tuple(gpu for at, gpu in enumerate(self.gpus) if (at * stages // len(self.gpus) - stage) % stages < many)
            self._costs[key] = self.known.cost(a_second(gpus, self.plan.gpu.memory.bandwidth, self._doubt, many, *parts))
        return self._costs[key]

    def _doubt(self, bound: str) -> Doubt:
        """The error of passes: of prompts if the units bind, else of tokens."""
        phase = "prefill" if bound == BOUND["compute"] else "decode"
        phase = phase if isinstance(self.plan.model, Transformer) else "cnn"
        number = "matmul" if phase == "prefill" else "sustained.read"
        sure: Case = "outside" if self.plan.is_unlike else case(self.plan.gpu, number, self.plan.dtype)
        return Doubt(f"infer/{phase}", sure, family(self.gpus[0]), 1.0)


def a_second(
    gpus: tuple[str, ...],
    bandwidth: float,
    doubt: Callable[[str], Doubt],
    stages: int,
    compute: float,
    memory: float,
    flop: float,
    moved: float,
) -> Cost:
    """A second of kernels, one after another: all of it goes at the speed of the slowest of these GPUs.

    Args:
        doubt: error of what binds.
        stages: of a pipeline, whose GPUs these are and which the second goes through: a GPU works in one of them.
        compute, memory: parts of the units and of the memory of each GPU.
        flop, moved: operations and bytes.
    """
    parts = {"compute": min(compute, 1.0), "memory": min(memory, 1.0)}
    amounts = [(f"{gpu}.{kind}", part / stages) for gpu in gpus for kind, part in parts.items() if part > 0]
    clocks = tuple((f"{gpu}.compute", 1.0) for gpu in gpus)
    bound = next((BOUND[kind] for kind, part in parts.items() if part >= max(0.5, *parts.values())), BOUND["start"])
    natural: tuple[tuple[str, float, Unit], ...] = (("compute", flop, "FLOP"), ("memory", moved, "B"))
    return Cost(
        Demand(amounts=tuple(sorted(amounts)), floor=1.0, share=bandwidth, clocks=clocks),
        moved=tuple((f"{gpu}.{kind}", amount / stages, unit) for gpu in gpus for kind, amount, unit in natural if amount > 0),
        why=(
            Term(
                label=bound,
                formula="kernels one after another; units, memory",
                inputs=tuple((NAMED[kind], precise(part, "%"), KERNELS) for kind, part in parts.items()),
                seconds=1.0,
                kind="kernels",
                doubts=(doubt(bound),),
            ),
        ),
    )


def grid(rows: int) -> int:
    """The number of tokens whose all-reduce represents one of `rows` tokens: at most a sixteenth more.

    >>> grid(3), grid(16), grid(33), grid(1000)
    (3, 16, 34, 1024)
    """
    if rows <= 1 << BITS:
        return rows
    step = 1 << (rows - 1).bit_length() - BITS
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


def _repeated(op: IssuedOp, body: float, flowing: int, count: int) -> Iterator[Piece]:
    """An op of `count` like this one, to the femtosecond, in pieces; flowing: fs of the flow of all."""
    pieces = min(-(-flowing // LONGEST), MOST_PIECES)
    for number in range(pieces):
        size, rest = _of(flowing // pieces + (number < flowing % pieces), body)
        yield op._replace(size=size, time=rest + (0 if number else count * op.time))


def _of(part: int, body: float) -> tuple[float, int]:
    """The size of an op that flows for these fs, rounded down, and the fs that are left; body: s of a size of 1."""
    size = part / FEMTO / body if body > 0 else 0.0
    while (rest := part - ticks.femtoseconds(body * size)) < 0:
        size = min((part + rest) / FEMTO / body, math.nextafter(size, 0.0))
    return size, rest
