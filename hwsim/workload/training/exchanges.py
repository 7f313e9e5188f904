"""Costs of the exchanges of a training: the phases of one collective, and one demand of all groups that do the same at once.

Between nodes a collective reaches the part of the NICs' rate that it reaches in published trainings (`hwsim.models.cluster`):

    seconds of a flow between nodes = seconds by the links / (NETWORK x the framework's part) x softened(bytes, KNEE) / bytes
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final

from hwsim.demand import Cost, Demand, Doubt, Term, Unit, softened
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import Operation
from hwsim.models.cluster import KNEE, NETWORK
from hwsim.records import dataclass
from hwsim.workload.training.costs import Spent
from hwsim.workload.training.layout import Names
from hwsim.workload.training.rings import Rings

if TYPE_CHECKING:
    from hwsim.communication.algorithms import Algorithm
    from hwsim.communication.flows import Flows
    from hwsim.communication.renaming import Renamed
    from hwsim.workload.training.sends import Sends

IN_TRAINING: Final = "part of the cards' rate that collectives reach in published trainings"
EXPOSED: Final = "of its time what its devices wait for: the rest hides behind kernels"
HIDDEN: Final = "of its time what hides behind kernels"
BUCKETS: Final = "times that a bucket of weights goes round, one after another"


@dataclass(slots=True)
class Exchanges:
    """Collectives on a machine, each costed once.  network: part of the NICs' rate that the framework reaches."""

    machine: Machine
    network: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    rings: Rings = field(init=False)
    _costs: dict[tuple[tuple[Names, ...], Operation, float], Cost] = field(default_factory=dict)
    _represented: dict[tuple[Names, Operation, float], Cost] = field(default_factory=dict)
    _alone: dict[int, tuple[Cost, float]] = field(default_factory=dict)  # by id of a cost: it, and its seconds
    _flows: dict[tuple[object, ...], Flows] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    _renamed: dict[tuple[Names, ...], list[Renamed | None]] = field(default_factory=dict)
    _sends: Sends | None = None

    def __post_init__(self) -> None:
        self.rates = self.rates or self.machine.rates()
        self.rings = Rings(self.machine)

    def flows(
        self, operation: Operation, devices: Sequence[str], size: float, algorithm: Algorithm | None, *, named: bool
    ) -> Flows:
        """The phases of one collective.

        Args:
            algorithm: None is the choice of the machine's library.
            named: the file names the algorithm; else it is the usual one of these devices.

        Raises:
            CannotCollect, NoRoute, UnknownName: the machine does not link the devices.
        """
        from hwsim.communication import ALGORITHMS, timing
        from hwsim.ops.exchange import AUTO

        key = algorithm, operation, tuple(devices), size, named
        if key not in self._flows:
            if not named:
                usual = timing.usual(self.machine, operation, devices)
                algorithm = None if usual == AUTO else ALGORITHMS[usual]
            self._flows[key] = timing.timed(self.machine, algorithm, operation, devices, size)
        return self._flows[key]

    def cost(self, groups: Sequence[Names], operation: Operation, size: float) -> Cost:
        """One collective in each of the groups, as one demand.  size: bytes of one rank's whole array.

        Raises:
            CannotCollect, NoRoute: the machine does not link the devices.
        """
        key = tuple(groups), operation, size
        if key not in self._costs:
            self._costs[key] = self._together(groups, operation, size)
        return self._costs[key]

    def represented(self, groups: Sequence[Names], sample: Names, operation: Operation, size: float) -> Cost:
        """The same for very many groups identical to `sample`, which decides the algorithm and its seconds alone."""
        key = groups[0], operation, size
        if key not in self._represented:
            cost = self.cost((sample,), operation, size)
            paths = self.rings.paths(groups)
            alone = max((amount / self.rates[name] for name, amount in cost.demand.amounts), default=0.0)
            carried = alone / self.rings.alone(sample)
            amounts = {name: carried * amount for name, amount in paths.named.items()}
            body = carried * paths.longest
            if self._leaves((sample,)):
                body = in_training(body, cost.demand.share, operation, self.network)
            links = {name: amount for name, amount in sorted(amounts.items()) if self.is_link(name)}
            floor, share = max(body, cost.demand.floor), max(links.values(), default=0.0) or 1.0
            demand = Demand(cost.demand.latency, tuple(sorted(amounts.items())), floor, (), share)
            unit: Unit = "B"
            self._represented[key] = replace(
                cost, demand=demand, moved=tuple((name, amount, unit) for name, amount in links.items())
            )
        return self._represented[key]

    def _together(self, groups: Sequence[Names], operation: Operation, size: float) -> Cost:
        latency = floor = 0.0
        amounts: dict[str, float] = {}
        moved: dict[str, tuple[float, Unit]] = {}
        like: dict[str, str] = {}  # by name of a capacity the one with its rate and unit in the group that was costed
        first: Cost | None = None
        for phases, names in self._phases(groups, operation, size):
            bodies = 0.0
            for cost in phases:
                demand = cost.demand
                bodies += demand.body(self.rates)
                first = first or cost
                for costed, amount in demand.amounts:
                    name = names.get(costed, costed)
                    like.setdefault(name, costed)
                    amounts[name] = amounts.get(name, 0.0) + amount
                for costed, amount, unit in cost.moved:
                    if self.machine.capacities[costed].unit != "1":  # messages are counted, and move nothing
                        name = names.get(costed, costed)
                        moved[name] = (moved.get(name, (0.0, unit))[0] + amount, unit)
            latency = max(latency, math.fsum(cost.demand.latency for cost in phases))
            floor = max(floor, bodies)
        if first is None:
            return Cost(Demand())
        alone = max([floor, *(amount / self.rates[like[name]] for name, amount in amounts.items())])
        longest = max((amount for name, amount in amounts.items() if self.is_link(like[name])), default=0.0)
        why = first.why
        if self._leaves(groups):
            alone = in_training(alone, longest, operation, self.network)
            inputs = (("flow in a training", precise(alone, "s"), IN_TRAINING),)
            doubts = (Doubt("nccl/large", "known", "exchanges of a training over the network", alone),)
            why = (*why, Term("flow", "flow in a training", inputs, alone, kind="flow", doubts=doubts))
        # what it takes of the GPUs while kernels run is in the part of it that is exposed (`hwsim.models.hiding`)
        demand = Demand(latency, tuple(sorted(amounts.items())), alone, (), longest or 1.0)
        return Cost(
            demand,
            tuple((name, *amount) for name, amount in sorted(moved.items())),
            why,
            choice=first.choice,
            exchange=first.exchange,
        )

    def _phases(
        self, groups: Sequence[Names], operation: Operation, size: float
    ) -> Iterator[tuple[tuple[Cost, ...], Mapping[str, str]]]:
        """Costs of the phases of the collective in each group; of one like an earlier group that one's, and its own names."""
        if operation == "send":
            if self._sends is None:
                from hwsim.workload.training.sends import Sends  # few trainings have stages

                self._sends = Sends(self.machine)
            yield from ((phases, {}) for phases in self._sends.of(groups, size))
            return
        from hwsim.communication.algorithms.ring import Ring
        from hwsim.communication.renaming import renamed
        from hwsim.communication.timing import timed

        key = tuple(groups)
        if key not in self._renamed:
            self._renamed[key] = renamed(self.machine, key)
        costed: dict[int, tuple[Cost, ...]] = {}  # by place of a group: rings
        for place, (members, like) in enumerate(zip(groups, self._renamed[key], strict=True)):
            if like is not None and like.first in costed:
                yield costed[like.first], like.names
                continue
            flows = timed(self.machine, None, operation, members, size)
            phases = tuple(phase.cost for phase in flows.phases)
            if isinstance(flows.algorithm, Ring):
                costed[place] = phases
            yield phases, {}

    def _leaves(self, groups: Sequence[Names]) -> bool:
        """Whether some group spans several nodes that no switch of NVLinks joins."""
        return any(len(set(map(self._joined, members))) > 1 for members in groups)

    def _joined(self, name: str) -> str:
        """The node of a GPU, or the switch of NVLinks that joins it to others."""
        node = self.machine.device(name).node
        if node not in self._nodes:
            from hwsim.communication.placing import leads_out

            self._nodes[node] = leads_out(self.machine, name) or node
        return self._nodes[node]

    def is_link(self, name: str) -> bool:
        """Whether a capacity is a link's."""
        return self.machine.capacities[name].unit == "B"

    def spent(self, cost: Cost, axis: str, exposed: float, part: float = 1.0) -> Spent:
        """A collective inside an op that waits for `exposed` of its time and draws `part` of its amounts."""
        alone = self._alone.get(id(cost))
        if alone is None:  # the cost is kept with it, for its id is its own only while it lives
            alone = self._alone[id(cost)] = cost, cost.demand.alone(self.rates)
        seconds = exposed * alone[1]
        if part <= 0:  # of all ranks' links, for each of the ranks
            return Spent({axis: seconds}, seconds)
        return Spent(
            {axis: seconds},
            seconds,
            (),
            {name: part * amount for name, amount in cost.demand.amounts},
            {name: (part * amount, unit) for name, amount, unit in cost.moved},
        )


