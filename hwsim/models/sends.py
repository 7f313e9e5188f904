"""Point-to-point sends of many GPU pairs at once.

One send of all sends over equivalent routes is timed. The others draw the same amounts from the capacities of their own routes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hwsim.communication.placement import HANDLINGS, all_of_kind, joining_switch
from hwsim.communication.timing import library_of, timed
from hwsim.demand import Cost, Demand
from hwsim.machine import Machine
from hwsim.machine.libraries.nccl import Nccl
from hwsim.models.capacity_amounts import Names


class _TimedSend(NamedTuple):
    """A timed send.

    Args:
        alike: objects whose id is part of its key.
        drawn: capacities on its route, ordered by name.
    """

    alike: tuple[Cost, Nccl]
    drawn: tuple[str, ...]
    costs: tuple[Cost, ...]

    def over(self, drawn: Sequence[str]) -> tuple[Cost, ...]:
        """Return the costs over a route with other capacities."""
        renamed = dict(zip(self.drawn, drawn, strict=True))
        costs = []
        for cost in self.costs:
            demand = cost.demand
            amounts = tuple([(renamed[capacity], amount) for capacity, amount in demand.amounts])
            moved = tuple([(renamed[capacity], amount, unit) for capacity, amount, unit in cost.moved])
            drawn_there = Demand(demand.latency, amounts, demand.floor, (), demand.share)
            costs.append(Cost(drawn_there, moved, cost.why, choice=cost.choice, exchange=cost.exchange))
        return tuple(costs)


class SendCosts:
    """The costs of the phases of sends on a machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._timed: dict[tuple[object, ...], _TimedSend] = {}

    def of(self, pairs: Sequence[Names], size: float) -> Iterator[tuple[Cost, ...]]:
        """Yield the costs of each pair's phases, without the compute units that kernels hold.

        Raises:
            CannotCollect, NoRoute: the machine does not link the devices.
        """
        machine = self._machine
        if size <= 0 or len(pairs) < 2 or not all_of_kind(machine, [name for pair in pairs for name in pair], "gpu"):
            yield from (self._solo_costs(pair, size) for pair in pairs)
            return
        draws = machine.draws([a for a, _ in pairs], [b for _, b in pairs], size, HANDLINGS[True])
        routes = draws.costs
        for number, pair in enumerate(pairs):
            low, high = draws.first[number : number + 2].tolist()
            names = tuple(map(machine.capacity_name, draws.capacity[low:high].tolist()))
            library, route = library_of(machine, pair), routes[int(draws.shape[number])]
            if not isinstance(library, Nccl):
                yield self._solo_costs(pair, size)
                continue
            # the order of names decides which of equally slow links is reported, so it is part of the key
            order = tuple(sorted(range(len(names)), key=names.__getitem__))
            key = id(route), id(library), self._is_across(*pair), order
            if key in self._timed:
                yield self._timed[key].over(names)
                continue
            costs = self._solo_costs(pair, size)
            drawn_names = {name for cost in costs for name, _ in cost.demand.amounts}
            if drawn_names <= set(names) and not any(term.capacity for cost in costs for term in cost.why):
                self._timed[key] = _TimedSend((route, library), names, costs)
            yield costs

    def _solo_costs(self, pair: Names, size: float) -> tuple[Cost, ...]:
        return tuple(phase.cost for phase in timed(self._machine, None, "send", pair, size).phases)

    def _is_across(self, a: str, b: str) -> bool:
        if self._machine.node_of(a) == self._machine.node_of(b):
            return False
        switch = joining_switch(self._machine, a)
        return not switch or switch != joining_switch(self._machine, b)
