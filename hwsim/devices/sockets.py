"""Several equal CPU sockets addressed as one: what a bare `cpu` means on a node that has two.

Work and its memory traffic are spread evenly over the sockets, as a scheduler and interleaved
pages would.  Error: not yet measured; traffic between the sockets is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hwsim.demand import Capacity, Cost
from hwsim.devices.cpu import Cpu
from hwsim.devices.work import Work


@dataclass(frozen=True, slots=True)
class Sockets:
    """The cores and memories of `names`, all of the same `model`."""

    kind: ClassVar[str] = "cpu"
    model: Cpu
    names: tuple[str, ...]

    @property
    def cores(self) -> int:
        return self.model.cores * len(self.names)

    def capacities(self, name: str) -> tuple[Capacity, ...]:  # noqa: ARG002 (as Cpu)
        """None of its own: those of its sockets."""
        return tuple(each for socket in self.names for each in self.model.capacities(socket))

    def compute(self, name: str, work: Work) -> Cost:
        """As `Cpu.compute`, on one CPU with the cores and the memory bandwidth of all."""
        return self._spread(name, self._whole().compute(name, work))

    def busy(self, name: str, seconds: float) -> Cost:
        """One core for a known time, any one of the sockets'."""
        return self._spread(name, self._whole().busy(name, seconds))

    def _whole(self) -> Cpu:
        n = len(self.names)
        memory = replace(self.model.memory, bandwidth=self.model.memory.bandwidth * n)
        flop = {dtype: peak * n for dtype, peak in self.model.flop.items()}
        told = dict(self.model.sources)
        for key in ("cores", "memory.bandwidth", *(f"flop.{dtype}" for dtype in flop)):
            if key in told:
                told[key] = f"{n} sockets together; {told[key]}"
        return self.model.like(cores=self.cores, flop=flop, memory=memory, sources=told)

    def _spread(self, name: str, cost: Cost) -> Cost:
        """Core-seconds are divided among the sockets; memory time is the same on each."""
        n = len(self.names)
        parts = {f"{name}.cores": (".cores", n), f"{name}.memory": (".memory", 1)}
        amounts = [
            (socket + parts[capacity][0], amount / parts[capacity][1])
            for capacity, amount in cost.demand.amounts
            for socket in self.names
        ]
        moved = [(socket + parts[capacity][0], work / n, unit) for capacity, work, unit in cost.moved for socket in self.names]
        why = tuple(replace(term, capacity=self._first(name, term.capacity)) for term in cost.why)
        return replace(cost, demand=replace(cost.demand, amounts=tuple(sorted(amounts))), moved=tuple(sorted(moved)), why=why)

    def _first(self, name: str, capacity: str) -> str:
        """The first socket's capacity, which stands for those of all."""
        return capacity.replace(name, self.names[0], 1) if capacity else ""
