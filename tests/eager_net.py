"""An oracle for machines: all links made at once and looked up in dicts, all ways found by a search over the whole."""

from __future__ import annotations

from hwsim.devices import Nic, Switch
from hwsim.machine import Link, Machine
from hwsim.machine.capacity_numbers import TransferDraws
from hwsim.machine.contents import Routing
from hwsim.machine.layout import Layout
from hwsim.machine.nic_assignment import NicAssignment
from hwsim.machine.routes import Routes


class EagerNet:
    """As `hwsim.machine.net.Net`."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.layout: Layout = machine._routes.net.layout
        self.next: dict[str, dict[str, list[Link]]] = {}
        for link in machine.links:
            self.next.setdefault(link.source, {}).setdefault(link.target, []).append(link)

    def degree(self, name: str) -> int:
        return len(self.next.get(name, {}))

    def forwards(self, name: str) -> bool:
        return self.machine.devices[name].forwards

    def wait(self, name: str) -> float:
        model = self.machine.devices[name].model
        return model.latency if isinstance(model, Nic | Switch) else 0.0

    def neighbours(self, name: str, routing: Routing | None = None) -> list[str]:
        return [target for target in self.next.get(name, {}) if self.between(name, target, routing)]

    def near(self, name: str) -> list[str]:
        return [target for target, links in self.next.get(name, {}).items() if any(not link.model.network for link in links)]

    def between(self, source: str, target: str, routing: Routing | None = None) -> tuple[Link, ...]:
        links = self.next.get(source, {}).get(target, [])
        return tuple(link for link in links if routing in (None, link.routing))

    def among(self, source: str, names: set[str], routing: Routing | None = None) -> list[str]:
        return [name for name in self.neighbours(source, routing) if name in names]


class _Nothing:
    """No host is told from another."""

    def layers(self, a: str, b: str, *, own: bool = False) -> None:
        return None


def eager_routes(machine: Machine) -> Routes:
    """The ways of a machine, each by a search of its own."""
    net = EagerNet(machine)
    routes = Routes(net, NicAssignment(net))  # type: ignore[arg-type]
    routes.hosts = _Nothing()  # type: ignore[assignment]
    return routes


def drawn_of(machine: Machine, draws: TransferDraws, pair: int) -> dict[str, float]:
    """What a pair draws, by capacity."""
    numbers = draws.capacity[draws.first[pair] : draws.first[pair + 1]].tolist()
    amounts = [amount for _, amount in draws.costs[draws.shape[pair]].demand.amounts]
    return dict(zip(map(machine.capacity_name, numbers), amounts, strict=True))