def in_training(body: float, size: float, operation: Operation, network: float) -> float:
    """Seconds between nodes, in a training, of a flow that takes `body` seconds by the links; size: bytes on a link."""
    reached = body / (NETWORK * network)
    return reached if operation == "send" or size <= 0 else reached * softened(size, KNEE) / size


def scaled(cost: Cost, part: float, meaning: str = EXPOSED) -> Cost:
    """A part of a collective as a collective that takes and draws that much less.  meaning: of the part, in words."""
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
        why=tuple(_in_part(term, part, meaning) for term in cost.why),
    )


def _in_part(term: Term, part: float, meaning: str) -> Term:
    full = term.formula if term.formula in {name for name, _, _ in term.inputs} else f"({term.formula})"
    inputs = (("part", precise(part, "%"), meaning), *term.inputs)
    return replace(term, formula=f"part x {full}", inputs=inputs, seconds=part * term.seconds)


def concurrent(cost: Cost, others: Sequence[Cost]) -> Cost:
    """An op that represents others too, as the engine shares capacities among them: each draws its own amounts."""
    draws: dict[tuple[str, float], int] = {}
    moved: dict[tuple[str, float], tuple[float, Unit]] = {}  # by draw the natural amount behind it
    for drawing in (cost, *others):
        natural = {name: (amount, unit) for name, amount, unit in drawing.moved}
        for draw in drawing.demand.amounts:
            draws[draw] = draws.get(draw, 0) + 1
            if draw[0] in natural:
                moved.setdefault(draw, natural[draw[0]])
    if all(times == 1 for times in draws.values()) and len(draws) == len(cost.demand.amounts):
        return cost
    amounts = tuple(sorted(draws))
    demand = replace(cost.demand, amounts=amounts, times=(*(draws[draw] for draw in amounts), *(1 for _ in cost.demand.holds)))
    undrawn = [row for row in cost.moved if all(name != row[0] for name, _ in amounts)]
    rows = tuple((draw[0], *moved[draw]) for draw in amounts if draw in moved)
    return replace(cost, demand=demand, moved=(*rows, *undrawn))
