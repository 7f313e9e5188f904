"""The cost of KV-cache transfers: between GPUs, and to the GPUs of a replica from host memory or a disk.

The loads of a replica run one after another. Blocks on a disk are first read to host memory, and then all blocks are copied to
the GPUs. All GPUs receive their shares at the same time, each over its own links.

**Range**: loads use a few per cent of the GPUs' memory bandwidth, which does not slow iterations here. Stores use the links in
the other direction, and the disk, and do not slow loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from hwsim import ticks
from hwsim.demand import Cost, Demand
from hwsim.devices.storage import StorageAccesses
from hwsim.engine.issued import IssuedOp
from hwsim.families.serving.actors.costs import Registry, grid
from hwsim.graph.opgraph import Label, Queue
from hwsim.machine import Machine
from hwsim.records import dataclass


@dataclass(slots=True)
class KvTransferCosts:
    """The costs of KV-cache transfers between prefill and decode replicas."""

    machine: Machine
    token_bytes: float  # bytes of a token's KV cache on each decode GPU
    _known: dict[tuple[int, int, int], tuple[Cost, float]] = field(default_factory=dict)

    def cost(self, sources: tuple[str, ...], targets: tuple[str, ...], key: tuple[int, int], tokens: int) -> tuple[Cost, float]:
        """Return (cost, size of the op) of a transfer of the KV cache of `tokens` tokens."""
        priced = grid(tokens)
        unit = self._known.get((*key, priced))
        if unit is None:
            unit = self._known[*key, priced] = (
                transfer_cost(self.machine, sources, targets, priced * self.token_bytes),
                1.0 / priced,
            )
        return unit[0], tokens * unit[1]


def transfer_cost(machine: Machine, sources: tuple[str, ...], targets: tuple[str, ...], size: float) -> Cost:
    """Return the cost to copy `size` bytes to each target GPU from its counterpart among the sources."""
    amounts: dict[str, float] = {}
    holds: dict[str, float] = {}
    count = len(targets)
    costs = [machine.transfer(sources[rank * len(sources) // count], target, size) for rank, target in enumerate(targets)]
    for cost in costs:
        for sums, pairs in ((amounts, cost.demand.amounts), (holds, cost.demand.holds)):
            for name, amount in pairs:
                sums[name] = sums.get(name, 0.0) + amount
    demands = [cost.demand for cost in costs]
    demand = Demand(
        latency=max(demand.latency for demand in demands),
        amounts=tuple(sorted(amounts.items())),
        floor=max(demand.floor for demand in demands),
        holds=tuple(sorted((name, min(1.0, part)) for name, part in holds.items() if name not in amounts)),
        share=size,  # weight in contended capacities: that of all its transfers
    )
    return Cost(demand, tuple(moved for cost in costs for moved in cost.moved), costs[0].why)


@dataclass(slots=True)
class OffloadRoute:
    """The route from the lower tiers to the GPUs of a replica.

    Args:
        machine: machine of the run.
        host: device with the host memory.
        disk: name of the second tier; "" without one.
        gpus: GPUs of the replica.
        block_bytes: bytes of a KV-cache block on each GPU.
        name: name of the service.
        until: end of the last load (fs).
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
        """Return the time of a load (fs) with this number of blocks from each tier."""
        return sum(latency + ticks.femtoseconds(body * size) for (_, latency, body), size in self._stages(counts))  # integers

    def ops(self, counts: tuple[int, ...], registry: Registry) -> list[IssuedOp]:
        """Return the ops of a load, which run one after another."""
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
        """Return the time to store blocks in a tier without contention (s)."""
        size, rates = 1024 * self.block_bytes, self.machine.rates()
        if level:
            request = StorageAccesses(size=size * len(self.gpus), of_service=True)
            return blocks / 1024 * self.machine.serve(self.disk, "write", request, self.host).demand.body(rates)
        return blocks / 1024 * max(self.machine.transfer(gpu, self.host, size).demand.body(rates) for gpu in self.gpus)

    def drawn(self) -> Mapping[str, float]:
        """Return the share of each capacity that loads draw at full speed, summed over disk and host."""
        rates, parts = self.machine.rates(), dict[str, float]()
        for cost, _, body in (self._stage(is_disk, 1024) for is_disk in ((False, True) if self.disk else (False,))):
            for name, amount in cost.demand.amounts:
                parts[name] = parts.get(name, 0.0) + amount / (rates[name] * body)
        return parts

    def _stages(self, counts: tuple[int, ...]) -> Iterator[tuple[tuple[Cost, int, float], float]]:
        """Yield (stage, size of its op) of a load."""
        for is_disk, blocks in ((True, counts[1] if len(counts) > 1 else 0), (False, sum(counts))):  # integers
            if blocks:
                priced = grid(blocks)
                yield self._stage(is_disk, priced), blocks / priced

    def _stage(self, is_disk: bool, blocks: int) -> tuple[Cost, int, float]:
        stage = self._known.get((is_disk, blocks))
        if stage is None:
            size = blocks * self.block_bytes
            if is_disk:
                cost = self.machine.serve(self.disk, "read", StorageAccesses(size=size * len(self.gpus)), self.host)
            else:
                cost = transfer_cost(self.machine, (self.host,), self.gpus, size)
                gpu_memories = {f"{gpu}.memory" for gpu in self.gpus}
                demand = cost.demand
                kept = (tuple(pair for pair in pairs if pair[0] not in gpu_memories) for pairs in (demand.amounts, demand.holds))
                amounts, holds = kept
                cost = replace(cost, demand=replace(demand, amounts=amounts, holds=holds))
            latency, body = ticks.femtoseconds(cost.demand.latency), cost.demand.body(self.machine.rates())
            stage = self._known[is_disk, blocks] = cost, latency, body
        return stage
