"""Costs of the exchanges of a training: phases of one collective, and one demand of all groups that run the same one at once.

Between nodes, a collective reaches the share of the NIC bandwidth observed in published trainings (`hwsim.models.cluster`):

    seconds of a flow between nodes = seconds by the links / (NETWORK x the framework's factor) x softened(bytes, KNEE) / bytes

or the time of the library's protocol, if that is longer: the lower limit applies, they do not multiply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from hwsim.communication import ALGORITHMS, timing
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.timing import timed
from hwsim.demand import Cost, Demand, Term, Unit, knee_bytes
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import Operation
from hwsim.models.capacity_amounts import Capacities, CapacityAmounts, Names, NumberedCost, largest
from hwsim.models.cluster import KNEE, NETWORK, routed_bytes
from hwsim.models.layer import Exchange
from hwsim.ops.exchange import AUTO
from hwsim.origins import Case, UncertaintySource
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.communication.algorithms import Algorithm
    from hwsim.communication.equivalence import RingLook, RingLooks
    from hwsim.communication.flows import Flows
    from hwsim.models.sends import SendCosts

TREES: Final = False  # NETWORK was fitted with the rings of all-reduces, on machines whose library measured no trees
IN_TRAINING: Final = "part of the cards' rate that collectives reach in published trainings"
EXPOSED: Final = "of its time, exposed: the rest overlaps kernels"
HIDDEN: Final = "of its time, overlapped with kernels"
BUCKETS: Final = "times that a bucket of weights goes round, one after another"


Uneven = tuple[float, float, int]  # `Exchange.received`, `sent` and `copies`
EVEN: Final[Uneven] = (1.0, 1.0, 0)


class _CollectiveFlow(NamedTuple):
    """One collective.

    Args:
        costs: costs of its phases.
        rows: amounts that all phases draw.
        latency: latency of all phases (s).
        body: time of all phases without latency (s).
        by_links: body if only the links limited it, under any protocol (s).
    """

    costs: tuple[Cost, ...]
    rows: CapacityAmounts
    latency: float
    body: float
    by_links: float


@dataclass(slots=True)
class CollectiveCosts:
    """The collectives on a machine, each costed once.

    Args:
        network: NIC efficiency of the framework, relative to other frameworks.
        by_library: confidence in the library that runs them over PCIe; None for other links.
    """

    machine: Machine
    network: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    by_library: Case | None = None
    known: Capacities = field(init=False)
    _named: dict[tuple[tuple[Names, ...], Operation, float, Uneven], Cost] = field(default_factory=dict)
    _costs: dict[tuple[tuple[Names, ...], Operation, float, Uneven], NumberedCost] = field(default_factory=dict)
    _rings: dict[tuple[object, Operation, float, Uneven], tuple[_CollectiveFlow, RingLook]] = field(default_factory=dict)
    _alone: dict[int, tuple[Cost, float]] = field(default_factory=dict)  # cost id -> cost and its seconds
    _flows: dict[tuple[object, ...], Flows] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    _looked_at: dict[tuple[Names, ...], list[RingLook | None]] = field(default_factory=dict)
    _look: RingLooks | None = None
    _summed: dict[Operation, CapacityAmounts] = field(default_factory=dict)  # latest amounts
    _sends: SendCosts | None = None

    def __post_init__(self) -> None:
        self.rates = self.rates or self.machine.rates()
        self.known = Capacities(self.machine)

    def flows(
        self, operation: Operation, devices: Sequence[str], size: float, algorithm: Algorithm | None, *, named: bool
    ) -> Flows:
        """Return the phases of one collective.

        Args:
            algorithm: algorithm; None: the choice of the machine's library.
            named: whether the workload names the algorithm; else the default for these devices applies.

        Raises:
            CannotCollect, NoRoute, UnknownName: the machine does not link the devices.
        """

        key = algorithm, operation, tuple(devices), size, named
        if key not in self._flows:
            if not named:
                usual = timing.default_algorithm(self.machine, operation, devices)
                algorithm = None if usual == AUTO else ALGORITHMS[usual]
            self._flows[key] = timing.timed(self.machine, algorithm, operation, devices, size, trees=TREES)
        return self._flows[key]

    def of(self, item: Exchange, groups: Sequence[Names]) -> Cost:
        """Return the cost of a layer's exchange in each group; errors as in `cost`."""
        return self.cost(groups, item.operation, item.size, (item.received, item.sent, item.copies))

    def cost(self, groups: Sequence[Names], operation: Operation, size: float, uneven: Uneven = EVEN) -> Cost:
        """Return the cost of one collective in each group, as one demand.

        Args:
            size: bytes of one rank's whole array.
            uneven: bytes that the first rank of a group receives, and sends, relative to the average; copies of its tokens.

        Raises:
            CannotCollect, NoRoute: the machine does not link the devices.
        """
        key = tuple(groups), operation, size, uneven
        if key not in self._named:
            self._named[key] = self.numbered(groups, operation, size, uneven).named(self.machine)
        return self._named[key]

    def numbered(self, groups: Sequence[Names], operation: Operation, size: float, uneven: Uneven = EVEN) -> NumberedCost:
        """Return the cost with numbered amounts; a collective among all replicas draws from many capacities."""
        key = tuple(groups), operation, size, uneven
        if key not in self._costs:
            self._costs[key] = self._combined(*key)
        return self._costs[key]

    def _combined(self, groups: tuple[Names, ...], operation: Operation, size: float, uneven: Uneven) -> NumberedCost:
        flows = [flow for flow in self._timed(groups, operation, size, uneven) if flow.costs]
        rows = CapacityAmounts.joined([flow.rows for flow in flows]).summed(self._summed.get(operation))
        self._summed[operation] = rows  # equal stages have equal amounts
        if not flows:
            return NumberedCost(rows, Cost(Demand()))
        seconds = rows.amounts / self.known.rates(rows.numbers)
        alone = max(*(flow.body for flow in flows), largest(seconds))
        links = self.known.carry_bytes(rows.numbers)
        longest, seconds = largest(rows.amounts[links]), seconds[links]
        slowest = largest(rows.amounts[links][seconds == largest(seconds)])
        first = flows[0].costs[0]
        why = first.why
        if self._spans_nodes(groups):
            by_links = max(*(flow.by_links for flow in flows), largest(seconds))
            alone = max(alone, in_training(by_links, longest, operation, self.network))
            inputs = (("flow in a training", precise(alone, "s"), IN_TRAINING),)
            doubts = (UncertaintySource("nccl/large", "known", "exchanges of a training over the network", alone),)
            why = (*why, Term("flow", "flow in a training", inputs, alone, kind="flow", doubts=doubts))
        # the exposed share includes the slowdown of concurrent kernels (`hwsim.models.overlap`)
        latency = max(flow.latency for flow in flows)
        rest = Cost(Demand(latency, (), alone, (), slowest or 1.0), (), why, choice=first.choice, exchange=first.exchange)
        return NumberedCost(rows, rest)

    def _timed(self, groups: tuple[Names, ...], operation: Operation, size: float, uneven: Uneven) -> Iterator[_CollectiveFlow]:
        """Yield the collective in each group. A group equivalent to a timed one reuses its flow over its own capacities."""
        if operation == "send":
            if self._sends is None:
                from hwsim.models.sends import SendCosts  # imported on demand: few trainings have stages

                self._sends = SendCosts(self.machine)
            yield from (self._flow(phases) for phases in self._sends.of(groups, size))
            return

        self.look_at([groups])
        for members, look in zip(groups, self._looked_at[groups], strict=True):
            key = None if look is None else (look.key, operation, size, uneven)
            if look is not None and key in self._rings:
                flow = self._map_flow(*self._rings[key], look)
                if flow is not None:
                    yield flow
                    continue
            weights = _parts(tuple(map(self._domain, members)), uneven)
            sent = size * math.fsum(weights) / len(weights) if uneven[2] else size
            flows = timed(self.machine, None, operation, members, sent, weights=weights, trees=TREES)
            flow = self._flow(tuple(phase.cost for phase in flows.phases))
            if look is not None and key is not None and (look.is_complete or isinstance(flows.algorithm, RingAlgorithm)):
                self._rings.setdefault(key, (flow, look))
            yield flow

    def look_at(self, needed: Sequence[tuple[Names, ...]]) -> None:
        """Prepare groups that are needed later; many at once are faster."""
        new = list(dict.fromkeys(groups for groups in needed if groups not in self._looked_at))
        if self._look is None:
            from hwsim.communication.equivalence import RingLooks  # imported on demand: a training on one GPU needs no exchange

            self._look = RingLooks(self.machine)
        looks = iter(self._look.of([members for groups in new for members in groups]))
        self._looked_at |= {groups: list(islice(looks, len(groups))) for groups in new}

    def _flow(self, costs: tuple[Cost, ...]) -> _CollectiveFlow:
        body, by_links, latency = 0.0, 0.0, math.fsum(cost.demand.latency for cost in costs)
        for cost in costs:
            body += cost.demand.body(self.rates)
            by_links += replace(cost.demand, floor=0.0).body(self.rates)
        return _CollectiveFlow(costs, self.known.rows(costs), latency, body, by_links)

    def _map_flow(self, flow: _CollectiveFlow, look: RingLook, target: RingLook) -> _CollectiveFlow | None:
        """Return the flow over the capacities of an equivalent ring; None if the flow leaves its ring."""
        if look is target:
            return flow
        from hwsim.communication.equivalence import renamed

        numbers = look.to(target, flow.rows.numbers)
        if numbers is None:
            return None
        self.known.alike(numbers, flow.rows.numbers)
        first, *others = flow.costs
        first = replace(first, why=renamed(self.machine, first.why, look.numbers, target.numbers))
        return flow._replace(costs=(first, *others), rows=CapacityAmounts(numbers, flow.rows.amounts, flow.rows.moved))

    def _spans_nodes(self, groups: tuple[Names, ...]) -> bool:
        """Return whether a group spans several nodes that no NVLink switch joins."""
        return any(self._domain(name) != self._domain(members[0]) for members in groups for name in members[1:])

    def _domain(self, name: str) -> str:
        """Return the node of a GPU, or the NVLink switch that joins it to other nodes."""
        node = self.machine.node_of(name)
        if node not in self._nodes:
            from hwsim.communication.placement import joining_switch

            self._nodes[node] = joining_switch(self.machine, name) or node
        return self._nodes[node]

    def link_rate(self, name: str) -> float:
        """Return the bandwidth of a link (B/s); 0 for another capacity."""
        capacity = self.machine.capacities[name]
        return capacity.rate if capacity.unit == "B" else 0.0

    def alone(self, cost: Cost) -> float:
        """Return the seconds of an exchange without contention."""
        alone = self._alone.get(id(cost))
        if alone is None:  # the cost is stored too, because its id is unique only while it lives
            alone = self._alone[id(cost)] = cost, cost.demand.alone(self.rates)
        return alone[1]


