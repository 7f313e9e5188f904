"""Networks between nodes, and the fabrics of high-performance computing: InfiniBand, Omni-Path and Slingshot.

    bandwidth = rate x efficiency, with `mtu` also x payload / (payload + header)
    latency = latency of the ports + length / (2/3 of the speed of light)

    InfiniBand   packets of up to 4096 bytes and 26 bytes of headers: LRH 8, BTH 12, ICRC 4, VCRC 2
    Omni-Path    packets of up to 10 KiB (usually 8 KiB) with InfiniBand's headers, in flits of 65 bits with 64 bits of data
    Slingshot    up to 4096 bytes of an RDMA message with 30 to 62 bytes of headers and Ethernet's preamble and gap

**Source**: InfiniBand Architecture Specification, volume 1 (IBTA): 100 Gb/s (EDR), 200 (HDR), 400 (NDR) for four lanes.
Birrittella et al., "Intel Omni-Path Architecture: Enabling Scalable, High Performance Fabrics", Hot Interconnects, 2015. 4 lanes
of 25.78125 Gb/s with 64b/66b, 12.5 GB/s each way. Transfer packets of 1056 bits: 16 flits of 65 bits, 16 bits of CRC and credits.
De Sensi et al., "An In-Depth Analysis of the Slingshot Interconnect", SC 2020. 200 Gb/s ports, Ethernet with a shorter preamble
and gap and smaller minimum frames (32 bytes instead of 64) for RDMA between Slingshot devices; switch latency 350 ns.
**Error**: without `mtu`, headers are neglected; they take 0.6 % of InfiniBand's rate at 4096 bytes. For Slingshot, the headers of
plain Ethernet are counted (14 + 4 Ethernet, 44 RoCE).
"""

from __future__ import annotations

from typing import Final

from hwsim.formats import format_quantity
from hwsim.links.kind import Framing, LinkKind, Protocol
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, DataRate, Metres, Ratio

AROUND: Final = 26.0  # header bytes of an InfiniBand packet
FLITS: Final = 1024 / 1056  # share of data bits in a transfer packet of Omni-Path
AROUND_SLINGSHOT: Final = 62.0  # header bytes of a packet
LEAST_SLINGSHOT: Final = 40.0  # bytes on the wire of the smallest packet


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLink(LinkKind):
    """A base of network links with a data rate, in bits (`25 Gb/s`) or bytes per second."""

    network, budget = True, "ports"
    rate: DataRate = field("data rate in each direction", exclusive_minimum=0.0)
    length: Metres = field("cable length, for the propagation delay at 2/3 of the speed of light", default=0.0)
    mtu: Bytes | None = field(
        "maximum packet size with protocol headers (default: no packet overhead)",
        default=None,
        minimum=128.0,
        example="1500 B",
    )
    efficiency: Ratio = field("achieved fraction of the rate after packet headers", default=1.0, exclusive_minimum=0.0)

    def peak(self) -> float:
        return self.rate

    def carried(self) -> float:
        return self.rate * self.efficiency

    def formula(self) -> Cited:
        return self.reached(f"{self.called} data rate", self.efficiency)

    def label(self) -> str:
        return f"{self.called} {format_quantity(self.rate, 'b/s')}"

    def distance(self) -> float:
        return self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Infiniband(NetworkLink):
    """An InfiniBand link of a data rate, in bits (`400 Gb/s`) or bytes per second.

    >>> round(100 * Infiniband(rate=50e9, mtu=4096).framing().share(), 1)
    99.4
    """

    kind, called, short, joins, colour = "infiniband", "InfiniBand", "IB", "fabric", "purple"
    examples = ({"rate": "100 Gb/s", "length": "100 m", "mtu": "4096 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        return None if self.mtu is None else Framing(self.mtu, AROUND, AROUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnipath(NetworkLink):
    """An Omni-Path link (HPC clusters since 2015) of a data rate, in bits (`100 Gb/s`) or bytes per second."""

    kind, called, short, joins = "omnipath", "Omni-Path", "OPA", "fabric"
    examples = ({"rate": "100 Gb/s", "length": "100 m", "mtu": "8192 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        """Return the packets; the CRC of the flits counts as part of the header."""
        return None if self.mtu is None else Framing(self.mtu, (self.mtu + AROUND) / FLITS - self.mtu, AROUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slingshot(NetworkLink):
    """A Slingshot link (HPE's Ethernet for supercomputers) of a data rate, in bits (`200 Gb/s`) or bytes per second."""

    kind, called, short, joins = "slingshot", "Slingshot", "SS", "fabric"
    examples = ({"rate": "200 Gb/s", "length": "100 m", "mtu": "2048 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        return None if self.mtu is None else Framing(power_of_two(self.mtu), AROUND_SLINGSHOT, LEAST_SLINGSHOT)


def power_of_two(max_payload: float) -> float:
    """Return the payload of RDMA: the largest power of two from 256 to 4096 that is at most `max_payload`.

    >>> power_of_two(1500), power_of_two(9000)
    (1024.0, 4096.0)
    """
    size = 4096.0
    while size > max_payload and size > 256:
        size /= 2
    return size
