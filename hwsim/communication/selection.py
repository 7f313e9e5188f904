"""`algorithm: auto`: the algorithm that NCCL chooses on a machine, its time, and the runner-up.

With measured constants (`Nccl`), the fastest estimate is chosen and is the result. Without them, NCCL's own tables choose, and
the machine's links determine the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from hwsim.communication.algorithms import Algorithm
from hwsim.communication.algorithms.direct import DirectExchange
from hwsim.communication.algorithms.double_tree import DoubleTree
from hwsim.communication.algorithms.hierarchical import Hierarchical
from hwsim.communication.algorithms.in_network import InNetwork
from hwsim.communication.algorithms.pairwise import Pairwise
from hwsim.communication.algorithms.ring import RingAlgorithm
from hwsim.communication.flows import Flows, Task
from hwsim.communication.measured import as_measured, by_default, generation
from hwsim.communication.placement import has_in_network_reduction, place
from hwsim.communication.plan import CannotCollect, Operation, RankGroup
from hwsim.communication.tuning import NVLINK, OPERATIONS, PCIE, Generation, Hardware, TuningCandidate, candidates
from hwsim.demand import Choice
from hwsim.devices import Nic
from hwsim.links.nvlink import Nvlink
from hwsim.links.xgmi import Xgmi
from hwsim.machine import Machine
from hwsim.machine.libraries.nccl import Nccl, NcclEstimate, RingBandwidth
from hwsim.machine.libraries.overheads import Overheads
from hwsim.records import dataclass

_NODES: Final = 8  # minimum number of nodes for merging equal nodes
_LONG: Final = 1e9  # bytes of a message whose link latency is negligible
RINGS: Final = RingAlgorithm(found=True, both=True)
_BUILT: Final[Mapping[str, Algorithm]] = {
    "ring": RINGS,
    "tree": DoubleTree(),
    "nvls": InNetwork(),
    "direct": DirectExchange(),
    "pairwise": Pairwise(),
}
# Trees over nodes: each NCCL channel leaves the node from a different GPU, and a chain within the node feeds all of them.
_OVER_NODES: Final = Hierarchical(pieces=8)
_GENERATIONS: Final[Mapping[int, Generation]] = {1: "volta", 2: "volta", 3: "ampere", 4: "hopper", 5: "blackwell"}
_DATA: Final[Mapping[str, float]] = {"ll": 0.5, "ll128": 0.92, "simple": 1.0}  # payload share of the wire bytes, as in `tuning`


@dataclass(frozen=True, slots=True)
class ChosenCollective:
    """A collective with the choice of its algorithm."""

    flows: Flows
    choice: Choice


def choose(task: Task, library: Nccl | None = None) -> ChosenCollective:
    """Return NCCL's best option for these devices and this size.

    Raises:
        CannotCollect, NoRoute, UnknownName: as in `cost`.
    """
    ranks = place(task.machine, DirectExchange(), task.devices)
    task = task.among(ranks.parties)
    if len(task.devices) < 2:
        return ChosenCollective(task.flows(DirectExchange()), Choice("nothing to do", 0.0, "", 0.0))
    if library is None:
        return _tuned_choice(task, ranks.group)
    best, second = first_two(estimates(task, library, ranks.group))
    algorithm = algorithm_of_method(best.method, ranks.group, meshed=is_mesh(task.machine, task.devices))
    flows = as_measured(task, algorithm, library, best, max(ranks.group.sizes))
    return ChosenCollective(flows, chosen_among(library, best, second, len(task.devices), task.size))


def estimates(task: Task, library: Nccl, group: RankGroup, ring: Algorithm = RINGS) -> tuple[NcclEstimate, ...]:
    """Return the options of a library, its choice first: the fastest estimate, or the choice of NCCL's own tables.

    The fastest estimate also applies if the tables do not cover the machine (nodes without NICs).
    """
    carried = bus(task.machine, task.devices, task.operation, ring)
    if task.operation == "all-to-all" and library.sends is None and (default := by_default(task.machine, task.devices)):
        library = replace(library, sends=default.sends)  # not measured on this machine
    offered = library.estimates(task.operation, group, task.size, carried)
    if library.choice == "fastest" or len(offered) < 2 or task.operation not in OPERATIONS:
        return offered
    if any(offer.method.startswith("nvls") for offer in offered) and not _switch_adds(task.machine, task.devices[0]):
        offered = tuple(offer for offer in offered if not offer.method.startswith("nvls"))
    kinds = {(offer.method, offer.protocol) for offer in offered}
    expected: _Expected = {key: candidate for key, candidate in _expected(task, group).items() if key in kinds}
    ordered = sorted(
        offered, key=lambda offer: (_seconds(expected.get((offer.method, offer.protocol)), task.size), offer.seconds)
    )
    if len(group.sizes) > 1 or not expected:
        return tuple(ordered)
    return (_limit_time(task, library, group, carried, expected, ordered[0]), *ordered[1:])


_Expected = Mapping[tuple[str, str], TuningCandidate]


def _expected(task: Task, group: RankGroup) -> _Expected:
    """Return latency and bandwidth of each (algorithm, protocol) in NCCL's tables; empty if they do not cover the machine."""
    try:
        weighed = candidates(hardware(task.machine, task.devices, group), task.operation, group, task.size)
    except CannotCollect:
        return {}
    return {(candidate.method, candidate.protocol): candidate for candidate in weighed}