def _parts(nodes: Sequence[str], uneven: Uneven) -> tuple[float, ...]:
    """Return the relative bytes from each rank to each other rank, one row per sender; empty if all are equal.

    With copies, they are relative to equal parts of the tokens, each counted once (`routed_bytes`).

    Args:
        nodes: node of each rank.

    >>> _parts("ab", (1.5, 1.0, 0)), _parts("ab", EVEN), _parts("aabb", (1.0, 1.0, 1))[:4]
    ((1.5, 0.5, 1.5, 0.5), (), (2.0, 2.0, 1.0, 1.0))
    """
    if uneven == EVEN:
        return ()
    *firsts, copies = uneven
    ranks, local = len(nodes), list(nodes).count(nodes[0])
    received, sent = ((first, *(((ranks - first) / (ranks - 1),) * (ranks - 1))) for first in firsts)
    inside, across = (ranks * part for part in routed_bytes(copies, ranks, local)) if copies else (1.0, 1.0)
    return tuple(
        row * column * (inside if node == other else across)
        for row, node in zip(sent, nodes, strict=True)
        for column, other in zip(received, nodes, strict=True)
    )


def in_training(body: float, size: float, operation: Operation, network: float) -> float:
    """Return the seconds, between nodes in a training, of a flow that takes `body` seconds by the links.

    Args:
        size: bytes on a link.
    """
    reached = body / (NETWORK * network)
    return reached if operation == "send" or size <= 0 else reached * knee_bytes(size, KNEE) / size


