"""Kernels and collectives of a training -> costs of ops.

Kernels between which nothing can happen are one op: it takes as long as they do one after another, and draws the memory of
its devices evenly over that time; the compute of a device it has for itself as long as kernels run, whatever limits them.
A collective that its devices wait for may be part of the op, too: then it also draws on the links, so that whatever else is
on them slows it down.

    seconds = kernels by the GPU's model (`hwsim.models.KernelTimes`) + exposed part x collectives by `hwsim.collectives`

Across nodes collectives reach the part of the cards' rate that they reach in trainings (`hwsim.models.cluster`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from hwsim.collectives.plan import Operation
from hwsim.collectives.timing import timed
from hwsim.demand import Cost, Demand, Term, Unit, softened
from hwsim.machine import Machine
from hwsim.models import Framework, Kernel, KernelTimes
from hwsim.models.cluster import KNEE, NETWORK
from hwsim.records import dataclass
from hwsim.units import precise
from hwsim.workload.training.layout import Names
from hwsim.workload.training.wide import WideExchanges

KERNELS: Final = "a kernel's own model, as it runs in trainings"
FLOWS: Final = "collectives on the machine's links"
IN_TRAINING: Final = "part of the cards' rate that collectives reach in published trainings"
EXPOSED: Final = "of its time what its devices wait for: the rest hides behind kernels"
HIDDEN: Final = "of its time what hides behind kernels"
Drawn = tuple[float, float, float, float]
NOTHING: Final[Drawn] = (0.0, 0.0, 0.0, 0.0)
COLLECTIVES: Final = frozenset({"tp", "cp", "ep", "pp", "dp"})


@dataclass(frozen=True, slots=True)
class Spent:
    """What an op takes: seconds one after another by what they go to, and what it draws meanwhile.

    Args:
        collecting: of the seconds, those of collectives.
        each: of every GPU of the team, by the kinds there are in it: compute and memory in device time, FLOP, bytes.
        amounts, moved: of capacities by name, beside it.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    collecting: float = 0.0
    each: tuple[Drawn, ...] = ()
    amounts: Mapping[str, float] = field(default_factory=dict)
    moved: Mapping[str, tuple[float, Unit]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return math.fsum(self.seconds.values())

    def and_then(self, other: Spent, times: float = 1.0) -> Spent:
        """Both, one after another; the other so often."""
        moved = dict(self.moved)
        for name, (amount, unit) in other.moved.items():
            moved[name] = (moved.get(name, (0.0, unit))[0] + times * amount, unit)
        return Spent(
            _added(self.seconds, other.seconds, times),
            self.collecting + times * other.collecting,
            _each(self.each, other.each, times),
            _added(self.amounts, other.amounts, times),
            moved,
        )

    def cost(self, team: Names, is_wire: Callable[[str], bool], bandwidth: float, places: Sequence[int] = ()) -> Cost:
        """As an op of a team.

        Args:
            places: of each of the team which of `each` is of its kind (default: the only one).
            is_wire: whether a capacity is a link's: the largest amount in bytes is what it competes with there.
            bandwidth: of the devices' memory: bytes that stand for a second of computing.
        """
        total = self.total
        each = [self.each[place] if self.each else NOTHING for place in places or (0,) * len(team)]
        own = {f"{name}.compute": drawn[0] for name, drawn in zip(team, each, strict=True)}
        own |= {f"{name}.memory": drawn[1] for name, drawn in zip(team, each, strict=True)}
        drawn = {name: amount for name, amount in _added(self.amounts, own, 1.0).items() if amount > 0}
        longest = max((amount for name, amount in self.amounts.items() if is_wire(name)), default=0.0)
        inputs = tuple(
            (name, precise(seconds, "s"), FLOWS if name in COLLECTIVES else KERNELS) for name, seconds in self.seconds.items()
        )
        why = (Term("kernels", " + ".join(name for name, _, _ in inputs), inputs, total, kind="kernels"),) if total > 0 else ()
        demand = Demand(amounts=tuple(sorted(drawn.items())), floor=total, share=longest or total * bandwidth or 1.0)
        moved = dict(self.moved)
        for name, (_, _, flop, size) in zip(team, each, strict=True):
            moved[f"{name}.compute"] = flop, "FLOP"
            moved[f"{name}.memory"] = moved.get(f"{name}.memory", (0.0, "B"))[0] + size, "B"
        return Cost(demand, tuple((name, *found) for name, found in sorted(moved.items()) if found[0] > 0), why)


def _each(one: tuple[Drawn, ...], other: tuple[Drawn, ...], times: float) -> tuple[Drawn, ...]:
    """Of each kind both, the other so often."""
    if not other:
        return one
    found = []
    for a, b in zip(one or (NOTHING,) * len(other), other, strict=True):
        found.append((a[0] + times * b[0], a[1] + times * b[1], a[2] + times * b[2], a[3] + times * b[3]))
    return tuple(found)


def _added(one: Mapping[str, float], other: Mapping[str, float], times: float) -> dict[str, float]:
    found = dict(one)
    for name, value in other.items():
        found[name] = found.get(name, 0.0) + times * value
    return found


@dataclass(frozen=True, slots=True)
class Computing:
    """Kernels on each GPU of a team."""

    speed: KernelTimes
    known: dict[Kernel, tuple[float, float, float, float, float]] = field(default_factory=dict)

    def kernels(self, kernels: Iterable[Kernel]) -> Spent:
        """Kernels one after another."""
        seconds: dict[str, float] = {}
        compute = memory = flop = size = 0.0
        for kernel in kernels:
            found = self.one(kernel)
            seconds[kernel.kind] = seconds.get(kernel.kind, 0.0) + found[0]
            compute, memory, flop, size = compute + found[1], memory + found[2], flop + found[3], size + found[4]
        return Spent(seconds, each=((compute, memory, flop, size),))

    def one(self, kernel: Kernel) -> tuple[float, float, float, float, float]:
        """(seconds, compute, memory in device time, FLOP, bytes) of a kernel, all times it runs."""
        found = self.known.get(kernel)
        if found is None:
            cost = self.speed.gpu.compute("gpu", self.speed.asked(kernel))
            amounts, moved = dict(cost.demand.amounts), {name: amount for name, amount, _ in cost.moved}
            times, taken = kernel.times, self.speed.seconds(kernel)
            memory = min(taken, times * amounts.get("gpu.memory", 0.0))
            found = taken, taken, memory, times * moved.get("gpu.compute", 0.0), times * moved.get("gpu.memory", 0.0)
            self.known[kernel] = found
        return found


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Collectives of groups that do the same at the same time, as one demand."""

    machine: Machine
    framework: Framework
    rates: Mapping[str, float]
    wide: WideExchanges
    known: dict[tuple[tuple[Names, ...], Operation, float], Cost] = field(default_factory=dict)

    def cost(self, groups: Sequence[Names], what: Operation, size: float) -> Cost:
        """Of one collective in each of the groups.  size: bytes of one rank's whole array.

        Raises:
            CannotCollect, NoRoute: the machine does not link them.
        """
        key = tuple(groups), what, size
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._cost(groups, what, size)
        return found

    def told(self, groups: Sequence[Names], alike: Names, what: Operation, size: float) -> Cost:
        """The same of very many groups: one group, `alike` each of them, tells how it is done and what it takes alone."""
        key = tuple(groups[:1]), what, size
        found = self.known.get(key)
        if found is None:
            one = self.cost((alike,), what, size)
            ways = self.wide.ways(groups)
            alone = max((amount / self.rates[name] for name, amount in one.demand.amounts), default=0.0)
            carried = alone / self.wide.alone(alike)
            amounts = {name: carried * amount for name, amount in ways.named.items()}
            body = carried * ways.longest
            if self._leaves((alike,)):
                body = self._in_training(body, one.demand.share, what)
            wires = max((amount for name, amount in amounts.items() if self.is_wire(name)), default=0.0)
            demand = Demand(one.demand.latency, tuple(sorted(amounts.items())), max(body, one.demand.floor), (), wires or 1.0)
            unit: Unit = "B"
            moved = tuple((name, amount, unit) for name, amount in sorted(amounts.items()) if self.is_wire(name))
            found = self.known[key] = replace(one, demand=demand, moved=moved)
        return found

    def _cost(self, groups: Sequence[Names], what: Operation, size: float) -> Cost:
        latency = floor = alone = 0.0
        amounts: dict[str, float] = {}
        moved: dict[str, tuple[float, Unit]] = {}
        first: Cost | None = None
        for members in groups:
            flows = timed(self.machine, None, what, members, size)
            bodies = 0.0
            for phase in flows.phases:
                demand = phase.cost.demand
                bodies += demand.body(self.rates)
                first = first or phase.cost
                for name, amount in demand.amounts:
                    amounts[name] = amounts.get(name, 0.0) + amount
                for name, amount, unit in phase.cost.moved:
                    if self.machine.capacities[name].unit == "1":  # messages, which are counted and move nothing
                        continue
                    moved[name] = (moved.get(name, (0.0, unit))[0] + amount, unit)
            latency = max(latency, math.fsum(phase.cost.demand.latency for phase in flows.phases))
            floor = max(floor, bodies)
        if first is None:
            return Cost(Demand())
        alone = max([floor, *(amount / self.rates[name] for name, amount in amounts.items())])
        wires = max((amount for name, amount in amounts.items() if self.is_wire(name)), default=0.0)
        why = first.why
        if self._leaves(groups):
            alone = self._in_training(alone, wires, what)
            why = (
                *why,
                Term(
                    "flow", "flow in a training", (("flow in a training", precise(alone, "s"), IN_TRAINING),), alone, kind="flow"
                ),
            )
        # what it takes of the GPUs while kernels run is in the part of it that is exposed (`hwsim.models.hiding`)
        demand = Demand(latency, tuple(sorted(amounts.items())), alone, (), wires or 1.0)
        return Cost(demand, tuple((name, *each) for name, each in sorted(moved.items())), why, choice=first.choice)

    def _leaves(self, groups: Sequence[Names]) -> bool:
        """Whether some group is not within one node."""
        return any(len({self.machine.device(name).node for name in members}) > 1 for members in groups)

    def _in_training(self, body: float, size: float, what: Operation) -> float:
        """Seconds that a flow of so many seconds takes between nodes in a training."""
        reached = body / (NETWORK * self.framework.network)
        if what == "send" or size <= 0:
            return reached
        return reached * softened(size, KNEE) / size

    def is_wire(self, name: str) -> bool:
        """Whether a capacity is a link's."""
        return self.machine.capacities[name].unit == "B"

    def spent(self, cost: Cost, axis: str, exposed: float, part: float = 1.0) -> Spent:
        """A collective as part of an op that waits for `exposed` of it.  part: of what it draws, the op's."""
        seconds = exposed * cost.demand.alone(self.rates)
        return Spent(
            {axis: seconds},
            seconds,
            (),
            {name: part * amount for name, amount in cost.demand.amounts},
            {name: (part * amount, unit) for name, amount, unit in cost.moved},
        )


def scaled(cost: Cost, part: float, which: str = EXPOSED) -> Cost:
    """Part of a collective, as if it were one of its own that takes and draws so much less.  which: what part of it, in words."""
    demand = cost.demand
    return replace(
        cost,
        demand=Demand(
            part * demand.latency,
            tuple((name, part * amount) for name, amount in demand.amounts),
            part * demand.floor,
            share=part * demand.share,
        ),
        moved=tuple((name, part * amount, unit) for name, amount, unit in cost.moved),
        why=tuple(_in_part(term, part, which) for term in cost.why),
    )


def beside(own: Cost, others: Sequence[Cost], far: Cost | None = None, many: int = 0) -> Cost:
    """An op that stands for others too, as the engine shares capacities among them: each draws its own.

    far: what each of many more draws.
    """
    if not others and not many:
        return own
    draws: dict[tuple[str, float], int] = {}
    moved: dict[tuple[str, float], tuple[float, Unit]] = {}  # behind each of these draws
    for cost, times in ((own, 1), *((other, 1) for other in others), *(((far, many),) if far is not None and many else ())):
        natural = {name: (amount, unit) for name, amount, unit in cost.moved}
        for each in cost.demand.amounts:
            draws[each] = draws.get(each, 0) + times
            if each[0] in natural:
                moved.setdefault(each, natural[each[0]])
    if all(times == 1 for times in draws.values()) and len(draws) == len(own.demand.amounts):
        return own
    amounts = tuple(sorted(draws))
    demand = replace(own.demand, amounts=amounts, times=(*(draws[each] for each in amounts), *(1 for _ in own.demand.holds)))
    undrawn = [each for each in own.moved if all(name != each[0] for name, _ in amounts)]
    rows = tuple((each[0], *moved[each]) for each in amounts if each in moved)
    return replace(own, demand=demand, moved=(*rows, *undrawn))


def _in_part(term: Term, part: float, which: str) -> Term:
    """A line of a whole collective as one of part of it."""
    whole = term.formula if term.formula in {name for name, _, _ in term.inputs} else f"({term.formula})"
    inputs = (("part", precise(part, "%"), which), *term.inputs)
    return replace(term, formula=f"part x {whole}", inputs=inputs, seconds=part * term.seconds)


def restricted(cost: Cost, kept: frozenset[str]) -> Cost:
    """The cost with what it draws of some capacities only; as long alone."""
    demand = cost.demand
    amounts = tuple(each for each in demand.amounts if each[0] in kept)
    return replace(
        cost,
        demand=replace(demand, amounts=amounts),
        moved=tuple(each for each in cost.moved if each[0] in kept),
    )
