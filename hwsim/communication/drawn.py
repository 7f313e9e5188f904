"""The amounts that a step of a collective draws, by name: what a step, a phase and its cost are made of.

`hwsim.communication.numbered` does the same by number, for scores of ranks and more. Both are a `Ledger`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from hwsim.communication.addends import step_of
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.placing import Placed, all_of_kind, handling
from hwsim.communication.rounds import Round
from hwsim.demand import Cost, Demand, Term, Unit
from hwsim.devices import Cpu, Gpu, Memory
from hwsim.machine import Machine
from hwsim.machine.libraries.overheads import Overheads
from hwsim.records import dataclass

SEVERAL = 32  # ranks from which one look at all pairs is quicker than a look at each

Waits = tuple[float, float]  # seconds before a step's first byte arrives: the library's, the links'
Row = tuple[str, float, float]  # capacity, amount drawn from it, bytes behind the amount
UNITS: Final[tuple[Unit, ...]] = ("1", "B", "s")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One collective: an algorithm among devices, bytes of one rank's array, what the library adds."""

    machine: Machine
    placed: Placed
    size: float
    overheads: Overheads

    def is_wire(self, capacity: str) -> bool:
        """Whether the capacity is one direction of a link: its amounts are bytes."""
        return self.machine.capacities[capacity].unit == "B"

    def alike(self) -> bool:
        """Whether the amounts of pairs are worth asking for in columns: many ranks and no helper, all GPUs or all CPUs."""
        names = self.placed.parties
        if len(names) < SEVERAL or isinstance(self.placed.algorithm, InNetwork):
            return False
        first = self.machine.device(names[0])
        is_one_kind = isinstance(first.model, Cpu | Gpu) and len(names) == self.placed.group.ranks
        return is_one_kind and all_of_kind(self.machine, names, first.kind)

    def read_again(self, receiver: str, size: float) -> tuple[str, float] | None:
        """(capacity, amount) that a receiver draws to read its own data of that size before it adds; None if it has no memory."""
        model = self.machine.device(receiver).model
        return model.copy_bytes(receiver, size) if size > 0 and isinstance(model, Cpu | Gpu | Memory) else None


class Line(NamedTuple):
    """The capacity of its unit that takes longest. moved: bytes behind the amount."""

    unit: Unit
    seconds: float
    capacity: str
    moved: float


class Amounts(Protocol):
    """Amounts of a step or a phase, with the latency before them and the seconds that they take at least."""

    latency: float
    floor: float

    def add(self, other: Self, times: float) -> None: ...


A = TypeVar("A", bound=Amounts)


class Ledger(Protocol[A]):
    """A way to keep amounts.

    longest: seconds of the capacity that takes longest, and a word for its kind of link ("" of a device's).
    on_slowest_link: amount on the link that takes longest, of equal ones the largest; 0 without links.
    """

    def nothing(self) -> A: ...
    def step(self, stage: Round) -> tuple[A, Waits]: ...
    def seconds(self, amounts: A) -> float: ...
    def slowest(self, total: A) -> list[Line]: ...
    def busy(self, total: A) -> float: ...
    def longest(self, total: A, word: Callable[[str], str]) -> tuple[float, str]: ...
    def on_slowest_link(self, total: A) -> float: ...
    def cost(self, total: A, share: float, why: tuple[Term, ...]) -> Cost: ...


@dataclass(slots=True)
class Drawn:
    """Amounts, and the bytes behind them, by capacity."""

    amounts: dict[str, float]
    moved: dict[str, float]
    latency: float = 0.0
    floor: float = 0.0

    def add(self, other: Drawn, times: float) -> None:
        for mine, theirs in ((self.amounts, other.amounts), (self.moved, other.moved)):
            for name, amount in theirs.items():
                mine[name] = mine.get(name, 0.0) + times * amount


