"""The cost of moving keys and values: between GPUs, and to the GPUs of a copy from the host's memory or a disk.

A load of a copy begins when the one before it has ended. What comes from a disk passes to the host first, then all of it to the
GPUs. All GPUs get their parts at once, each over its own links.

**Range**: a load takes a few per cent of the GPUs' memory bandwidth, which iterations do not feel here. What is stored takes the
links in the other direction, and the disk, without slowing loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from hwsim import ticks
from hwsim.demand import Cost, Demand
from hwsim.devices.storage import Asked
from hwsim.engine.issued import IssuedOp
from hwsim.families.serving.actors.costs import Registry, grid
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.records import dataclass


@dataclass(slots=True)
class Links:
    """Costs of handing a prompt over."""

    machine: Machine
    token_bytes: float  # on each GPU that writes answers
    _known: dict[tuple[int, int, int], tuple[Cost, float]] = field(default_factory=dict)

    def cost(self, sources: tuple[str, ...], targets: tuple[str, ...], key: tuple[int, int], tokens: int) -> tuple[Cost, float]:
        """(cost, times of it) of the keys and values of a number of tokens."""
        priced = grid(tokens)
        unit = self._known.get((*key, priced))
        if unit is None:
            unit = self._known[*key, priced] = passed(self.machine, sources, targets, priced * self.token_bytes), 1.0 / priced
        return unit[0], tokens * unit[1]


def passed(machine: Machine, sources: tuple[str, ...], targets: tuple[str, ...], size: float) -> Cost:
    """`size` bytes to each of the targets, from the GPU in its place among the sources."""
    amounts: dict[str, float] = {}
    holds: dict[str, float] = {}
    every = [machine.transfer(sources[at * len(sources) // len(targets)], target, size) for at, target in enumerate(targets)]
    for cost in every:
        for kind, drawn in ((amounts, cost.demand.amounts), (holds, cost.demand.holds)):
            for name, amount in drawn:
                kind[name] = kind.get(name, 0.0) + amount
    demands = [cost.demand for cost in every]
    demand = Demand(
        latency=max(each.latency for each in demands),
        amounts=tuple(sorted(amounts.items())),
        floor=max(each.floor for each in demands),
        holds=tuple(sorted((name, min(1.0, part)) for name, part in holds.items() if name not in amounts)),
        share=size,  # on each capacity it competes as all transfers that meet there
    )
    return Cost(demand, tuple(moved for cost in every for moved in cost.moved), every[0].why)


@dataclass(slots=True)
class Lane:
    """The way to the GPUs of a copy.

    Args:
        block_bytes: bytes of a block of the cache, on each GPU. disk: the second tier, "" without one.
        until: when the last load ends, fs.
    """

    machine: Machine
    host: str
    disk: str
    gpus: tuple[str, ...]
    block_bytes: float
    name: str = ""
    until: int = 0
    _known: dict[tuple[bool, int], tuple[Cost, int, float]] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _label: int = -1
    _queue: int = -1

    def time(self, counts: tuple[int, ...]) -> int:
        """fs of a load of `counts` blocks, a number for each tier."""
        return sum(latency + ticks.femtoseconds(body * size) for (_, latency, body), size in self._stages(counts))  # integers

    def ops(self, counts: tuple[int, ...], registry: Registry) -> list[IssuedOp]:
        """Its ops, one after another."""
        if self._label < 0:
            gpu = self.gpus[0]
            self._label = registry.label(Label("load", "copy", gpu, self.name or "main"))
            self._queue = registry.queue(Queue(f"{self.name}:{gpu}.load" if self.name else f"{gpu}.load", gpu))
        ops = []
        for stage, size in self._stages(counts):
            number = self._numbers.get(id(stage))
            if number is None:
                number = self._numbers[id(stage)] = registry.cost(stage[0])
            ops.append(IssuedOp(self._label, self._queue, number, size))
        return ops

    def writing(self, level: int, blocks: int) -> float:
        """Seconds in which a number of blocks is stored in a tier, if nothing slows that."""
        size, rates = 1024 * self.block_bytes, self.machine.rates()
        if level:
            request = Asked(size=size * len(self.gpus), of_service=True)
            return blocks / 1024 * self.machine.serve(self.disk, "write", request, self.host).demand.body(rates)
        return blocks / 1024 * max(self.machine.transfer(gpu, self.host, size).demand.body(rates) for gpu in self.gpus)

    def drawn(self) -> Mapping[str, float]:
        """The part of each capacity that it draws at full speed, of all stages together."""
        rates, parts = self.machine.rates(), dict[str, float]()
        for cost, _, body in (self._stage(is_disk, 1024) for is_disk in ((False, True) if self.disk else (False,))):
            for name, amount in cost.demand.amounts:
                parts[name] = parts.get(name, 0.0) + amount / (rates[name] * body)
        return parts

    def _stages(self, counts: tuple[int, ...]) -> Iterator[tuple[tuple[Cost, int, float], float]]:
        """(stage, times of it) of a load."""
        for is_disk, blocks in ((True, counts[1] if len(counts) > 1 else 0), (False, sum(counts))):  # integers
            if blocks:
                priced = grid(blocks)
                yield self._stage(is_disk, priced), blocks / priced

    def _stage(self, is_disk: bool, blocks: int) -> tuple[Cost, int, float]:
        stage = self._known.get((is_disk, blocks))
        if stage is None:
            size = blocks * self.block_bytes
            if is_disk:
                cost = self.machine.serve(self.disk, "read", Asked(size=size * len(self.gpus)), self.host)
            else:
                cost = passed(self.machine, (self.host,), self.gpus, size)
                mine = {f"{gpu}.memory" for gpu in self.gpus}
                demand = cost.demand
                kept = (tuple(each for each in drawn if each[0] not in mine) for drawn in (demand.amounts, demand.holds))
                amounts, holds = kept
                cost = replace(cost, demand=replace(demand, amounts=amounts, holds=holds))
            latency, body = ticks.femtoseconds(cost.demand.latency), cost.demand.body(self.machine.rates())
            stage = self._known[is_disk, blocks] = cost, latency, body
        return stage