def _seconds(candidate: TuningCandidate | None, size: float) -> float:
    return math.inf if candidate is None else candidate.seconds(size)


def _limit_time(
    task: Task, library: Nccl, group: RankGroup, carried: RingBandwidth, expected: _Expected, best: NcclEstimate
) -> NcclEstimate:
    """Return the estimate, limited by the time of a longer message right after the tables switch to the next protocol.

    The tables switch too late in some cases (to Simple on Blackwell, to LL128 over PCIe). Measured times jump there, too, but a
    longer message is never faster.
    """
    size, taken, limit = task.size, expected[best.method, best.protocol], math.inf
    while True:
        switches = []
        for key, next_one in expected.items():
            if next_one.bandwidth > taken.bandwidth and next_one.latency > taken.latency:
                switch_size = (next_one.latency - taken.latency) / (1 / taken.bandwidth - 1 / next_one.bandwidth)
                switches += [(switch_size, key)] if switch_size > size else []
        if not switches:
            return best if best.seconds <= limit else replace(best, body=max(0.0, limit - best.latency))
        size, key = min(switches)
        taken = expected[key]
        after = library.estimates(task.operation, group, size, carried)
        limit = min([limit, *(estimate.seconds for estimate in after if (estimate.method, estimate.protocol) == key)])


def _switch_adds(machine: Machine, name: str) -> bool:
    """Return whether a GPU's NVLinks lead to a switch with in-network reduction."""
    return any(
        isinstance(link.model, Nvlink) and has_in_network_reduction(machine, link.target) for link in machine.links_from(name)
    )


def first_two(found: Sequence[NcclEstimate]) -> tuple[NcclEstimate, NcclEstimate | None]:
    """Return the chosen estimate and the runner-up."""
    return found[0], found[1] if len(found) > 1 else None


class BusCache(dict[tuple[object, ...], RingBandwidth]):
    """Cached ring bandwidths (B/s), by devices (or their positions in a node), operation and ring."""


def bus(machine: Machine, devices: Sequence[str], operation: Operation = "all-reduce", ring: Algorithm = RINGS) -> RingBandwidth:
    """Return the bandwidths (B/s) of rings over these devices, according to their links."""
    inside = machine.inside(devices) if len({machine.node_of(name) for name in devices}) == 1 else None
    buses, key = machine.kept(BusCache), (tuple(devices) if inside is None else inside, operation, ring)
    if key not in buses:
        buses[key] = _bus(machine, devices, operation, ring)
    return buses[key]


def _bus(machine: Machine, devices: Sequence[str], operation: Operation, ring: Algorithm) -> RingBandwidth:
    ranks = place(machine, DirectExchange(), devices)
    names, sizes = ranks.parties, ranks.group.sizes
    if operation == "send":
        rate, link = _rate(machine, names, DirectExchange(), "send")
        return RingBandwidth(rate, rate, link, link)
    inside, link = math.inf, "nvlink"
    for node in _kinds(machine, [names[start : start + count] for start, count in zip(ranks.group.starts, sizes, strict=True)]):
        around = DirectExchange() if is_mesh(machine, node) else ring
        inside, link = min((inside, link), _rate(machine, node, around, "all-gather"))
    if len(sizes) == 1:
        return RingBandwidth(inside, link=link)
    everyone = operation == "all-to-all"
    across, wire = _rate(machine, names, DirectExchange() if everyone else ring, operation if everyone else "all-gather")
    return RingBandwidth(inside, across, link, wire)


