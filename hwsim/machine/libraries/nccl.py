"""NCCL as measured on a machine: what a kernel, a step and a byte take, for each of its protocols.

    time = max(issue, min over algorithms and protocols of   start + steps x step + hops x hop + bytes / (rate x bus))

    ring     steps f (n - k), hops f (k - 1)           bytes f (n - 1)/n S       f = 2 for all-reduce, else 1.
    tree     steps 2 (n/k - 1), hops 2 log2 k          bytes as the ring in a node, 2 (k - 1)/k S across: all-reduce over nodes.
    nvls     a start of its own                        bytes as the ring, at `nvls` times its rate: all-reduce in a node.
    send     1 step, or 1 hop                          bytes S.

n ranks, k nodes; hop: of NCCL's own tables where only one node was measured.
bus: what the machine's links let the rings carry, times the efficiency of the link that binds.
LL and LL128 send flags with the data: short steps, part of the rate. Simple sends large chunks: long steps.

Source: the protocols: NCCL's src/include/device.h and "Demystifying NCCL", arXiv:2507.04786, 2025. The shape: the minimum over
protocols fits published measurements better than one knee (4 to 5 % against 9 to 10 % on held-out sizes).
Error: docs/validation/collectives.md.
Range: one set of numbers belongs to one machine and one NCCL; timers of profilers (1 us) and what starts a kernel are in it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from hwsim.demand import softened
from hwsim.machine.libraries.operations import CannotCollect, Group, Operation
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds

Protocol = Literal["ll", "ll128", "simple"]
Method = Literal["ring", "tree", "nvls", "nvls-tree"]

PROTOCOLS: Final[tuple[Protocol, ...]] = ("ll", "ll128", "simple")
# s from node to node in NCCL's tables (src/graph/tuning.cc at 5067397c2676), bytes a thread has at least, threads of a channel.
HOPS: Final[Mapping[Protocol, float]] = {"ll": 2.7e-6, "ll128": 4.0e-6, "simple": 14.0e-6}
_LEAST: Final[Mapping[Protocol, float]] = {"ll": 8.0, "ll128": 8.0, "simple": 64.0}
_THREADS: Final = 512
RINGS: Final[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")


@dataclass(frozen=True, slots=True)
class Speeds:
    """One protocol."""

    step: Seconds = field("from one GPU to the next in a node")
    hop: Seconds | None = field("from node to node; as NCCL's own tables have it if left out", default=None)
    rate: Ratio = field("part of the bus that is data", default=1.0, exclusive_minimum=0.0)


@dataclass(frozen=True, slots=True)
class Bus:
    """Bandwidth of rings through a group on a machine, in bytes/s each way.

    inside: past each rank of a node. across: past each rank when the ring runs through all nodes.
    link, wire: the kinds of link that bind, inside and across.
    """

    inside: float
    across: float = math.inf
    link: str = "nvlink"
    wire: str = "network"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one algorithm and protocol, in seconds: before the bytes flow, and while they do."""

    method: Method | str
    protocol: Protocol
    latency: float
    body: float

    @property
    def seconds(self) -> float:
        return self.latency + self.body


