"""A machine as a training cluster: identical GPUs in equal nodes, ring bandwidth within a node, and bandwidth out of a node.

Nodes whose GPUs share NVLink switches (a rack of 72 GPUs) count as one node with the NICs of all of them.

The bandwidths follow from the closed forms of `hwsim.communication` on the machine's links: of a ring among the GPUs of a node,
and of messages that all GPUs of two nodes exchange at once. Shared NICs are taken into account.

    ring in a node      = steps x step latency + share x bytes / rate
    ring across nodes   = the slower of the rings within a node and the links out of it

Exchanges among at most FEW GPUs of the machine take their simulated time, including link contention.

**Range**: equal nodes. For more GPUs, or more nodes than the machine has, the fabric between all nodes has the bandwidth of two
nodes; contention in oversubscribed upper levels appears in simulations only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hwsim.communication import ALGORITHMS, Overheads, Task, placement, timing
from hwsim.communication.selection import is_mesh
from hwsim.demand import knee_bytes
from hwsim.devices import Gpu
from hwsim.machine import Machine
from hwsim.machine.moved_numbers import MovedNumber
from hwsim.models.layer import Operation
from hwsim.origins import Case
from hwsim.records import dataclass
from hwsim.spec.mistakes import HintedError

if TYPE_CHECKING:
    from hwsim.machine.scores import Scores

_LONG: Final = 1e9
Names = tuple[str, ...]
Sized = tuple[tuple[Names, ...], float]  # groups, bytes of one rank's whole array
Groups = NDArray[np.int64]  # GPU indices in machine order: groups x ranks
# Seconds to start a collective, per step within a node, and per step between nodes: NCCL's table, ring, protocol Simple.
# Source: NVIDIA NCCL, src/graph/tuning.cc at commit 5067397c2676 (2026).
START: Final = 8.4e-6
STEP: Final = 3.4e-6
HOP: Final = 14e-6
# Share of the NIC bandwidth that collectives reach, and bytes whose time a long message loses (`Overheads.knee`).
# Source: fitted to published training throughput, see `calibrate/published/llm_training.py`.
NETWORK: Final = 0.633
KNEE: Final = 8e6
FEW: Final = 512  # maximum GPUs whose exchanges between nodes are simulated; beyond, only exchanges within a node are
PRICED: Final = 4  # all-reduces are computed at 2**4 sizes per octave and interpolated linearly between them


class UnequalCluster(HintedError):
    """The machine is not a cluster of identical GPUs."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of identical GPUs in equal nodes.

    Args:
        gpus: number of GPUs.
        per_node: GPUs per node.
        inside: ring bandwidth per GPU within a node (B/s), by the number of GPUs of the ring.
        across: bandwidth out of a node when all of its GPUs send (B/s).
        pair: bandwidth out of a node when one GPU sends (B/s).
        network, knee: network efficiency of collectives, see NETWORK and KNEE.
        bucket: bytes of weights per all-gather; None: all at once.
        reducing: seconds of an all-reduce (bytes, GPUs, custom kernel) among the first GPUs, by the machine's library.
        named: GPU names of each node, if exchanges among them take their simulated time.
        timed: seconds of the first of several concurrent collectives (operation; groups and bytes of each; NIC efficiency of the
            framework; copies), as simulated.
        by_library: confidence in the library, if the bandwidths within a node are what it reaches over PCIe with long messages,
            including all losses; None for other links.
        moved: the cluster with each uncertain number of the machine at both ends of its range.
        scores: measurements of earlier runs on the machine.
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
    named: Sequence[Names] = field(default=(), compare=False, repr=False)
    timed: Callable[[Operation, tuple[Sized, ...], float, int], float] | None = field(default=None, compare=False, repr=False)
    by_library: Case | None = None
    moved: tuple[tuple[MovedNumber, tuple[Cluster, ...]], ...] = field(default=(), compare=False, repr=False)
    scores: Scores | None = field(default=None, compare=False, repr=False)

    def reduced(self, size: float, ranks: int, framework: str = "") -> float:
        """Return the seconds of an all-reduce among neighbours, by the machine's library if it is known.

        Simulations use the same time. It serves inference passes, whose all-reduces are small; the constants of `seconds` are
        those of trainings.

        Args:
            framework: framework with a custom all-reduce, which is used up to its size limit.
        """
        if self.reducing is None or ranks > self.per_node:
            return self.seconds("all-reduce", size, ranks)
        return self.reducing(size, ranks, framework) if ranks > 1 and size > 0 else 0.0

    def seconds(self, operation: Operation, size: float, ranks: int, stride: int = 1, copies: int = 0) -> float:
        """Return the seconds of a collective in every group of ranks at distance `stride`, all groups at once; as `among`."""
        inside = 1 if operation == "send" else max(1, self.per_node // (ranks * stride))
        begins = np.arange(inside)[:, None] * (ranks * stride) + np.arange(stride)
        groups = begins.reshape(-1, 1) + np.arange(ranks) * stride
        within = groups[:, -1] < self.gpus
        return self.among(operation, size, groups[within] if within.any() else groups, copies=copies)

    def among(
        self, operation: Operation, size: float, groups: Groups, beside: Sequence[tuple[Groups, float]] = (), copies: int = 0
    ) -> float:
        """Return the seconds of a collective in the first group, while the other groups run the same collective.

        Args:
            size: bytes of one rank's whole array, as in nccl-tests; for a send, bytes of the message.
            beside: groups and bytes of other concurrent collectives, which share only links.
            copies: `Exchange.copies` of an all-to-all.
        """
        first, ranks = groups[0], len(groups[0])
        if ranks < 2 or size <= 0:
            return 0.0
        if self.timed is not None and groups.max() < self.per_node * len(self.named):
            names = [name for node in self.named for name in node]
            named = [
                (tuple([tuple([names[i] for i in group]) for group in held.tolist()]), amount)
                for held, amount in ((groups, size), *beside)
            ]
            return self.timed(operation, tuple(named), self.network / NETWORK, copies)
        node = first[0] // self.per_node
        local = int(np.count_nonzero(first // self.per_node == node))
        nodes = -(-ranks // local)
        if operation == "send":
            rate = self.inside_rate(2) if nodes == 1 else min(self.pair, self.across / self.per_node) * self.network
            return START + (STEP if nodes == 1 else HOP) + size / rate
        turns = 2 if operation == "all-reduce" else 1
        share = turns * (ranks - 1) / ranks
        steps = turns * ((ranks - nodes) * STEP + (nodes - 1) * HOP if nodes > 1 else (ranks - 1) * STEP)
        rate = self.inside_rate(local) if local > 1 else float("inf")
        if nodes > 1:
            leaving, *others = [
                int((members // self.per_node == node).any(axis=1).sum())
                for members in (groups, *(members for members, _ in beside))
            ]
            cards = self.across / self.pair  # NICs of a node; groups that share them get the rate of one group
            sharing = max(1.0, leaving * (local if operation == "all-to-all" else min(local, cards)) / cards)
            out = self.pair * self.network
            if operation == "all-to-all":
                inside, across = routed_bytes(copies, ranks, local) if copies else (0.0, 1.0 / ranks)
                near = STEP + size * inside * (local - 1) / rate
                return START + max(near, HOP + knee_bytes(sharing * size * across * (ranks - local), self.knee) / out)
            size, rate = sharing * size, min(sharing * rate, out * min(local, cards))
            crossing = math.fsum(amount * crossing_count for (_, amount), crossing_count in zip(beside, others, strict=True))
            at_once = share * (leaving * size / sharing + crossing) / self.across if crossing else 0.0
            return START + steps + max(knee_bytes(share * size, self.knee) / rate, at_once)
        if operation == "all-to-all":
            part = routed_bytes(copies, ranks, local)[0] if copies else 1.0 / ranks
            return START + STEP + size * part * (ranks - 1) / rate
        return START + steps + knee_bytes(share * size, self.knee) / rate

    def inside_rate(self, ranks: int) -> float:
        """Return the ring bandwidth per GPU within a node (B/s)."""
        rate = self.inside.get(ranks)
        if rate is None:
            near = min(self.inside, key=lambda count: (abs(count - ranks), count), default=None)
            rate = float("inf") if near is None else self.inside[near]
        return rate


def routed_bytes(copies: int, ranks: int, local: int) -> tuple[float, float]:
    """Return the bytes from a GPU to another one in its node, and in another node, relative to the bytes of its tokens.

    A token with `copies` experts, chosen uniformly, crosses the network once to each node with one of them, and the links inside
    a node once to each GPU with one.

    Args:
        ranks: GPUs that split the experts.
        local: those of them in one node.

    >>> routed_bytes(1, 16, 8), routed_bytes(8, 16, 16)[0] * 16 < 8
    ((0.125, 0.0625), True)
    """
    nodes = ranks / local
    return nodes * (1.0 - (1.0 - 1.0 / ranks) ** copies), (1.0 - (1.0 - 1.0 / nodes) ** copies) / local


def buckets(size: float, bucket: float | None) -> float:
    """Return the number of all-gathers for these bytes of weights.

    >>> buckets(100e6, 40e6), buckets(10e6, 40e6), buckets(10e6, None)
    (2.5, 1.0, 1.0)
    """
    return 1.0 if bucket is None else max(1.0, size / bucket)


def cluster_of(machine: Machine, devices: tuple[str, ...] | None = None) -> Cluster:
    """Return the cluster that the GPUs of a machine form.

    Raises:
        NotAlike: no GPUs, different GPUs, or nodes with different numbers of GPUs.
        CannotCollect, NoRoute: the GPUs are not linked.
    """
    names = devices or machine.devices_of("gpu")
    models = {name: machine.device(name).model for name in names}
    gpus = [model for model in models.values() if isinstance(model, Gpu)]
    if not gpus or len(gpus) < len(names):
        raise UnequalCluster("the machine has no GPU" if not gpus else "expected only GPUs, got other devices as well")
    different = next((name for name, model in models.items() if model != gpus[0]), None)
    if different is not None:
        hint = "`hwsim simulate` with a `train:` workload and an explicit plan supports several GPU models"
        raise UnequalCluster(f"estimates require identical GPUs, but {different} differs from {names[0]}", hint)
    nodes: dict[str, list[str]] = {}
    for name in names:
        nodes.setdefault(machine.device(name).node, []).append(name)
    together: dict[str, list[str]] = {}  # by the NVLink switch that joins them, or by node
    joined = placement.domains(machine, nodes)
    for node, node_gpus in nodes.items():
        together.setdefault(joined.get(node, node), []).extend(node_gpus)
    held = list(together.values())
    if any(len(group) != len(held[0]) for group in held):
        raise UnequalCluster("estimates require the same number of GPUs in every node")
    first, far = held[0], held[-1]
    sizes = {len(first), *(2**n for n in range(1, len(first).bit_length()))} - {1}
    inside = {ranks: _ring_bandwidth(machine, first[:ranks]) for ranks in sorted(sizes)}
    across = pair = float("inf")
    if len(held) > 1:
        across, pair = _node_bandwidth(machine, first, far)

    @cache
    def at(size: float, ranks: int, own: str) -> float:
        return timing.timed(machine, timing.own_kernel(own), "all-reduce", first[:ranks], size).alone(machine.rates())

    def reducing(size: float, ranks: int, own: str) -> float:
        step = 2.0 ** (math.frexp(size)[1] - 1 - PRICED)
        low = math.floor(size / step) * step
        part = (size - low) / step
        return at(low, ranks, own) if part == 0 else (1 - part) * at(low, ranks, own) + part * at(low + step, ranks, own)

    from hwsim.models.capacity_amounts import CapacityAmounts, largest
    from hwsim.models.exchanges import CollectiveCosts  # imports the constants above

    exchanging = cache(partial(CollectiveCosts, machine))

    @cache
    def exchanged(operation: Operation, several: tuple[Sized, ...], part: float, copies: int = 0) -> float:
        exchanges = exchanging(part)
        costs = [exchanges.numbered(groups, operation, size, (1.0, 1.0, copies)) for groups, size in several]
        rows, demand = CapacityAmounts.joined([cost.rows for cost in costs]).summed(), costs[0].rest.demand
        return demand.latency + max(demand.floor, largest(rows.amounts / exchanges.known.rates(rows.numbers)))

    named, known = tuple(map(tuple, held if len(names) <= FEW else held[:1])), timing.over_pcie(machine, first)
    return Cluster(
        gpus[0], len(names), len(first), inside, across, pair, reducing=reducing, named=named, timed=exchanged,
        by_library=known, moved=tuple((moved, tuple(cluster_of(end, devices) for end in moved.ends)) for moved in machine.unsure),
        scores=machine.scores,
    )  # fmt: skip


def _ring_bandwidth(machine: Machine, names: list[str]) -> float:
    """Return the ring bandwidth per rank among these GPUs (B/s): of the rings found, or of the library's fastest algorithm.

    NETWORK and the start times were fitted to trainings over NVLink, where rings reach the link rate. Over PCIe, a library
    reaches a share of it, and the share is a constant of the library. In a mesh, its rings together use every link.
    """
    if isinstance(timing.library_of(machine, names), Overheads) or timing.over_pcie(machine, names) or is_mesh(machine, names):
        flows = timing.timed(machine, None, "all-gather", names, _LONG)
    else:
        flows = Task(machine, "all-gather", names, _LONG).flows(ALGORITHMS["rings-both-ways"])
    body = math.fsum(phase.cost.demand.body(machine.rates()) for phase in flows.phases)
    return (len(names) - 1) / len(names) * _LONG / body


def _node_bandwidth(machine: Machine, sources: Sequence[str], targets: Sequence[str]) -> tuple[float, float]:
    """Return the bandwidth out of a node (B/s) when all of its GPUs send, and when one sends.

    As in NCCL, every GPU uses a separate NIC if there are enough, regardless of the shortest route.
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
