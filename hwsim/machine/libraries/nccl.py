"""NCCL: time of a collective from the costs of kernels, steps and bytes of each protocol.

    time = max(issue, start + start of the protocol + steps x step + hops x hop + bytes / (rate x bus))

    ring     steps f (n - k), hops f (k - 1)           bytes f (n - 1)/n S       f = 2 for all-reduce, else 1.
    tree     steps 2 (n/k - 1), hops 2 log2 k          bytes as the ring in a node, 2 (k - 1)/k S across: all-reduce over nodes.
    nvls     a separate start                          bytes as the ring, at `nvls` times its rate: all-reduce in a node;
             between nodes trees of the switches       bytes as the tree.
    send     1 step, or 1 hop                          bytes S.
    all-to-all   a start for each further peer         bytes (n - 1)/n S, in sends of S/n.

n: ranks.  k: nodes.  S: bytes.  hop: time of a step between nodes; of the network (`fabric`) if only one node was measured.
bus: bandwidth of the rings on the machine's links, times the efficiency of the bottleneck link.

Protocols: LL and LL128 send flags with the data, so that steps are short but only part of the rate is data (4 of 8 bytes, 120 of
128). Simple sends large chunks, with long steps. A step of LL is longer by `wide` if a message fills all channels. The S/n bytes
that a rank keeps for itself also pass through its kernel (`kept`), which halves the rate of two GPUs.

The parts `nvlink3`, `nvlink4`, `nvlink5` and `pcie` contain the constants of a generation of links. A machine adds `start`, which
depends on the software that calls NCCL, and the fraction of the link rate that long messages reach. With `choice: tables`, NCCL's
own tables select algorithm and protocol as on the real machine, even if another choice were faster: on Blackwell, they select
Simple at 4 MiB between two GPUs, where LL would take half the time. With `choice: fastest`, for constants fitted to one machine,
the fastest is selected.

Source: the protocols: NCCL's src/include/device.h and "Demystifying NCCL", arXiv:2507.04786, 2025. Steps, starts and `kept`:
fitted to 2,350 collectives on nine machines (ai-dynamo/aiconfigurator@095f58a51c4c, NCCL 2.27 to 2.29).
Error: docs/validation/collectives.md.
Range: `start` includes profiler timers (1 us) and kernel launches.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, Literal

from hwsim.demand import knee_bytes
from hwsim.machine.libraries.fabric import Fabric
from hwsim.machine.libraries.operations import CannotCollect, Operation, RankGroup
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds

Protocol = Literal["ll", "ll128", "simple"]
Method = Literal["ring", "tree", "nvls", "nvls-tree"]

PROTOCOLS: Final[tuple[Protocol, ...]] = ("ll", "ll128", "simple")
# s per step between nodes in NCCL's tables (src/graph/tuning.cc at 5067397c2676)
HOPS: Final[Mapping[Protocol, float]] = {"ll": 2.7e-6, "ll128": 4.0e-6, "simple": 14.0e-6}
WIRE: Final[Mapping[Protocol, float]] = {"ll": 4 / 8, "ll128": 120 / 128, "simple": 1.0}  # share of data between nodes
_LEAST: Final[Mapping[Protocol, float]] = {"ll": 8.0, "ll128": 8.0, "simple": 64.0}  # minimum bytes per thread
_THREADS: Final = 512  # threads per channel
SENT: Final[tuple[Operation, ...]] = ("send", "all-to-all")
RINGS: Final[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")


_WIDE: Final = 7.6e3  # message bytes at which a step has half of the extra time `wide`
_SHORT: Final = 16384.0  # maximum bytes per peer that a send transfers by LL (NCCL_P2P_LL_THRESHOLD)


@dataclass(frozen=True, slots=True)
class ProtocolCosts:
    """The constants of one protocol."""

    step: Seconds = field("time of a step from one GPU to the next within a node")
    hop: Seconds | None = field("time of a step between nodes (default: of the network)", default=None)
    rate: Ratio = field("fraction of the bus bandwidth that is data", default=1.0, exclusive_minimum=0.0)
    start: Seconds = field("time before the first step, in addition to the `start` of every collective", default=0.0)
    wide: Seconds = field("additional time of a step if the message fills all channels", default=0.0)
    kept: Ratio = field("time of a byte that a rank keeps for itself, relative to a transferred byte", default=0.0)


@dataclass(frozen=True, slots=True)
class NcclSendCosts:
    """The constants of sends and receives, from which all-to-all is built."""

    start: Seconds = field("time of a send and its receive, in addition to the `start` of every collective")
    ll: BytesPerSecond = field("bandwidth of LL, the protocol of up to 16 KiB per peer", exclusive_minimum=0.0)
    step: Seconds = field("additional start time of longer messages (Simple)")
    peer: Seconds = field("additional time of each further peer", default=0.0)
    rate: Ratio = field(
        "fraction of the bus bandwidth that longer messages reach, on top of the efficiency of the links",
        default=1.0,
        exclusive_minimum=0.0,
    )
    kept: Ratio = field("time of a byte that a rank sends to itself, relative to a transferred byte", default=0.0)


@dataclass(frozen=True, slots=True)
class RingBandwidth:
    """A bandwidth of rings through a group of devices (bytes/s per direction).

    Args:
        inside: bandwidth past each rank within a node.
        across: bandwidth past each rank if the ring spans all nodes, or in an all-to-all.
        link: kind of the bottleneck link within a node.
        wire: kind of the bottleneck link between nodes.
    """

    inside: float
    across: float = math.inf
    link: str = "nvlink"
    wire: str = "network"


@dataclass(frozen=True, slots=True)
class NcclEstimate:
    """A time of one algorithm and protocol (s): `latency` before the transfer, `body` during it."""

    method: Method | str
    protocol: Protocol
    latency: float
    body: float

    @property
    def seconds(self) -> float:
        return self.latency + self.body


@dataclass(frozen=True, slots=True)
class Nccl:
    """The constants of NCCL on a machine or on a generation of links; parts of the library are in machines/parts/nccl."""

    kind: ClassVar[str] = "nccl"

    start: Seconds = field("start time of a collective: its kernel and the synchronization around it")
    ll: ProtocolCosts = field("constants of protocol LL (4 of 8 bytes are data)")
    ll128: ProtocolCosts = field("constants of protocol LL128 (120 of 128 bytes are data)")
    simple: ProtocolCosts = field("constants of protocol Simple (large chunks)")
    send: Seconds | None = field("start time of a send and its receive (default: `start`)", default=None)
    sends: NcclSendCosts | None = field("constants of sends and receives (default: one step of the protocol)", default=None)
    choice: str = field(
        "selection of algorithm and protocol: by NCCL's own tables, or the fastest",
        default="fastest",
        choices=("fastest", "tables"),
    )
    nvlink: Ratio = field("fraction of NVLink bandwidth that long messages reach", default=1.0, exclusive_minimum=0.0)
    pcie: Ratio = field("fraction of PCIe bandwidth that long messages reach", default=1.0, exclusive_minimum=0.0)
    host: Ratio | None = field(
        "fraction of PCIe bandwidth that long messages reach through a CPU (default: `pcie`)", default=None, exclusive_minimum=0.0
    )
    sockets: Ratio | None = field(
        "fraction of the bandwidth that long messages reach between CPU sockets (default: `host`)",
        default=None,
        exclusive_minimum=0.0,
    )
    network: Ratio | None = field(
        "fraction of network bandwidth that long messages reach (default: of the network)", default=None, exclusive_minimum=0.0
    )
    tree: Ratio | None = field(
        "fraction of the link bandwidth that the double tree reaches; 0: no tree (default: of the network)", default=None
    )
    nvls: float = field("rate of NVLink SHARP (NVLS) relative to the ring; 0: no NVLS", default=0.0, minimum=0.0)
    nvls_start: Seconds = field("start time of NVLS, in addition to `start`", default=0.0)
    nvls_knee: Bytes = field("overhead of a long NVLS all-reduce, as the bytes that take the same time", default=0.0)
    nvls_ranks: int = field("minimum number of GPUs for NVLS", default=5, minimum=2)
    issue: Seconds = field("time that the host takes to issue a collective: a lower bound of its time", default=0.0)
    channels: int = field("channels of rings and trees, one multiprocessor each; 0: unknown", default=0, minimum=0)
    nvls_channels: int = field("number of channels of NVLS; 0: unknown", default=0, minimum=0)
    measured: Mapping[str, tuple[int, ...]] = field(
        "numbers of ranks that were measured, by operation; others are less certain (default: all)",
        default_factory=dict,
        example="{all-reduce: [4, 8]}",
        record="the interval of other operations and ranks is wider",
    )
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # source of each key

    def is_measured(self, operation: Operation, ranks: int) -> bool:
        """Return whether the operation was measured with a number of ranks within a factor of 1.5 of this one."""
        near = self.measured.get(operation, ()) if self.measured else (ranks,)
        return any(2 * ranks <= 3 * count and 2 * count <= 3 * ranks for count in near)

    def estimates(self, operation: Operation, group: RankGroup, size: float, bus: RingBandwidth) -> tuple[NcclEstimate, ...]:
        """Return all algorithms and protocols with their times, the fastest first.

        Raises:
            CannotCollect: the operation has no formula.
        """
        n = group.ranks
        if n < 2:
            return (NcclEstimate("none", "simple", 0.0, 0.0),)
        return tuple(sorted(self._all(operation, group, size, bus), key=lambda estimate: estimate.seconds))

    def channels_of(self, method: str, protocol: Protocol, ranks: int, size: float) -> int:
        """Return the number of channels of a collective of `size` bytes; 0: unknown. Small messages use fewer channels.

        Source: NVIDIA/nccl issues 689 (a channel is a thread block that shares its multiprocessor with no other kernel) and 1216
        (every thread of a channel has a minimum number of bytes, for rings of LL per rank).

        >>> nccl = Nccl(1e-5, ProtocolCosts(1e-6), ProtocolCosts(1e-6), ProtocolCosts(1e-6), channels=24)
        >>> nccl.channels_of("ring", "simple", 8, 1e3), nccl.channels_of("ring", "simple", 8, 1e9)
        (1, 24)
        """
        max_channels = self.nvls_channels if method.startswith("nvls") else self.channels
        min_bytes = _LEAST[protocol] * (ranks if (method, protocol) == ("ring", "ll") else 1)
        return min(max_channels, max(1, int(size / (_THREADS * min_bytes)))) if max_channels else 0

    def efficiency(self, bus: RingBandwidth, across: bool) -> float:
        """Return the fraction of the link bandwidth that long messages reach."""
        return min(self._efficiency(bus.link), self._efficiency(bus.wire)) if across else self._efficiency(bus.link)

    def _all(self, operation: Operation, group: RankGroup, size: float, bus: RingBandwidth) -> Iterator[NcclEstimate]:
        n, k = group.ranks, len(group.sizes)
        inside, across = bus.inside * self._efficiency(bus.link), bus.across * self._efficiency(bus.wire)
        rate = inside if k == 1 else min(inside, across)
        if operation in SENT and self.sends is not None:
            yield self._sent(self.sends, operation, group, size, rate, bus)
            return
        for protocol in PROTOCOLS:
            speeds = self.speeds(protocol)
            if operation == "send":
                start = self.start if self.send is None else self.send
                wait = speeds.step if k == 1 else speeds.hop or 0.0
                yield NcclEstimate("direct", protocol, start + wait, size / (rate * speeds.rate))
                continue
            if operation not in RINGS:
                raise CannotCollect(f"no NCCL measurements of {operation}", f"supported: {', '.join(RINGS)}, send")
            f = 2 if operation == "all-reduce" else 1
            moved = f * (n - 1) / n * size if operation not in ("broadcast", "reduce") else size
            passed = moved + speeds.kept * size / n
            wait = self._wait(speeds, f * (n - k), f * (k - 1), size)
            # `speeds.rate` limits the threads of a GPU on NVLink, not the much slower NIC
            sent = WIRE[protocol] if self.choice == "tables" else speeds.rate
            body = passed / (inside * speeds.rate)
            yield NcclEstimate("ring", protocol, wait, body if k == 1 else max(body, passed / (across * sent)))
            if operation != "all-reduce":
                continue
            crossing = 2 * (k - 1) / k * size / across
            if k > 1 and self.tree:
                wait = self._wait(speeds, 2 * (n / k - 1), 2 * math.log2(k), size)
                yield NcclEstimate("tree", protocol, wait, max(body, crossing / sent) / self.tree)
            if protocol == "simple" and self.nvls > 0 and max(group.sizes) >= self.nvls_ranks:
                longer = knee_bytes(size, self.nvls_knee) / size if size > 0 else 1.0
                start = self.start + self.nvls_start
                if k == 1:
                    yield NcclEstimate("nvls", protocol, start, longer * moved / (rate * self.nvls))
                elif self.choice == "tables":
                    wait = start + 2 * math.log2(k) * (speeds.hop or 0.0)
                    body = max(longer * moved / (inside * self.nvls), crossing / (self.tree or 1.0))
                    yield NcclEstimate("nvls-tree", protocol, wait, body)

    def _sent(
        self, sends: NcclSendCosts, operation: Operation, group: RankGroup, size: float, rate: float, bus: RingBandwidth
    ) -> NcclEstimate:
        """Estimate a send or an all-to-all: by LL for short messages, else by Simple."""
        n, k = group.ranks, len(group.sizes)
        peers = 1 if operation == "send" else n - 1
        message = size if operation == "send" else size / n
        kept = 0.0 if operation == "send" else sends.kept * message
        speeds = self.speeds("ll" if message <= _SHORT else "simple")
        wait = self.start + sends.start + (peers - 1) * sends.peer + (speeds.hop or 0.0 if k > 1 else 0.0)
        method = "direct" if operation == "send" else "pairwise"
        body = (
            (peers * message + kept) / (bus.inside * self._efficiency(bus.link) * sends.rate)
            if math.isfinite(bus.inside)
            else 0.0
        )
        if k > 1:
            body = max(body, peers * message / (bus.across * self._efficiency(bus.wire)))
        long = NcclEstimate(method, "simple", wait + sends.step, body)
        if message > _SHORT:
            return long
        short = NcclEstimate(
            method, "ll", wait + _wide_share(size) * speeds.wide, max(message / sends.ll, peers * message / (rate * speeds.rate))
        )
        return min(short, long, key=lambda estimate: estimate.seconds)

    def time(self, estimate: NcclEstimate) -> float:
        """Return the time (s) of an estimate, at least the issue time."""
        return max(self.issue, estimate.seconds)

    def _wait(self, speeds: ProtocolCosts, steps: float, hops: float, size: float) -> float:
        step = speeds.step + _wide_share(size) * speeds.wide
        return self.start + speeds.start + steps * step + hops * (speeds.hop or 0.0)

    def speeds(self, protocol: Protocol) -> ProtocolCosts:
        """Return the constants of a protocol, with `hop` filled in."""
        found = self.ll if protocol == "ll" else self.simple if protocol == "simple" else self.ll128
        return found if found.hop is not None else _with_hop(found, protocol)

    def _efficiency(self, link: str) -> float:
        if link == "nvlink":
            return self.nvlink
        if link == "sockets" and self.sockets is not None:
            return self.sockets
        if link in ("host", "sockets") and self.host is not None:
            return self.host
        return self.pcie if link != "network" else 1.0 if self.network is None else self.network

    def over(self, fabric: Fabric) -> Nccl:
        """Return the library on a network; constants between nodes that it does not define are those of the network."""
        found: dict[str, Any] = {"network": fabric.network} if self.network is None else {}
        found |= {"tree": fabric.tree} if self.tree is None else {}
        sources = {key: fabric.sources[key] for key in found if key in fabric.sources}
        for name in PROTOCOLS:
            costs: ProtocolCosts = getattr(self, name)
            if costs.hop is None:
                found[name] = dataclasses.replace(costs, hop=getattr(fabric, name))
                sources |= {f"{name}.hop": fabric.sources[name]} if name in fabric.sources else {}
        library = dataclasses.replace(self, **found)
        object.__setattr__(library, "sources", {**self.sources, **sources})
        return library


@functools.lru_cache(maxsize=64)
def _with_hop(speeds: ProtocolCosts, protocol: Protocol) -> ProtocolCosts:
    """Return the constants with `hop` from NCCL's tables, for protocols measured within one node only. Cached."""
    return dataclasses.replace(speeds, hop=HOPS[protocol])


def _wide_share(size: float) -> float:
    """Return the share of `ProtocolCosts.wide` that a step of this message size takes."""
    return size / (size + _WIDE)
