"""The network between nodes: the constants that NCCL has over it, stated by the machine or chosen by its NICs and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.communication.measured import measured
from hwsim.devices import Nic
from hwsim.machine import Machine
from hwsim.machine.contents import BoundedCache
from hwsim.machine.libraries.fabric import Fabric
from hwsim.machine.libraries.nccl import Nccl
from hwsim.origins import GIVEN, Origin
from hwsim.spec import SpecError

UNKNOWN: Final = "unknown"  # the middle of the measured networks
_OF_LINKS: Final[Mapping[str, str]] = {"infiniband": "infiniband", "omnipath": "infiniband", "slingshot": "slingshot"}


class NetworkedLibraries(BoundedCache[tuple[int, str, bool], Nccl]):
    """Cached libraries of a machine with the constants of their networks, by identity of the library and network."""


def on_network(machine: Machine, devices: Sequence[str], library: Nccl, *, trees: bool = True) -> Nccl:
    """Return NCCL with the constants of the network between these devices; unchanged within a node.

    Args:
        trees: whether trees of a network of the library of parts are included; those that the machine states are.

    Raises:
        SpecError: the nodes are on different networks.
    """
    other = _elsewhere(machine, devices)
    if other is None:
        return library
    stated = machine.library(devices, ("fabric",))
    if isinstance(stated, Fabric):
        own = trees or stated.sources.get("tree", GIVEN).kind not in ("fitted", "guess")  # sources of the library of parts
        return machine.kept(NetworkedLibraries).known((id(library), f"{id(stated)}", own), _stated, library, stated, own)
    name = network_of(machine, devices[0], other)
    ends = [(sample.name, _elsewhere(machine, (sample.name, devices[0], other))) for sample in machine.samples(devices)]
    names = {network_of(machine, one, two) for one, two in ends if two is not None} - {UNKNOWN}
    if len(names) > 1:
        message = f"the nodes are on different networks: {', '.join(sorted(map(str, names)))}"
        raise SpecError.of(None, message, "state one in the machine: `collectives: {fabric: {use: unknown}}`")
    if name is None:
        return library
    return machine.kept(NetworkedLibraries).known((id(library), name, trees), _over, library, name, trees)


def network_of(machine: Machine, first: str, other: str) -> str | None:
    """Return the name of the network between two devices: `fabric` of the NIC, else the kind of its links; None if ideal."""
    links = machine.route(first, other)
    cards = [machine.devices[link.target].model for link in links if machine.devices[link.target].kind == "nic"]
    nic = next((card for card in cards if isinstance(card, Nic)), None)
    if nic is not None and nic.fabric is not None:
        return nic.fabric
    if machine.ideal or nic is None:
        return None if machine.ideal else UNKNOWN
    ethernet = "tcp" if nic.protocol in ("tcp", "udp") else "roce"
    kinds = {link.kind for link in links}
    return next((name for kind, name in _OF_LINKS.items() if kind in kinds), ethernet if "ethernet" in kinds else UNKNOWN)


def _elsewhere(machine: Machine, devices: Sequence[str]) -> str | None:
    """Return a device of another node than the first: the last one, or else the first found."""
    node = machine.node_of(devices[0])
    return next((name for name in (devices[-1], *devices) if machine.node_of(name) != node), None)


def _stated(library: Nccl, fabric: Fabric, trees: bool) -> Nccl:
    """Return a library over a network that the machine states."""
    return library.over(fabric if trees else _changed(fabric, 0.0, fabric.sources))


def _over(library: Nccl, name: str, trees: bool) -> Nccl:
    """Return a library over a network of the library of parts; its constants count as measured on other machines."""
    fabric: Fabric = measured(Fabric, name)
    known = {key: origin if origin.kind != "fitted" else Origin("default", str(origin), known="device")
             for key, origin in fabric.sources.items()}  # fmt: skip
    return library.over(_changed(fabric, fabric.tree if trees else 0.0, known))


def _changed(fabric: Fabric, tree: float, sources: Mapping[str, Origin]) -> Fabric:
    found = replace(fabric, tree=tree)
    object.__setattr__(found, "sources", sources)
    return found