@dataclass(frozen=True, slots=True)
class Names:
    """Amounts by name."""

    exchange: Exchange

    def nothing(self) -> Drawn:
        return Drawn({}, {})

    def step(self, stage: Round) -> tuple[Drawn, Waits]:
        exchange, overheads = self.exchange, self.exchange.overheads
        step = step_of(exchange.machine, exchange.placed, stage) if exchange.size > 0 else None
        if step is None:
            return self._one_by_one(stage)
        return Drawn(*step.drawn(exchange.size, overheads.efficiency)), step.waits(overheads)

    def seconds(self, amounts: Drawn) -> float:
        return max(amounts.floor, self.busy(amounts))

    def busy(self, total: Drawn) -> float:
        capacities = self.exchange.machine.capacities
        return max((amount / capacities[name].rate for name, amount in total.amounts.items()), default=0.0)

    def longest(self, total: Drawn, word: Callable[[str], str]) -> tuple[float, str]:
        machine = self.exchange.machine
        taken = [(amount / machine.capacities[name].rate, name) for name, amount, _ in self._rows(total)]
        seconds, binding = max(taken, key=lambda row: row[0], default=(0.0, ""))
        return seconds, word(machine.link_kind(binding))

    def slowest(self, total: Drawn) -> list[Line]:
        capacities = self.exchange.machine.capacities
        slowest: dict[Unit, Line] = {}
        for name, amount, moved in self._rows(total):
            capacity = capacities[name]
            seconds = amount / capacity.rate
            before = slowest.get(capacity.unit)
            if seconds > (before.seconds if before is not None else 0.0):
                slowest[capacity.unit] = Line(capacity.unit, seconds, name, moved)
        return sorted(slowest.values())

    def on_slowest_link(self, total: Drawn) -> float:
        capacities = self.exchange.machine.capacities
        links = (
            (amount / capacities[name].rate, amount) for name, amount in total.amounts.items() if self.exchange.is_wire(name)
        )
        return max(links, default=(0.0, 0.0))[1]

    def _rows(self, amounts: Drawn) -> list[Row]:
        return [(name, amount, amounts.moved.get(name, 0.0)) for name, amount in sorted(amounts.amounts.items())]

    def cost(self, total: Drawn, share: float, why: tuple[Term, ...]) -> Cost:
        return cost_by_name(self.exchange, (row for row in self._rows(total) if row[1] > 0), total, share, why)

    def _one_by_one(self, stage: Round) -> tuple[Drawn, Waits]:
        exchange, overheads, size = self.exchange, self.exchange.overheads, self.exchange.size
        drawn = Drawn({}, {})
        amounts, moved, wires = drawn.amounts, drawn.moved, dict[str, bool]()
        once = isinstance(exchange.placed.algorithm, InNetwork)  # a switch adds the bytes from a link, and copies those to one
        overhead = route = 0.0
        for a, b, share, cost in self._transfers(stage):
            demand = cost.demand
            step = overheads.of_step(exchange.placed.across(a, b))
            if step + demand.latency > overhead + route:
                overhead, route = step, demand.latency
            drawn.floor = max(drawn.floor, demand.floor)
            for (name, amount), (_, natural, unit) in zip(demand.amounts, cost.moved, strict=True):  # both by name
                is_wire = wires.get(name)
                if is_wire is None:
                    is_wire = wires[name] = exchange.is_wire(name)
                amount = amount / overheads.efficiency if is_wire else amount
                natural = natural if unit != "1" else 0.0
                if is_wire and once:
                    amounts[name], moved[name] = max(amounts.get(name, 0.0), amount), max(moved.get(name, 0.0), natural)
                else:
                    amounts[name], moved[name] = amounts.get(name, 0.0) + amount, moved.get(name, 0.0) + natural
            if stage.reduce and (read := exchange.read_again(b, share * size)) is not None:
                drawn.add(Drawn(dict([read]), {read[0]: share * size}), 1.0)
        return drawn, (overhead, route)

    def _transfers(self, stage: Round) -> Iterator[tuple[str, str, float, Cost]]:
        """Ends, share and cost of each pair."""
        machine, placed = self.exchange.machine, self.exchange.placed
        for source, target, share in stage.pairs:
            a, b = placed.parties[source], placed.parties[target]
            yield a, b, share, machine.transfer(a, b, share * self.exchange.size, handling(machine, placed.algorithm, a, b))


def cost_by_name(exchange: Exchange, rows: Iterable[Row], total: Amounts, share: float, why: tuple[Term, ...]) -> Cost:
    """The cost of a phase that draws these rows, by name and none of nothing, and holds what its kernels do."""
    machine, placed, compute = exchange.machine, exchange.placed, exchange.overheads.compute
    ranks = placed.parties[: placed.group.ranks] if compute > 0 else ()
    gpus = sorted(name for name in ranks if machine.device(name).kind == "gpu")
    rows = list(rows)
    demand = Demand(
        latency=total.latency,
        amounts=tuple([(name, amount) for name, amount, _ in rows]),
        floor=total.floor,
        holds=tuple((f"{name}.compute", compute) for name in gpus),
        share=share,
    )
    return Cost(demand, moved=tuple([(name, moved, "B") for name, _, moved in rows if moved > 0]), why=why)
