"""Placement of a collective on a machine: the devices that are its ranks, its servers and its switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.parameter_server import ParameterServer
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.plan import CannotCollect, RankGroup
from hwsim.communication.ring_search import find_rings, nvlink_edges
from hwsim.devices import Switch
from hwsim.machine import Machine
from hwsim.machine.contents import BoundedCache, within
from hwsim.machine.libraries.nccl import Nccl
from hwsim.machine.transfer_options import PLAIN as COPIES
from hwsim.machine.transfer_options import TransferOptions
from hwsim.records import dataclass

_MANY: Final = 64  # devices above which placements are not cached and kinds are sampled
HANDLINGS: Final = COPIES, TransferOptions(by="sm")  # copies; kernels of a collective between two GPUs


@dataclass(frozen=True, slots=True)
class PlacedAlgorithm:
    """An algorithm on devices.

    Args:
        parties: device of every participant, ranks first.
        joined: NVLink switch that joins each node to others; empty if only networks join nodes.
    """

    algorithm: Algorithm
    group: RankGroup
    parties: tuple[str, ...]
    joined: Mapping[str, str] = field(default_factory=dict, compare=False)

    def across(self, a: str, b: str) -> bool:
        """Return whether a network lies between two devices: they are in different nodes, which no NVLink switch joins."""
        (node, _), (other, _) = within(a), within(b)
        return node != other and (not self.joined or self.joined.get(node, node) != self.joined.get(other, other))


def place(machine: Machine, algorithm: Algorithm, devices: Sequence[str]) -> PlacedAlgorithm:
    """Return the placement: ranks node by node, in the given order within a node; the first device is rank 0.

    Raises:
        CannotCollect: a duplicate device, or no switch or server that the algorithm requires.
        UnknownName, NoRoute: the machine does not link the devices.
    """
    if len(devices) > _MANY:
        return _place(machine, algorithm, devices)
    return machine.kept(Places).known((algorithm, tuple(devices)), _place, machine, algorithm, devices)


class Places(BoundedCache[tuple[Algorithm, tuple[str, ...]], PlacedAlgorithm]):
    """Cached placements of algorithms on few devices."""


def _place(machine: Machine, algorithm: Algorithm, devices: Sequence[str]) -> PlacedAlgorithm:
    if len(set(devices)) < len(devices):
        raise CannotCollect("duplicate device in `among`", "list each device once")
    nodes: dict[str, list[str]] = {}
    for name in devices:
        nodes.setdefault(machine.node_of(name), []).append(name)
    if joined := domains(machine, nodes):
        by_switch: dict[str, list[str]] = {}
        for node, names in nodes.items():
            by_switch.setdefault(joined[node], []).extend(names)
        nodes = by_switch
    ranks = tuple(name for node in nodes.values() for name in node)
    group = RankGroup(len(ranks), tuple(len(node) for node in nodes.values()) if len(nodes) > 1 else ())
    helpers: tuple[str, ...] = ()
    match algorithm:
        case ParameterServer(on="beside"):
            helpers = _servers(machine, algorithm, ranks)
            algorithm = replace(algorithm, servers=len(helpers))
        case InNetwork() if len(ranks) > 1:
            helpers = (_switch(machine, ranks, algorithm),)
        case RingAlgorithm(found=True, orders=()):
            algorithm = found_rings(machine, algorithm, ranks, group)
        case _:
            pass
    return PlacedAlgorithm(algorithm, group, (*ranks, *helpers), joined)


def domains(machine: Machine, nodes: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the NVLink switch that joins the GPUs of each node to other nodes; empty if there is none."""
    if len(nodes) < 2 or not joining_switch(machine, next(iter(nodes.values()))[0]):
        return {}
    return {node: joining_switch(machine, names[0]) or node for node, names in nodes.items()}


def joining_switch(machine: Machine, name: str) -> str:
    """Return the switch outside of a GPU's node that its NVLinks lead to; "" if there is none."""
    node = machine.node_of(name)
    for link in machine.links_from(name):
        if link.kind == "nvlink" and machine.devices[link.target].kind == "switch" and machine.node_of(link.target) != node:
            return link.target
    return ""


def all_of_kind(machine: Machine, devices: Sequence[str], kind: str) -> bool:
    """Return whether all devices are of a kind; of many devices, one sample of each part is checked, which is faster."""
    if len(devices) > _MANY:
        return all(sample.kind == kind for sample in machine.samples(devices))
    return all(machine.device(name).kind == kind for name in devices)


def moved_by_kernels(machine: Machine, placed: PlacedAlgorithm) -> NDArray[np.bool_]:
    """Return whether kernels move the bytes of each party: true for GPUs, except with a parameter server."""
    if isinstance(placed.algorithm, ParameterServer):
        return np.zeros(len(placed.parties), np.bool_)
    if all_of_kind(machine, placed.parties, "gpu"):
        return np.ones(len(placed.parties), np.bool_)
    return np.array([machine.device(name).kind == "gpu" for name in placed.parties], np.bool_)


def handling(machine: Machine, algorithm: Algorithm, a: str, b: str) -> TransferOptions:
    """Return the options of the transfer: collective kernels between two GPUs, copies for a parameter server."""
    peers = machine.device(a).kind == machine.device(b).kind == "gpu"
    return HANDLINGS[peers and not isinstance(algorithm, ParameterServer)]


