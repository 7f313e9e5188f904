"""`algorithm: auto`: what NCCL would do on a machine, how long that takes, and what came second.

With measured numbers (`Nccl`) the fastest of its estimates is taken, and its time is the answer.  Without, NCCL's own
tables choose, and the machine's links give the time of what they chose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from hwsim.collectives.algorithms import Algorithm, Direct, DoubleTree, Hierarchical, InNetwork, Ring
from hwsim.collectives.measured import as_measured
from hwsim.collectives.placing import adds, place
from hwsim.collectives.plan import Group, Operation
from hwsim.collectives.steady import Flows, cost, longest
from hwsim.collectives.tuning import NVLINK, OPERATIONS, PCIE, Candidate, Generation, Hardware, candidates
from hwsim.demand import Choice
from hwsim.devices import Nic
from hwsim.links.nvlink import Nvlink
from hwsim.machine import Machine
from hwsim.machine.libraries.nccl import Bus, Estimate, Nccl
from hwsim.machine.libraries.overheads import Overheads
from hwsim.records import dataclass

_LONG: Final = 1e9  # bytes that no latency of a link shows in
RINGS: Final = Ring(found=True, both=True)
_BUILT: Final[Mapping[str, Algorithm]] = {
    "ring": RINGS,
    "tree": DoubleTree(),
    "nvls": InNetwork(),
    "direct": Direct(),
}
# Trees over nodes: NCCL's channels leave each node by another GPU, and the chain in the node feeds them all.
_OVER_NODES: Final = Hierarchical(pieces=8)
_GENERATIONS: Final[Mapping[int, Generation]] = {1: "volta", 2: "volta", 3: "ampere", 4: "hopper", 5: "blackwell"}
_DATA: Final[Mapping[str, float]] = {"ll": 0.5, "ll128": 0.92, "simple": 1.0}  # part of the bytes on the wire, as `tuning` has it


@dataclass(frozen=True, slots=True)
class Chosen:
    """A collective with the choice that led to it."""

    flows: Flows
    choice: Choice


def choose(
    machine: Machine,
    operation: Operation,
    devices: Sequence[str],
    size: float,
    library: Nccl | None = None,
    weights: Sequence[float] = (),
) -> Chosen:
    """The best that NCCL has for these devices and this size.

    Raises:
        CannotCollect, NoRoute, UnknownName: as `cost`.
    """
    ranks = place(machine, Direct(), devices)
    names = ranks.parties
    if len(names) < 2:
        flows = cost(machine, Direct(), operation, names, size)
        return Chosen(flows, Choice("nothing to do", 0.0, "", 0.0))
    if library is not None:
        best, second, *_ = library.estimates(operation, ranks.group, size, bus(machine, names, operation))
        flows = as_measured(machine, built(best.method, ranks.group), operation, names, size, library, best, weights)
        return Chosen(flows, chosen_among(library, best, second, len(names), size))
    return _tuned(machine, operation, names, ranks.group, size, weights)


def bus(machine: Machine, devices: Sequence[str], operation: Operation = "all-reduce", ring: Algorithm = RINGS) -> Bus:
    """What the links let rings through these devices carry."""
    ranks = place(machine, Direct(), devices)
    names, sizes = ranks.parties, ranks.group.sizes
    if operation == "send":
        rate, link = _rate(machine, names, Direct(), "send")
        return Bus(rate, rate, link, link)
    inside, link = math.inf, "nvlink"
    for start, count in zip(ranks.group.starts, sizes, strict=True):
        if count > 1:
            inside, link = min((inside, link), _rate(machine, names[start : start + count], ring, "all-gather"))
    if len(sizes) == 1:
        return Bus(inside, link=link)
    across, wire = _rate(machine, names, ring, "all-gather")
    return Bus(inside, across, link, wire)


def _rate(machine: Machine, names: Sequence[str], algorithm: Algorithm, operation: Operation) -> tuple[float, str]:
    """(B/s that pass each rank, the kind of link that binds)."""
    flows = cost(machine, algorithm, operation, names, _LONG)
    moved = _LONG if operation == "send" else (len(names) - 1) / len(names) * _LONG
    seconds, binding = longest(machine, flows.phases[0].cost)
    kind = machine.link_kind(binding)
    return moved / seconds, kind if kind in ("nvlink", "pcie") else "network"


def built(method: str, group: Group) -> Algorithm:
    """The sends of what NCCL calls a method."""
    return _OVER_NODES if method in ("tree", "nvls-tree") and len(group.sizes) > 1 else _BUILT[method]


def chosen_among(library: Nccl, best: Estimate, second: Estimate, ranks: int, size: float) -> Choice:
    """The choice among measured estimates."""
    channels = library.channels_of(best.method, best.protocol, ranks, size)
    said, other = f"{best.method}, {best.protocol}", f"{second.method}, {second.protocol}"
    return Choice(said, best.seconds, other, second.seconds, channels)


def _tuned(
    machine: Machine, operation: Operation, names: Sequence[str], group: Group, size: float, weights: Sequence[float]
) -> Chosen:
    """NCCL's own tables, and the links of the machine."""
    if operation not in OPERATIONS:
        flows = cost(machine, Direct(), operation, names, size, weights=weights)
        seconds = flows.alone(machine.rates())
        return Chosen(flows, Choice("direct", seconds, "", 0.0))
    seen = hardware(machine, names, group)
    found = candidates(seen, operation, group, size)
    best, second = found[0], found[1]
    algorithm = built(best.method, group)
    overheads = Overheads(start=best.latency, efficiency=_DATA[best.protocol])
    flows = cost(machine, algorithm, operation, names, size, overheads=overheads, weights=weights)
    rings = seen.nvls_channels(group) if best.method.startswith("nvls") else seen.channels(group)
    return Chosen(flows, Choice(_name(best), best.seconds(size), _name(second), second.seconds(size), rings.count))


