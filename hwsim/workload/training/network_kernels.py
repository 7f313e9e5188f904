"""Kernels of a network as costs on a GPU: chosen as the estimate chooses them, and as long.

A convolution is as long as its product divided by what libraries reach of one (`hwsim.models.convolving`); what its kernel
draws of the GPU's compute capacity is that time, what it draws of its memory the bytes it moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from hwsim.demand import Cost, Term
from hwsim.devices import Work
from hwsim.models.kernel_times import KernelTimes, TimedKernel
from hwsim.models.layer import Kernel
from hwsim.records import dataclass
from hwsim.units import precise

_NAME = "gpu"  # of the one GPU that costs are worked out for; every other GPU of its kind has the same under its own name


@dataclass(slots=True)
class Costs:
    """What the kernels of layers cost on GPUs of one kind."""

    kernels: KernelTimes
    _known: dict[tuple[Work, float], Cost] = field(default_factory=dict)
    _placed: dict[tuple[Work, float, str], Cost] = field(default_factory=dict)
    _chosen: dict[Kernel, tuple[TimedKernel, ...]] = field(default_factory=dict)

    def chosen(self, op: Kernel) -> tuple[TimedKernel, ...]:
        """The kernels that the library takes for it."""
        found = self._chosen.get(op)
        if found is None:
            found = self._chosen[op] = self.kernels.choose(op)
        return found

    def of(self, timed: TimedKernel, device: str) -> Cost:
        """What one of them costs on the GPU of that name."""
        key = timed.work, timed.slower
        found = self._placed.get((*key, device))
        if found is None:
            if key not in self._known:
                self._known[key] = lengthened(self.kernels.gpu.compute(_NAME, timed.work), timed.slower, self.kernels.rates)
            found = self._placed[(*key, device)] = renamed(self._known[key], device)
        return found

    def seconds(self, op: Kernel) -> float:
        """Of all kernels that are chosen for it."""
        return self.kernels.seconds(op)


def lengthened(cost: Cost, slower: float, rates: Mapping[str, float]) -> Cost:
    """The same kernel, `slower` times as long: it has the arithmetic units for longer, and moves no more bytes."""
    if abs(slower - 1.0) < 1e-12:
        return cost
    demand = cost.demand
    seconds = demand.alone(rates) * slower
    latency = min(demand.latency, seconds)
    body = seconds - latency
    amounts = []
    for name, amount in demand.amounts:
        most = body * rates[name]
        wanted = most if name.endswith(".compute") and slower > 1.0 else amount * min(slower, 1.0)
        amounts.append((name, min(wanted, most)))
    longest = max((amount / rates[name] for name, amount in amounts), default=0.0)
    told = Term(
        "convolution",
        "product x times",
        (("product", precise(demand.alone(rates), "s"), "the same product of matrices"),
         ("times", precise(slower, "1"), "what libraries reach of it: models/convolving")),
        body,
        f"{_NAME}.compute",
    )  # fmt: skip
    waits = tuple(term for term in cost.why if term.kind == "latency")
    floor = body if longest < body * (1 - 1e-12) else 0.0
    return replace(cost, demand=replace(demand, latency=latency, amounts=tuple(amounts), floor=floor), why=(*waits, told))


def renamed(cost: Cost, device: str) -> Cost:
    """The same on a GPU of another name."""

    def name(capacity: str) -> str:
        return device + capacity.removeprefix(_NAME) if capacity.startswith(f"{_NAME}.") else capacity

    demand = cost.demand
    return replace(
        cost,
        demand=replace(
            demand,
            amounts=tuple((name(capacity), amount) for capacity, amount in demand.amounts),
            holds=tuple((name(capacity), part) for capacity, part in demand.holds),
        ),
        moved=tuple((name(capacity), amount, unit) for capacity, amount, unit in cost.moved),
        why=tuple(replace(term, capacity=name(term.capacity)) for term in cost.why),
    )
