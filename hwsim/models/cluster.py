"""A machine as a cluster for training: equal GPUs in equal nodes, the rate of a ring in a node, and the rate out of a node.

Nodes whose GPUs meet in a switch of NVLinks (a rack of 72) are one node here, with the network cards of all of them.

The rates come from the closed forms of `hwsim.communication` on the machine's links: of a ring among the GPUs of a node, and of
messages that all GPUs of two nodes exchange at once. NICs that GPUs share are counted.

    ring in a node      = steps x step + share x bytes / rate
    ring across nodes   = as slow as the slower of the rings in a node and the links out of it

**Range**: equal nodes, and a fabric that carries between all nodes what it carries between two of them. If its upper levels
are oversubscribed, the simulation shows it and the estimate does not. Nor does it show that the replicas of several pipeline
stages exchange gradients through the same card at once: with fewer cards than stages in a node it is too fast, up to 2 times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Final

from hwsim.communication import ALGORITHMS, Overheads, cost, placing, timing
from hwsim.demand import softened
from hwsim.devices import Gpu
from hwsim.machine import Machine
from hwsim.machine.moved import unanswered
from hwsim.models.layer import Operation
from hwsim.origins import Case
from hwsim.records import dataclass
from hwsim.spec.mistakes import Hinted, SpecError

_LONG: Final = 1e9
Groups = Sequence[Sequence[int]]  # by group the places of its GPUs in the order of the machine
# Seconds of a collective's start, of a step in a node and of one between nodes: NCCL's own table, rings, protocol simple.
# Source: NVIDIA NCCL, src/graph/tuning.cc at commit 5067397c2676 (2026).
START: Final = 8.4e-6
STEP: Final = 3.4e-6
HOP: Final = 14e-6
# Part of a card's rate that collectives reach, and bytes of time that a message has lost once it is long (`Overheads.knee`).
# Source: fitted to published training throughput, see `calibrate/published/llm_training.py`.
NETWORK: Final = 0.633
KNEE: Final = 8e6
PRICED: Final = 4  # 2**4 sizes an octave have an all-reduce worked out; between them it is straight


class NotAlike(Hinted):
    """The machine is no cluster of equal GPUs."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Equal GPUs in equal nodes.

    Args:
        gpus: all of them; per_node: of one node.
        inside: B/s that pass each GPU of a ring in a node, by the number of its GPUs.
        across: B/s that leave a node when all of its GPUs send; pair: when one does.
        network, knee: what collectives make of it, see NETWORK and KNEE.
        bucket: bytes of weights that are gathered at once; None: however many there are.
        reducing: seconds of an all-reduce (bytes, GPUs, own kernels) among the first GPUs, as the machine's library does it.
        timed: seconds of a collective (bytes, GPUs of each group) inside a node, of all groups at once, as they are simulated.
        by_library: rates inside are what a library reaches of long messages over PCIe, all of its losses included: how well it is
            known; None of other links.
    """

    gpu: Gpu
    gpus: int
    per_node: int
    inside: Mapping[int, float]
    across: float
    pair: float
    network: float = NETWORK
    knee: float = KNEE
    bucket: float | None = None
    reducing: Callable[[float, int, str], float] | None = field(default=None, compare=False, repr=False)
    timed: Callable[[Operation, float, Groups], float] | None = field(default=None, compare=False, repr=False)
    by_library: Case | None = None

    def reduced(self, size: float, ranks: int, framework: str = "") -> float:
        """Seconds of an all-reduce among neighbours: as the machine's library does it, where that is known.

        framework: whose own kernels do it, up to the size they are for.

        It is what a simulation has, and serves passes of inference, whose all-reduces are small; the constants of `seconds`
        are of training.
        """
        if self.reducing is None or ranks > self.per_node:
            return self.seconds("all-reduce", size, ranks)
        return self.reducing(size, ranks, framework) if ranks > 1 and size > 0 else 0.0

    def gathered(self, size: float, groups: Groups) -> float:
        """Seconds to gather weights, bucket by bucket: each goes round all ranks, and its steps do not get shorter."""
        many = buckets(size, self.bucket)
        return many * self.among("all-gather", size / many, groups)

    def seconds(self, operation: Operation, size: float, ranks: int, stride: int = 1) -> float:
        """Seconds of a collective among every `stride`-th of GPUs in order, while the other such groups do the same."""
        inside = 1 if operation == "send" else max(1, self.per_node // (ranks * stride))
        begins = [tile * ranks * stride + offset for tile in range(inside) for offset in range(stride)]
        return self.among(operation, size, [range(begin, begin + ranks * stride, stride) for begin in begins])

    def among(self, operation: Operation, size: float, groups: Groups) -> float:
        """Seconds of a collective in the first of the groups, while the others do the same.

        size: bytes of one rank's whole array, as nccl-tests count; for send, of the message.
        """
        first, ranks = groups[0], len(groups[0])
        if ranks < 2 or size <= 0:
            return 0.0
        node = first[0] // self.per_node
        local = sum(place // self.per_node == node for place in first)  # integers
        nodes = -(-ranks // local)
        if self.timed is not None and nodes == 1:
            begin = node * self.per_node
            near = [[place - begin for place in group] for group in groups]
            return self.timed(operation, size, [group for group in near if group[-1] < self.per_node])
        if operation == "send":
            rate = self.inside_rate(2) if nodes == 1 else self.sharing()
            return START + (STEP if nodes == 1 else HOP) + size / rate
        turns = 2 if operation == "all-reduce" else 1
        share = turns * (ranks - 1) / ranks
        steps = turns * ((ranks - nodes) * STEP + (nodes - 1) * HOP if nodes > 1 else (ranks - 1) * STEP)
        rate = self.inside_rate(local) if local > 1 else float("inf")
        if nodes > 1:
            leaving = sum(any(place // self.per_node == node for place in group) for group in groups)
            cards = self.across / self.pair  # of a node; groups that have to share them do so at the rate that one would reach
            sharing = max(1.0, leaving * (local if operation == "all-to-all" else min(local, cards)) / cards)
            out = self.pair * self.network
            if operation == "all-to-all":
                return START + HOP + softened(sharing * size * (ranks - local) / ranks, self.knee) / out
            size, rate = sharing * size, min(sharing * rate, out * min(local, cards))
        if operation == "all-to-all":
            return START + STEP + size * (ranks - 1) / ranks / rate
        return START + steps + softened(share * size, self.knee) / rate

    def inside_rate(self, ranks: int) -> float:
        """B/s that pass each GPU of a ring in a node."""
        rate = self.inside.get(ranks)
        if rate is None:
            near = min(self.inside, key=lambda each: (abs(each - ranks), each), default=None)
            rate = float("inf") if near is None else self.inside[near]
        return rate

    def sharing(self) -> float:
        """B/s of one GPU's message to another node while the other GPUs of its node send too."""
        return min(self.pair, self.across / self.per_node) * self.network