def _name(candidate: Candidate) -> str:
    return f"{candidate.method}, {candidate.protocol}"


def hardware(machine: Machine, devices: Sequence[str], group: Group) -> Hardware:
    """What NCCL would find: NVLinks of a GPU by their generation, else PCIe; the network cards of its node.

    Of GPUs of several kinds what all of them have, as the ranks agree on it (NCCL, src/init.cc: the least of every rank's graph).
    """
    found = [_hardware(machine, each.name, group) for each in machine.samples(devices)]
    if len(found) == 1:
        return found[0]
    return Hardware(
        min((each.generation for each in found), key=list(_GENERATIONS.values()).index),
        min(each.inside for each in found),
        "nvlink" if all(each.link == "nvlink" for each in found) else "pcie",
        min(each.nics for each in found),
        min(each.nic for each in found),
        nvls=all(each.nvls for each in found),
    )


def _hardware(machine: Machine, first: str, group: Group) -> Hardware:
    """As one GPU has it."""
    mine = machine.links_from(first)
    wires = [(link, link.model) for link in mine if isinstance(link.model, Nvlink)]
    node = machine.device(first).node
    cards = [machine.device(name).model for name in machine.devices_of("nic", node)]
    rates = [card.bandwidth for card in cards if isinstance(card, Nic)]
    nic = min(rates, default=0.0) / 1e9
    if not wires:
        pcie = max((link.bandwidth for link in mine if link.kind == "pcie"), default=PCIE * 1e9) / 1e9
        return Hardware("ampere", pcie * PCIE / 15.75, "pcie", len(rates), nic)
    generation = _GENERATIONS[max((model.gen or 2) for _, model in wires)]
    count = sum(link.count * model.links for link, model in wires)  # whole
    nvls = any(adds(machine, link.target) for link, _ in wires) and generation in ("hopper", "blackwell") and max(group.sizes) > 1
    return Hardware(generation, count * NVLINK[generation], "nvlink", len(rates), nic, nvls=nvls)