def _kinds(machine: Machine, nodes: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return the nodes with several ranks that differ in their devices or in the routes between them."""
    several = [names for names in nodes if len(names) > 1]
    if len(several) < _NODES:
        return several
    by_place: dict[object, Sequence[str]] = {}
    for names in several:
        inside = machine.inside(names)
        by_place.setdefault(tuple(names) if inside is None else inside, names)
    return list(by_place.values())


def _rate(machine: Machine, names: Sequence[str], algorithm: Algorithm, operation: Operation) -> tuple[float, str]:
    """Return (bandwidth per rank in B/s, kind of link that limits it)."""
    seconds, kind = Task(machine, operation, names, _LONG).longest_of_first(algorithm, _link_word)
    moved = _LONG if operation == "send" else (len(names) - 1) / len(names) * _LONG
    return moved / seconds, _pcie_path(machine, names) if kind == "bus" else kind


def _link_word(kind: str) -> str:
    """Return the name of a kind of link: "nvlink", "bus" or "network"."""
    return "bus" if kind in ("pcie", "upi", "xgmi") else kind if kind == "nvlink" else "network"


def _pcie_path(machine: Machine, names: Sequence[str]) -> str:
    """Return the PCIe path between neighbours: switches only ("pcie"), one CPU ("host"), or two ("sockets")."""
    max_hosts = 0
    for a, b in zip(names, (*names[1:], names[0]), strict=True):
        hosts = sum(machine.devices[link.target].kind == "cpu" for link in machine.route(a, b))
        max_hosts = max(max_hosts, hosts)
    return ("pcie", "host", "sockets")[min(max_hosts, 2)]


def is_mesh(machine: Machine, names: Sequence[str]) -> bool:
    """Return whether GPUs are linked by xGMI: each to all others, and the rings of RCCL together use every link."""
    return generation(machine, names[0]) == Xgmi.kind


def algorithm_of_method(method: str, group: RankGroup, *, meshed: bool = False) -> Algorithm:
    """Return the algorithm of an NCCL method; in a mesh, sends to all others use the same links as rings over all of them."""
    if meshed and method == "ring" and len(group.sizes) == 1:
        return _BUILT["direct"]
    return _OVER_NODES if method in ("tree", "nvls-tree") and len(group.sizes) > 1 else _BUILT[method]


def chosen_among(library: Nccl, best: NcclEstimate, second: NcclEstimate | None, ranks: int, size: float) -> Choice:
    """Return the choice among measured estimates."""
    channels = library.channels_of(best.method, best.protocol, ranks, size)
    if second is None:
        return Choice(_name(best), best.seconds, channels=channels)
    return Choice(_name(best), best.seconds, _name(second), second.seconds, channels)


def _tuned_choice(task: Task, group: RankGroup) -> ChosenCollective:
    """Return the choice of NCCL's own tables, timed on the links of the machine."""
    if task.operation not in OPERATIONS:
        flows = task.flows(DirectExchange())
        return ChosenCollective(flows, Choice("direct", flows.alone(task.machine.rates()), "", 0.0))
    gpus = hardware(task.machine, task.devices, group)
    best, second, *_ = candidates(gpus, task.operation, group, task.size)
    flows = task.flows(algorithm_of_method(best.method, group), Overheads(start=best.latency, efficiency=_DATA[best.protocol]))
    channels = gpus.nvls_channels(group) if best.method.startswith("nvls") else gpus.channels(group)
    return ChosenCollective(
        flows, Choice(_name(best), best.seconds(task.size), _name(second), second.seconds(task.size), channels.count)
    )


def _name(candidate: TuningCandidate | NcclEstimate) -> str:
    return f"{candidate.method}, {candidate.protocol}"


def hardware(machine: Machine, devices: Sequence[str], group: RankGroup) -> Hardware:
    """Return the hardware that NCCL detects: a GPU's NVLinks by generation, or PCIe; and the NICs of its node.

    Different GPUs use what all of them have, because the ranks agree on the minimum of their graphs (NCCL, src/init.cc).
    """
    seen = [_hardware(machine, sample.name, group) for sample in machine.samples(devices)]
    if len(seen) == 1:
        return seen[0]
    return Hardware(
        min((gpu.generation for gpu in seen), key=list(_GENERATIONS.values()).index),
        min(gpu.inside for gpu in seen),
        "nvlink" if all(gpu.link == "nvlink" for gpu in seen) else "pcie",
        min(gpu.nics for gpu in seen),
        min(gpu.nic for gpu in seen),
        nvls=all(gpu.nvls for gpu in seen),
    )


def _hardware(machine: Machine, first: str, group: RankGroup) -> Hardware:
    """Return the hardware as one GPU sees it."""
    links = machine.links_from(first)
    wires = [(link, link.model) for link in links if isinstance(link.model, Nvlink)]
    node = machine.device(first).node
    models = [machine.device(name).model for name in machine.devices_of("nic", node)]
    rates = [model.bandwidth for model in models if isinstance(model, Nic)]
    nic = min(rates, default=0.0) / 1e9
    if not wires:
        pcie = max((link.bandwidth for link in links if link.kind == "pcie"), default=PCIE * 1e9) / 1e9
        return Hardware("ampere", pcie * PCIE / 15.75, "pcie", len(rates), nic)
    chips = _GENERATIONS[max((model.gen or 2) for _, model in wires)]
    count = sum(link.count * model.links for link, model in wires)  # integers
    nvls = _switch_adds(machine, first) and chips in ("hopper", "blackwell") and max(group.sizes) > 1
    return Hardware(chips, count * NVLINK[chips], "nvlink", len(rates), nic, nvls=nvls)