def buckets(size: float, bucket: float | None) -> float:
    """The number of collectives that gather these bytes of weights.

    >>> buckets(100e6, 40e6), buckets(10e6, 40e6), buckets(10e6, None)
    (2.5, 1.0, 1.0)
    """
    return 1.0 if bucket is None else max(1.0, size / bucket)


def cluster_of(machine: Machine, devices: tuple[str, ...] | None = None) -> Cluster:
    """The cluster that the GPUs of a machine are.

    Raises:
        NotAlike: no GPUs, GPUs of several kinds, or nodes with different numbers of them.
        CannotCollect, NoRoute: they are not linked.
        SpecError: its file says how unsure a number is.
    """
    if unsure := tuple(unanswered(machine.unsure)):
        raise SpecError(unsure)
    names = devices or machine.devices_of("gpu")
    models = {name: machine.device(name).model for name in names}
    gpus = [model for model in models.values() if isinstance(model, Gpu)]
    if not gpus or len(gpus) < len(names):
        raise NotAlike("no gpu to train on" if not gpus else "not every device is a gpu")
    different = next((name for name, model in models.items() if model != gpus[0]), None)
    if different is not None:
        hint = "`hwsim simulate` with a `train:` of a stated plan plays them, each with its own kernels"
        raise NotAlike(f"the gpus are not all of one kind: {different} is another than {names[0]}", hint)
    nodes: dict[str, list[str]] = {}
    for name in names:
        nodes.setdefault(machine.device(name).node, []).append(name)
    together: dict[str, list[str]] = {}  # by the switch of NVLinks that joins them, else alone
    joined = placing.domains(machine, nodes)
    for node, those in nodes.items():
        together.setdefault(joined.get(node, node), []).extend(those)
    held = list(together.values())
    if any(len(each) != len(held[0]) for each in held):
        raise NotAlike("the nodes do not all have as many gpus")
    first, far = held[0], held[-1]
    inside = {}
    ranks = 2
    while ranks <= len(first):
        inside[ranks] = _bus(machine, first[:ranks])
        ranks *= 2
    if len(first) > 1 and len(first) not in inside:
        inside[len(first)] = _bus(machine, first)
    across = pair = float("inf")
    if len(held) > 1:
        across, pair = _leaving(machine, first, far)

    reduced: dict[tuple[float, int, str], float] = {}

    def at(size: float, ranks: int, own: str) -> float:
        seconds = reduced.get((size, ranks, own))
        if seconds is None:
            flows = timing.timed(machine, timing.own_kernel(own), "all-reduce", first[:ranks], size)
            seconds = reduced[size, ranks, own] = flows.alone(machine.rates())
        return seconds

    def reducing(size: float, ranks: int, own: str) -> float:
        step = 2.0 ** (math.frexp(size)[1] - 1 - PRICED)
        low = math.floor(size / step) * step
        part = (size - low) / step
        return at(low, ranks, own) if part == 0 else (1 - part) * at(low, ranks, own) + part * at(low + step, ranks, own)

    from hwsim.models.exchanges import Exchanges  # which take the constants above

    exchanges = Exchanges(machine)

    def exchanged(operation: Operation, size: float, groups: Groups) -> float:
        named = [tuple([first[place] for place in group]) for group in groups]
        return exchanges.numbered(named, operation, size).rest.demand.alone({})

    return Cluster(
        gpus[0],
        len(names),
        len(first),
        inside,
        across,
        pair,
        reducing=reducing,
        timed=exchanged,
        by_library=timing.over_pcie(machine, first),
    )


