"""NCCL on a machine: what a kernel, a step and a byte take, for each of its protocols.

    time = max(issue, start + start of the protocol + steps x step + hops x hop + bytes / (rate x bus))

    ring     steps f (n - k), hops f (k - 1)           bytes f (n - 1)/n S       f = 2 for all-reduce, else 1.
    tree     steps 2 (n/k - 1), hops 2 log2 k          bytes as the ring in a node, 2 (k - 1)/k S across: all-reduce over nodes.
    nvls     a start of its own                        bytes as the ring, at `nvls` times its rate: all-reduce in a node;
             between nodes trees of the switches       bytes as the tree.
    send     1 step, or 1 hop                          bytes S.
    all-to-all   a start for each further peer         bytes (n - 1)/n S, in sends of S/n.

n ranks, k nodes; hop: of NCCL's own tables where only one node was measured.
bus: what the machine's links let the rings carry, times the efficiency of the link that binds.
LL and LL128 send flags with the data: short steps, part of the rate (4 of 8 bytes, 120 of 128). Simple sends large chunks: long
steps. A step of LL is longer by `wide` once a message fills all channels. `kept`: the S/n bytes that a rank keeps for itself
pass its kernel as well, which halves the rate of two GPUs.

The parts `nvlink3`, `nvlink4`, `nvlink5` and `pcie` hold all that belongs to a generation of links. A machine adds two numbers:
`start`, of what drives NCCL there, and the part of its links' rate that long messages reach. There NCCL's own tables choose the
algorithm and the protocol (`choice: tables`), right or wrong, as they do on the machine. On Blackwell they take Simple at 4 MiB
between two GPUs, where LL would need half the time. Curves of one machine with steps of their own (`choice: fastest`) take the
least.

Source: the protocols: NCCL's src/include/device.h and "Demystifying NCCL", arXiv:2507.04786, 2025. Steps, starts and `kept`:
fitted to 2,350 collectives on nine machines (ai-dynamo/aiconfigurator@095f58a51c4c, NCCL 2.27 to 2.29).
Error: docs/validation/collectives.md.
Range: timers of profilers (1 us) and what starts a kernel are in `start`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from hwsim.demand import softened
from hwsim.machine.libraries.operations import CannotCollect, Group, Operation
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds

Protocol = Literal["ll", "ll128", "simple"]
Method = Literal["ring", "tree", "nvls", "nvls-tree"]

PROTOCOLS: Final[tuple[Protocol, ...]] = ("ll", "ll128", "simple")
# s from node to node in NCCL's tables (src/graph/tuning.cc at 5067397c2676), bytes a thread has at least, threads of a channel.
HOPS: Final[Mapping[Protocol, float]] = {"ll": 2.7e-6, "ll128": 4.0e-6, "simple": 14.0e-6}
WIRE: Final[Mapping[Protocol, float]] = {"ll": 4 / 8, "ll128": 120 / 128, "simple": 1.0}  # part of the bytes between nodes
_LEAST: Final[Mapping[Protocol, float]] = {"ll": 8.0, "ll128": 8.0, "simple": 64.0}
_THREADS: Final = 512
SENT: Final[tuple[Operation, ...]] = ("send", "all-to-all")
RINGS: Final[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")


_WIDE: Final = 7.6e3  # bytes of a message at which half of the channels' extra time of a step is there
_SHORT: Final = 16384.0  # bytes to one peer up to which a send goes by LL (NCCL_P2P_LL_THRESHOLD)


@dataclass(frozen=True, slots=True)
class Speeds:
    """One protocol."""

    step: Seconds = field("from one GPU to the next in a node")
    hop: Seconds | None = field("from node to node; as NCCL's own tables have it if left out", default=None)
    rate: Ratio = field("part of the bus that is data", default=1.0, exclusive_minimum=0.0)
    start: Seconds = field("before the first step, beyond the start of every collective", default=0.0)
    wide: Seconds = field("of a step, beyond that of a short message, once a message fills all channels", default=0.0)
    kept: Ratio = field("part of a byte's time that a byte takes which a rank keeps for itself", default=0.0)


@dataclass(frozen=True, slots=True)
class Sends:
    """Sends and receives, which all-to-all is made from."""

    start: Seconds = field("of a send and its receive, beyond the start of every collective")
    ll: BytesPerSecond = field("of LL, which carries up to 16 KiB to a peer", exclusive_minimum=0.0)
    step: Seconds = field("of longer messages, beyond the start")
    peer: Seconds = field("for each further peer", default=0.0)
    rate: Ratio = field(
        "part of the bus that longer messages reach, times the links' efficiency", default=1.0, exclusive_minimum=0.0
    )
    kept: Ratio = field("part of a byte's time that a byte takes which a rank sends to itself", default=0.0)


@dataclass(frozen=True, slots=True)
class Bus:
    """Bandwidth of rings through a group on a machine, in bytes/s each way.

    inside: past each rank of a node. across: past each rank when the ring runs through all nodes, or when all send to all.
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
    """The constants of NCCL on a machine, or on a generation of links; a part of the library in machines/parts/nccl."""

    kind: ClassVar[str] = "nccl"

    start: Seconds = field("of a collective: its kernel, and what waits for it")
    ll: Speeds = field("protocol LL: 4 of 8 bytes are data")
    ll128: Speeds = field("protocol LL128: 120 of 128 bytes are data")
    simple: Speeds = field("protocol Simple: chunks")
    send: Seconds | None = field("start of a send and its receive; as `start` if left out", default=None)
    sends: Sends | None = field("sends by what NCCL does for them; as one step of the protocols if left out", default=None)
    choice: str = field(
        "what picks the algorithm and the protocol: NCCL's own tables, or the least time",
        default="fastest",
        choices=("fastest", "tables"),
    )
    nvlink: Ratio = field("part of NVLink's rate that long messages reach", default=1.0, exclusive_minimum=0.0)
    pcie: Ratio = field("part of PCIe's rate", default=1.0, exclusive_minimum=0.0)
    host: Ratio | None = field(
        "the same where neighbours meet in a processor; as `pcie` if left out", default=None, exclusive_minimum=0.0
    )
    sockets: Ratio | None = field(
        "the same where they are on two processors; as `host` if left out", default=None, exclusive_minimum=0.0
    )
    network: Ratio = field("part of the network's rate", default=1.0, exclusive_minimum=0.0)
    tree: Ratio = field("part of the links' rate that the double tree reaches; 0: never chosen", default=0.0)
    nvls: float = field("times the ring's rate that the switch's own sum reaches; 0: it has none", default=0.0, minimum=0.0)
    nvls_start: Seconds = field("of such a sum beyond `start`", default=0.0)
    nvls_knee: Bytes = field("bytes of extra time that such a sum has grown to once it is long", default=0.0)
    nvls_ranks: int = field("fewest GPUs it is chosen for", default=5, minimum=2)
    issue: Seconds = field("least time from one to the next: what the host takes to issue one", default=0.0)
    channels: int = field("channels of rings and trees, each on a multiprocessor of its own; 0: not known", default=0, minimum=0)
    nvls_channels: int = field("channels of sums in the switch", default=0, minimum=0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

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
        if operation in SENT and self.sends is not None:
            yield self._sent(self.sends, operation, group, size, rate, bus)
            return
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
            passed = moved + speeds.kept * size / n
            wait = self._wait(speeds, f * (n - k), f * (k - 1), size)
            # what a GPU's threads pass on of NVLink's rate (`speeds.rate`) is far more than a card sends
            sent = WIRE[protocol] if self.choice == "tables" else speeds.rate
            body = passed / (inside * speeds.rate)
            yield Estimate("ring", protocol, wait, body if k == 1 else max(body, passed / (across * sent)))
            if operation != "all-reduce":
                continue
            crossing = 2 * (k - 1) / k * size / across
            if k > 1 and self.tree > 0:
                wait = self._wait(speeds, 2 * (n / k - 1), 2 * math.log2(k), size)
                yield Estimate("tree", protocol, wait, max(body, crossing / sent) / self.tree)
            if protocol == "simple" and self.nvls > 0 and max(group.sizes) >= self.nvls_ranks:
                longer = softened(size, self.nvls_knee) / size if size > 0 else 1.0
                start = self.start + self.nvls_start
                if k == 1:
                    yield Estimate("nvls", protocol, start, longer * moved / (rate * self.nvls))
                elif self.choice == "tables":
                    wait = start + 2 * math.log2(k) * (speeds.hop or 0.0)
                    body = max(longer * moved / (inside * self.nvls), crossing / (self.tree or 1.0))
                    yield Estimate("nvls-tree", protocol, wait, body)

    def _sent(self, sends: Sends, operation: Operation, group: Group, size: float, rate: float, bus: Bus) -> Estimate:
        """A send, or every rank's to all others: LL for short ones, else chunks."""
        n, k = group.ranks, len(group.sizes)
        peers = 1 if operation == "send" else n - 1
        message = size if operation == "send" else size / n
        kept = 0.0 if operation == "send" else sends.kept * message
        speeds = self.speeds("ll" if message <= _SHORT else "simple")
        wait = self.start + sends.start + (peers - 1) * sends.peer + (speeds.hop or 0.0 if k > 1 else 0.0)
        method = "direct" if operation == "send" else "pairwise"
        body = (peers * message + kept) / (bus.inside * self._of(bus.link) * sends.rate) if math.isfinite(bus.inside) else 0.0
        if k > 1:
            body = max(body, peers * message / (bus.across * self._of(bus.wire)))
        long = Estimate(method, "simple", wait + sends.step, body)
        if message > _SHORT:
            return long
        short = Estimate(
            method, "ll", wait + _filled(size) * speeds.wide, max(message / sends.ll, peers * message / (rate * speeds.rate))
        )
        return min(short, long, key=lambda estimate: estimate.seconds)

    def time(self, estimate: Estimate) -> float:
        """Seconds of what was chosen: no less than issuing it takes."""
        return max(self.issue, estimate.seconds)

    def _wait(self, speeds: Speeds, steps: float, hops: float, size: float) -> float:
        step = speeds.step + _filled(size) * speeds.wide
        return self.start + speeds.start + steps * step + hops * (speeds.hop or 0.0)

    def speeds(self, protocol: Protocol) -> Speeds:
        """Those of a protocol; its hops are known."""
        found = self.ll if protocol == "ll" else self.simple if protocol == "simple" else self.ll128
        return found if found.hop is not None else _hopping(found, protocol)

    def _of(self, link: str) -> float:
        """The efficiency of a kind of link."""
        if link == "nvlink":
            return self.nvlink
        if link == "sockets" and self.sockets is not None:
            return self.sockets
        if link in ("host", "sockets") and self.host is not None:
            return self.host
        return self.network if link == "network" else self.pcie


@functools.lru_cache(maxsize=64)
def _hopping(speeds: Speeds, protocol: Protocol) -> Speeds:
    """Those of a protocol that was measured in one node only: its hops are as NCCL's own tables have them."""
    return dataclasses.replace(speeds, hop=HOPS[protocol])


def _filled(size: float) -> float:
    """Part of a step's extra time that a message of this size has."""
    return size / (size + _WIDE)