def scaled(cost: Cost, part: float, meaning: str = EXPOSED) -> Cost:
    """Return a cost scaled by `part`, in time and in amounts.

    Args:
        meaning: text that explains the factor.
    """
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
        why=tuple(_scale_term(term, part, meaning) for term in cost.why),
    )


def _scale_term(term: Term, part: float, meaning: str) -> Term:
    full = term.formula if term.formula in {name for name, _, _ in term.inputs} else f"({term.formula})"
    name, number = ("part", precise(part, "%")) if part <= 1 else ("times", precise(part, "1"))
    inputs = ((name, number, meaning), *term.inputs)
    doubts = tuple(doubt._replace(seconds=part * doubt.seconds) for doubt in term.doubts)
    return replace(term, formula=f"{name} x {full}", inputs=inputs, seconds=part * term.seconds, doubts=doubts)


def concurrent_cost(cost: Cost, others: Sequence[Cost]) -> Cost:
    """Return the cost of an op that represents several ops, with the amounts of all of them, because capacities are shared."""
    draws: dict[tuple[str, float], int] = {}
    moved: dict[tuple[str, float], tuple[float, Unit]] = {}  # draw -> natural amount
    for drawing in (cost, *others):
        natural = {name: (amount, unit) for name, amount, unit in drawing.moved}
        for draw in drawing.demand.amounts:
            draws[draw] = draws.get(draw, 0) + 1
            if draw[0] in natural:
                moved.setdefault(draw, natural[draw[0]])
    if all(times == 1 for times in draws.values()) and len(draws) == len(cost.demand.amounts):
        return cost
    amounts = tuple(
        sorted(draws, key=lambda draw: draw[0])
    )  # own amounts of a capacity first: energy pairs them with its computing
    demand = replace(cost.demand, amounts=amounts, times=(*(draws[draw] for draw in amounts), *(1 for _ in cost.demand.holds)))
    undrawn = [row for row in cost.moved if all(name != row[0] for name, _ in amounts)]
    rows = tuple((draw[0], *moved[draw]) for draw in amounts if draw in moved)
    return replace(cost, demand=demand, moved=(*rows, *undrawn))