def _bus(machine: Machine, names: list[str]) -> float:
    """B/s that pass each rank of the rings that are found among them, or of what takes least if their library does that.

    NETWORK and the starts were fitted to trainings over NVLink, whose rings reach the links' rate. Over PCIe a library reaches a
    part of it, and the part is the library's.
    """
    if isinstance(timing.library_of(machine, names), Overheads) or timing.over_pcie(machine, names):
        flows = timing.timed(machine, None, "all-gather", names, _LONG)
    else:
        flows = cost(machine, ALGORITHMS["rings-both-ways"], "all-gather", names, _LONG)
    body = math.fsum(phase.cost.demand.body(machine.rates()) for phase in flows.phases)
    return (len(names) - 1) / len(names) * _LONG / body


def _leaving(machine: Machine, sources: Sequence[str], targets: Sequence[str]) -> tuple[float, float]:
    """(B/s out of a node when all of its GPUs send, B/s when one does).

    Every GPU uses a card of its own where there are enough of them, as NCCL has it, wherever a shortest route would go.
    """
    rates = machine.rates()
    alone = _LONG / machine.transfer(sources[0], targets[0], _LONG).demand.body(rates)
    near = dict.fromkeys(machine.device(name).node for name in sources)
    cards = [card for node in near for card in machine.devices_of("nic", node)]
    if cards:
        return alone * min(len(cards), len(sources)), alone
    amounts: dict[str, float] = {}
    for a, b in zip(sources, targets, strict=True):
        for name, amount in machine.transfer(a, b, _LONG).demand.amounts:
            amounts[name] = amounts.get(name, 0.0) + amount
    return len(sources) * _LONG / max(amount / rates[name] for name, amount in amounts.items()), alone