def found_rings(machine: Machine, ring: RingAlgorithm, devices: Sequence[str], group: RankGroup) -> RingAlgorithm:
    """Return the rings that the NVLinks of a node allow, or rings over all nodes that use every NIC.

    Without NVLinks between neighbours, it is one ring in rank order and in one direction.
    """
    if len(group.sizes) > 1:
        orders = _node_rings(group, meshed=_is_meshed(machine, devices[: group.sizes[0]]))
        return replace(ring, orders=orders, both=False)
    rings = find_rings(len(devices), nvlink_edges(machine, devices))
    if not rings:
        return replace(ring, both=False)
    return replace(ring, orders=tuple(found.order for found in rings), widths=tuple(float(found.width) for found in rings))


def _is_meshed(machine: Machine, devices: Sequence[str]) -> bool:
    """Return whether an even number of devices of a node are fully connected, without a switch."""
    others = set(devices)
    return len(devices) > 2 and len(devices) % 2 == 0 and all(
        others - {name} <= {link.target for link in machine.links_from(name)} for name in devices
    )  # fmt: skip


def _node_rings(group: RankGroup, *, meshed: bool = False) -> tuple[tuple[int, ...], ...]:
    """Return a ring for each rank of a node, which enters or leaves every node at that rank; () for nodes of unequal size.

    Args:
        meshed: the devices of a node are fully connected; rings then zigzag, so that each link carries one ring per direction
            (Walecki's paths: Lucas, Récréations mathématiques, volume 2, 1892).

    >>> _node_rings(RankGroup(6, (3, 3)))
    ((0, 1, 2, 5, 4, 3), (1, 2, 0, 3, 5, 4), (2, 0, 1, 4, 3, 5))
    >>> _node_rings(RankGroup(8, (4, 4)), meshed=True)[:2]
    ((0, 1, 3, 2, 6, 7, 5, 4), (1, 2, 0, 3, 7, 4, 6, 5))
    """
    if len(set(group.sizes)) > 1:
        return ()
    size = group.sizes[0]
    steps = [(step + 1) // 2 * (1 if step % 2 else -1) if meshed else step for step in range(size)]
    orders = []
    for entry in range(size):
        order: list[int] = []
        for node, start in enumerate(group.starts):
            places = [(entry + step) % size for step in steps]
            order += [start + place for place in (places if node % 2 == 0 else reversed(places))]
        orders.append(tuple(order))
    return tuple(orders)


def _servers(machine: Machine, algorithm: ParameterServer, ranks: Sequence[str]) -> tuple[str, ...]:
    node = machine.device(ranks[0]).node
    patterns = algorithm.at or ("cpu",)
    single = len(patterns) == 1 and _means_one(machine, patterns[0], node)
    servers = (machine.one(patterns[0], node),) if single else machine.select(patterns, node)
    if set(servers) & set(ranks):
        raise CannotCollect(
            "`at` lists a worker as a parameter server, but `on: beside` requires separate devices",
            "on: workers",
        )
    if algorithm.servers is not None and algorithm.servers > len(servers):
        raise CannotCollect(f"{algorithm.servers} servers, but only {len(servers)} devices in `at`", "list more devices in `at`")
    return servers[: algorithm.servers]


def _means_one(machine: Machine, pattern: str, node: str) -> bool:
    """Return whether a name matches one device or one group of sockets."""
    return len(machine.select(pattern, node)) == 1 or any(group.family == pattern for group in machine.groups.values())


def _switch(machine: Machine, ranks: Sequence[str], algorithm: InNetwork) -> str:
    """Return the switch that reduces, the last one on the route from the first to the farthest rank that every rank reaches.

    The route contains only switches and NICs. GPUs that load and store through the switch (nvls) reach it without NICs.
    """
    route = max((machine.route(ranks[0], rank) for rank in ranks[1:]), key=len)
    passed = [link.target for link in route if machine.devices[link.target].kind == "switch"]
    between = ("switch", "nic") if algorithm.by == "sharp" else ("switch",)
    shared = [
        name for name in reversed(passed[: 1 + len(passed) // 2]) if all(_reaches(machine, rank, name, between) for rank in ranks)
    ]
    if not shared:
        raise CannotCollect("no switch connects these devices", "in-network collectives require a common switch")
    measured = algorithm.by == "nvls" and _sums_measured(machine, ranks)
    adding = next((name for name in shared if measured or has_in_network_reduction(machine, name)), None)
    if adding is None:
        switches = f"switch '{shared[0]}' does" if len(shared) == 1 else f"switches {', '.join(shared)} do"
        raise CannotCollect(
            f"{switches} not support in-network reduction", "use nvswitch-h100 or quantum-hdr, or `reduces: true`"
        )
    return adding


def has_in_network_reduction(machine: Machine, name: str) -> bool:
    """Return whether the device is a switch with in-network reduction."""
    model = machine.device(name).model
    return isinstance(model, Switch) and model.reduces


def _sums_measured(machine: Machine, ranks: Sequence[str]) -> bool:
    """Return whether the machine's NCCL was measured with NVLS, so that its switch reduces."""
    library = machine.library(ranks, ("nccl", "overheads")) if machine.libraries else None
    return isinstance(library, Nccl) and library.nvls > 0


def _reaches(machine: Machine, rank: str, switch: str, kinds: Sequence[str]) -> bool:
    """Return whether only devices of these kinds lie between a rank and a switch."""
    return all(machine.devices[link.target].kind in kinds for link in machine.route(rank, switch)[:-1])
