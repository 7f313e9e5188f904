"""Costs that a writer of kernels asks for: of kernels, of the host's work, of gradients that are put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from hwsim.communication.flows import Flows
from hwsim.demand import Cost, Demand, Term
from hwsim.devices import Cpu
from hwsim.families.training.workload.plan import Buckets, Plan
from hwsim.families.training.workload.represented import Represented
from hwsim.formats import precise
from hwsim.machine import Machine
from hwsim.models.exchanges import Exchanges
from hwsim.models.layer import Kernel, Layer
from hwsim.models.numbered import Names
from hwsim.ops.exchange import AUTO, chosen
from hwsim.origins import Doubt
from hwsim.records import dataclass
from hwsim.spec import Mistakes

Given = tuple[tuple[str, Cost | None], ...]  # the parts of a cost, with their names
Parts = Sequence[tuple[str, Cost | int | None]]  # the same, or their numbers


@dataclass(slots=True)
class Answers:
    """The costs that a writer asks for, on one machine."""

    plan: Plan
    machine: Machine
    exchanging: Exchanges
    represented: Represented
    _given: dict[tuple[Any, ...], Given] = field(default_factory=dict)

    def kernel(self, kernel: Kernel, device: str) -> Given:
        """The kernels that the library chooses for one."""
        return tuple([("", cost) for cost in self.plan.kinds.on(device).apart(kernel, device)])

    def busy(self, host: str, seconds: float, many: int) -> Given:
        """A core of a host for so long, for each of `many` threads."""
        return (("", busy_cost(self.machine, host, seconds, many)),)

    def summed(self, devices: Names, parameters: float) -> Given:
        """The phases in which gradients are added up."""
        if not isinstance(self.plan.exchange, Buckets):
            raise TypeError("gradients in buckets")
        phases = all_reduce(self.exchanging, self.plan.exchange, devices, parameters).phases
        return tuple((phase.name, self.represented.restricted(phase.cost)) for phase in phases)

    def of(self, asked: tuple[Any, ...]) -> Given:
        """By the name of a question and what is asked."""
        kind, *what = asked
        given: Given = getattr(self, kind)(*what)
        return given

    def numbers(self, *asked: Any) -> Given:
        """Name and cost of each part."""
        if asked[0] == "kernel":
            return self.of(asked)
        if asked not in self._given:
            self._given[asked] = self.of(asked)
        return self._given[asked]


def filled(layers: Sequence[Layer], buckets: Buckets) -> Iterator[tuple[int, float]]:
    """(index of the layer that fills it, parameters) of each bucket.  layers: in the order of the backward pass."""
    parameters: float = 0
    for at, layer in enumerate(layers):
        parameters += layer.parameters
        if parameters and (parameters * buckets.bytes >= buckets.size or at == len(layers) - 1):
            yield at, parameters
            parameters = 0


def all_reduce(exchanging: Exchanges, buckets: Buckets, devices: Names, parameters: float) -> Flows:
    """The sum of the gradients of one bucket over devices.

    Raises:
        CannotCollect, NoRoute, UnknownName: as by any collective.
    """
    stated = buckets.algorithm
    algorithm = None if stated is None or stated.value == AUTO else chosen(stated, Mistakes())
    return exchanging.flows("all-reduce", devices, parameters * buckets.bytes, algorithm, named=stated is not None)


def all_reduced(exchanging: Exchanges, buckets: Buckets, devices: Names, layers: Sequence[Layer]) -> Iterator[Flows]:
    """The sums of all buckets of a model's layers."""
    learning = [layer for layer in reversed(layers) if layer.parameters]
    return (all_reduce(exchanging, buckets, devices, parameters) for _, parameters in filled(learning, buckets))


def busy_cost(machine: Machine, host: str, seconds: float, many: int) -> Cost | None:
    """A core of a host for so long, for each of `many` threads that do the same; without a host the time alone; None for none.

    How long a framework takes is as unsure as its host, whatever core it has, and whoever else is there.
    """
    if seconds <= 0:
        return None
    model = machine.device(host).model if host else None
    given, unsure = "given, on one core", (Doubt("launch/host", "known", "the framework's host", seconds),)
    line = Term("time", given, ((given, precise(seconds, "s"), "workload"),), seconds, kind="stated", doubts=unsure)
    demand = model.busy(host, seconds).demand if isinstance(model, Cpu) else Demand(floor=seconds)
    drawn = len(demand.amounts) + len(demand.holds)
    return Cost(demand if many == 1 else replace(demand, times=(many,) * drawn), why=(line,))