@dataclass(frozen=True, slots=True)
class Nccl:
    """Fitted to a machine; a part of the library in machines/parts/nccl."""

    kind: ClassVar[str] = "nccl"

    start: Seconds = field("of a collective: its kernel, and what waits for it")
    ll: Speeds = field("protocol LL: 4 of 8 bytes are data")
    ll128: Speeds = field("protocol LL128: 120 of 128 bytes are data")
    simple: Speeds = field("protocol Simple: chunks")
    send: Seconds | None = field("start of a send and its receive; as `start` if left out", default=None)
    nvlink: Ratio = field("part of NVLink's rate that long messages reach", default=1.0, exclusive_minimum=0.0)
    pcie: Ratio = field("part of PCIe's rate", default=1.0, exclusive_minimum=0.0)
    network: Ratio = field("part of the network's rate", default=1.0, exclusive_minimum=0.0)
    tree: Ratio = field("part of the links' rate that the double tree reaches; 0: never chosen", default=0.0)
    nvls: float = field("times the ring's rate that the switch's own sum reaches; 0: it has none", default=0.0, minimum=0.0)
    nvls_start: Seconds = field("of such a sum beyond `start`", default=0.0)
    nvls_knee: Bytes = field("bytes of extra time that such a sum has grown to once it is long", default=0.0)
    nvls_ranks: int = field("fewest GPUs it is chosen for", default=5, minimum=2)
    issue: Seconds = field("least time from one to the next: what the host takes to issue one", default=0.0)
    channels: int = field("channels of rings and trees, each on a multiprocessor of its own; 0: not known", default=0, minimum=0)
    nvls_channels: int = field("channels of sums in the switch", default=0, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def estimates(self, operation: Operation, group: Group, size: float, bus: Bus) -> tuple[Estimate, ...]:
        """All that it may do, the fastest first.

        Raises:
            CannotCollect: an operation that it has no formula for.
        """
        n = group.ranks
        if n < 2:
            return (Estimate("none", "simple", 0.0, 0.0),)
        return tuple(sorted(self._all(operation, group, size, bus), key=lambda each: each.seconds))

    def channels_of(self, method: str, protocol: Protocol, ranks: int, size: float) -> int:
        """Channels that a collective of `size` bytes takes, 0 where that is not known: fewer for little to send.

        Source: NVIDIA/nccl issues 689 (a channel is a block that shares its multiprocessor with no other kernel) and 1216
        (every thread of a channel gets a least number of bytes, LL's rings for each rank).

        >>> nccl = Nccl(1e-5, Speeds(1e-6), Speeds(1e-6), Speeds(1e-6), channels=24)
        >>> nccl.channels_of("ring", "simple", 8, 1e3), nccl.channels_of("ring", "simple", 8, 1e9)
        (1, 24)
        """
        most = self.nvls_channels if method.startswith("nvls") else self.channels
        least = _LEAST[protocol] * (ranks if (method, protocol) == ("ring", "ll") else 1)
        return min(most, max(1, int(size / (_THREADS * least)))) if most else 0

    def efficiency(self, bus: Bus, across: bool) -> float:
        """Part of the links' rate that long messages reach."""
        return min(self._of(bus.link), self._of(bus.wire)) if across else self._of(bus.link)

    def _all(self, operation: Operation, group: Group, size: float, bus: Bus) -> Iterator[Estimate]:
        n, k = group.ranks, len(group.sizes)
        inside, across = bus.inside * self._of(bus.link), bus.across * self._of(bus.wire)
        rate = inside if k == 1 else min(inside, across)
        for protocol in PROTOCOLS:
            speeds = self.speeds(protocol)
            if operation == "send":
                start = self.start if self.send is None else self.send
                wait = speeds.step if k == 1 else speeds.hop or 0.0
                yield Estimate("direct", protocol, start + wait, size / (rate * speeds.rate))
                continue
            if operation not in RINGS:
                raise CannotCollect(f"NCCL's measured numbers do not give {operation}", f"they do {', '.join(RINGS)}, send")
            f = 2 if operation == "all-reduce" else 1
            moved = f * (n - 1) / n * size if operation not in ("broadcast", "reduce") else size
            yield Estimate("ring", protocol, self._wait(speeds, f * (n - k), f * (k - 1)), moved / (rate * speeds.rate))
            if operation != "all-reduce":
                continue
            if k > 1 and self.tree > 0:
                wait = self._wait(speeds, 2 * (n / k - 1), 2 * math.log2(k))
                crossing = 2 * (k - 1) / k * size / across
                yield Estimate("tree", protocol, wait, max(moved / inside, crossing) / (self.tree * speeds.rate))
            if protocol == "simple" and k == 1 and self.nvls > 0 and n >= self.nvls_ranks:
                longer = softened(size, self.nvls_knee) / size if size > 0 else 1.0
                yield Estimate("nvls", protocol, self.start + self.nvls_start, longer * moved / (rate * self.nvls))

    def time(self, estimate: Estimate) -> float:
        """Seconds of what was chosen: no less than issuing it takes."""
        return max(self.issue, estimate.seconds)

    def _wait(self, speeds: Speeds, steps: float, hops: float) -> float:
        return self.start + steps * speeds.step + hops * (speeds.hop or 0.0)

    def speeds(self, protocol: Protocol) -> Speeds:
        """Those of a protocol; its hops are known."""
        found = {"ll": self.ll, "ll128": self.ll128, "simple": self.simple}[protocol]
        return found if found.hop is not None else dataclasses.replace(found, hop=HOPS[protocol])

    def _of(self, link: str) -> float:
        """The efficiency of a kind of link."""
        return self.nvlink if link == "nvlink" else self.pcie if link == "pcie" else self.network
