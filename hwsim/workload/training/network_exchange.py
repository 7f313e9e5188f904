"""What GPUs of a training exchange: sums of gradients, parts of activations, parameters of servers.

Every exchange is one op a phase of its algorithm, and those of one group follow each other.  Servers update the parameters
they keep between push and pull.  Where copies are asynchronous, each pushes and pulls for itself: a server updates for one
after the other, in the order they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hwsim.demand import Cost, Demand
from hwsim.devices import Cpu, Gpu, Sockets, Work
from hwsim.graph.builder import GraphBuilder, OpRef
from hwsim.machine import Machine
from hwsim.machine.libraries.operations import CannotCollect, Operation
from hwsim.models.architectures.unit_layers import UPDATED
from hwsim.ops.exchange import AUTO, chosen
from hwsim.records import dataclass
from hwsim.spec import Mistakes
from hwsim.workload.programs import MAIN
from hwsim.workload.training.network_plan import NetworkPlan

if TYPE_CHECKING:
    from hwsim.collectives.algorithms import Algorithm
    from hwsim.collectives.algorithms.parameter_server import ParameterServer
    from hwsim.collectives.flows import Flows


@dataclass(slots=True)
class Exchanges:
    """Adds the exchanges of a training to its graph."""

    plan: NetworkPlan
    machine: Machine
    builder: GraphBuilder
    name: str
    _flows: dict[tuple[object, ...], Flows] = field(default_factory=dict)
    _queues: dict[tuple[str, ...], int] = field(default_factory=dict)
    _pools: dict[str, int] = field(default_factory=dict)

    def among(
        self, operation: Operation, devices: Sequence[str], amount: float, ready: Sequence[OpRef], name: str
    ) -> list[OpRef]:
        """A collective as the machine's library does it; its last op.

        Raises:
            CannotCollect, NoRoute, UnknownName: as of any collective.
        """
        return self._phases(self._timed(None, operation, devices, amount), devices, ready, name)

    def summed(self, devices: Sequence[str], parameters: int, ready: Sequence[OpRef]) -> list[OpRef]:
        """The gradients of so many parameters of all copies put together; what the copies wait for.

        Raises:
            CannotCollect, NoRoute, UnknownName: as of any collective.
        """
        plan = self.plan
        amount = parameters * plan.software.gradient
        if plan.by == "all-reduce":
            algorithm = (
                chosen(plan.algorithm, Mistakes()) if plan.algorithm is not None and plan.algorithm.value != AUTO else None
            )
            named = plan.algorithm is not None
            return self._phases(self._timed(algorithm, "all-reduce", devices, amount, named=named), devices, ready, "gradients")
        flows = self._timed(self._servers(devices), "all-reduce", devices, amount, named=True)
        push, pull = flows.phases[:1], flows.phases[1:]
        here = list(ready)
        for phase in push:
            here = [self._op("gradients: push", phase.cost, devices, here)]
        servers = self._at(devices)
        here = [self._updated(server, parameters / len(servers), here) for server in servers]
        for phase in pull:
            here = [self._op("parameters: pull", phase.cost, devices, here)]
        return here

    def pushed(self, device: str, parameters: int, ready: Sequence[OpRef]) -> list[OpRef]:
        """One copy's gradients to the servers, their updates, and the parameters back."""
        servers = self._at([device])
        away = tuple(each for each in servers if each != device)
        amount = parameters * self.plan.software.gradient * len(away) / len(servers)
        here = list(ready)
        flows = self._timed(_beside(away), "all-reduce", [device], amount, named=True) if away else None
        for phase in flows.phases[:1] if flows else ():
            here = [self._op("gradients: push", phase.cost, [device], here)]
        here = [self._updated(server, parameters / len(servers), here, alone=True) for server in servers]
        for phase in flows.phases[1:] if flows else ():
            here = [self._op("parameters: pull", phase.cost, [device, "pull"], here)]
        return here

    def demands(self) -> list[Demand]:
        """Of all exchanges so far."""
        return [phase.cost.demand for flows in self._flows.values() for phase in flows.phases]

    # ---- servers

    def _at(self, devices: Sequence[str]) -> tuple[str, ...]:
        """The devices that keep the parameters.

        Raises:
            UnknownName: there are none of those names.
        """
        node = self.machine.device(devices[0]).node
        found: list[str] = []
        for each in self.plan.servers:
            try:
                found.append(self.machine.one(each, node))
            except ValueError:  # several: all of them
                found += self.machine.select([each], node)
        return tuple(dict.fromkeys(found))

    def _servers(self, devices: Sequence[str]) -> ParameterServer:
        """As an algorithm among the copies: on the first of them, or beside them."""
        from hwsim.collectives.algorithms.parameter_server import ParameterServer

        servers = self._at(devices)
        own = [each for each in servers if each in devices]
        if not own:
            return _beside(servers)
        if len(own) < len(servers) or tuple(own) != tuple(devices[: len(own)]):
            raise CannotCollect(
                f"the servers {', '.join(servers)} are neither the first of the GPUs nor beside them",
                f"such as {devices[0]}, all of the GPUs, or cpu",
            )
        return ParameterServer(servers=len(own))

    def _updated(self, server: str, parameters: float, ready: Sequence[OpRef], *, alone: bool = False) -> OpRef:
        """A server updates parameters with what it has been pushed.  alone: of one copy, others at another time."""
        moved = parameters * UPDATED[self.plan.optimizer]
        model = self.machine.device(server).model
        work = Work(reads=0.6 * moved, writes=0.4 * moved)
        cost = model.compute(server, work) if isinstance(model, Cpu | Gpu | Sockets) else None
        pool = -1
        if alone:
            pool = self._pools.get(server, -1)
            if pool < 0:
                pool = self._pools[server] = self.builder.pool(f"{server}: parameters", 1)
        return self.builder.op(
            "update", kind="optimizer", device=server, program=self.name, cost=cost, take=pool, give=pool, after=ready
        )

    # ---- flows

    def _timed(
        self, algorithm: Algorithm | None, operation: Operation, devices: Sequence[str], amount: float, *, named: bool = False
    ) -> Flows:
        from hwsim.collectives import ALGORITHMS, timing

        key = (algorithm, operation, tuple(devices), amount, named)
        found = self._flows.get(key)
        if found is None:
            if not named:
                usual = timing.usual(self.machine, operation, devices)
                algorithm = None if usual == AUTO else ALGORITHMS[usual]
            found = self._flows[key] = timing.timed(self.machine, algorithm, operation, devices, amount)
        return found

    def _phases(self, flows: Flows, devices: Sequence[str], ready: Sequence[OpRef], name: str) -> list[OpRef]:
        here = list(ready)
        for phase in flows.phases:
            shown = name if len(flows.phases) == 1 else f"{name}: {phase.name}"
            here = [self._op(shown, phase.cost, devices, here)]
        return here

    def _op(self, name: str, cost: Cost, group: Sequence[str], ready: Sequence[OpRef]) -> OpRef:
        key = tuple(group)
        queue = self._queues.get(key)
        if queue is None:
            told = f"{group[0]}.comm" if len(group) == 1 else f"{group[0]}.comm {len(self._queues)}"
            queue = self._queues[key] = self.builder.queue(told if self.name == MAIN else f"{self.name}:{told}", group[0])
        return self.builder.op(name, kind="exchange", device=group[0], program=self.name, cost=cost, queue=queue, after=ready)


def _beside(servers: Sequence[str]) -> ParameterServer:
    from hwsim.collectives.algorithms.parameter_server import ParameterServer

    return ParameterServer(on="beside", at=tuple(servers))
