"""Networks between computers: a rate, a cable, packets; and the fabrics of high-performance computing.

    rate as given, or with `mtu`:  carried = rate x payload / (payload + header) x efficiency
    latency = latency of the ports + length / (2/3 of light)

    InfiniBand   packets of up to 4096 bytes with 26 around them: LRH 8, BTH 12, ICRC 4, VCRC 2.
    Omni-Path    packets of up to 10 KiB (usually 8 KiB) with InfiniBand's headers, in flits of 65 bits with 64 of data.
    Slingshot    up to 4096 bytes of an RDMA message with 30 to 62 bytes of headers and Ethernet's preamble and gap

**Source**: InfiniBand Architecture Specification, volume 1 (IBTA): 100 Gb/s (EDR), 200 (HDR), 400 (NDR) for four lanes.
Birrittella et al., "Intel Omni-Path Architecture: Enabling Scalable, High Performance Fabrics", Hot Interconnects, 2015. 4 lanes
of 25.78125 Gb/s with 64b/66b, 12.5 GB/s each way. Transfer packets of 1056 bits: 16 flits of 65 bits, 16 bits of CRC and credits.
De Sensi et al., "An In-Depth Analysis of the Slingshot Interconnect", SC 2020. 200 Gb/s ports, Ethernet with the preamble, gap
and minimal frame cut down (32 bytes instead of 64) for RDMA between its own parts; switch latency 350 ns.
**Error**: the data rate where no `mtu` is given; headers take 0.6 % of InfiniBand's at 4096 bytes. The headers counted for
Slingshot (14 + 4 Ethernet, 44 RoCE) are plain Ethernet's headers.
"""

from __future__ import annotations

from typing import Final

from hwsim.formats import format_quantity
from hwsim.links.kind import Framing, LinkKind, Protocol
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Metres, Ratio

AROUND: Final = 26.0  # bytes around an InfiniBand packet
FLITS: Final = 1024 / 1056  # data bits of a transfer packet of Omni-Path
AROUND_SLINGSHOT: Final = 62.0
LEAST_SLINGSHOT: Final = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(LinkKind):
    """A rate, in bits as on the label (`25 Gb/s`) or in bytes."""

    network, budget = True, "ports"
    rate: BytesPerSecond = field("each direction, e.g. 25 Gb/s", exclusive_minimum=0.0)
    length: Metres = field("of the cable: the signal goes at two thirds of light", default=0.0)
    mtu: Bytes | None = field(
        "most bytes in a packet, headers of the protocol included; packets cost nothing if left out",
        default=None,
        minimum=128.0,
        example="1500 B",
    )
    efficiency: Ratio = field(
        "part of the rate that long messages reach, beside what packets take", default=1.0, exclusive_minimum=0.0
    )

    def peak(self) -> float:
        return self.rate

    def carried(self) -> float:
        return self.rate * self.efficiency

    def formula(self) -> Cited:
        return self.reached(f"{self.called} rate as given", self.efficiency)

    def label(self) -> str:
        return f"{self.called} {format_quantity(self.rate, 'b/s')}"

    def distance(self) -> float:
        return self.length


@dataclass(frozen=True, slots=True, kw_only=True)
class Infiniband(Network):
    """A rate, in bits as on the label (`400 Gb/s`) or in bytes.

    >>> round(100 * Infiniband(rate=50e9, mtu=4096).framing().share(), 1)
    99.4
    """

    kind, called, short, joins, colour = "infiniband", "InfiniBand", "IB", "fabric", "purple"
    examples = ({"rate": "100 Gb/s", "length": "100 m", "mtu": "4096 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        return None if self.mtu is None else Framing(self.mtu, AROUND, AROUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnipath(Network):
    """A rate, in bits as on the label (`100 Gb/s`) or in bytes; the fabric of HPC clusters from 2015."""

    kind, called, short, joins = "omnipath", "Omni-Path", "OPA", "fabric"
    examples = ({"rate": "100 Gb/s", "length": "100 m", "mtu": "8192 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        """Packets; the CRC of the flits is counted with the headers."""
        return None if self.mtu is None else Framing(self.mtu, (self.mtu + AROUND) / FLITS - self.mtu, AROUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slingshot(Network):
    """A rate, in bits as on the label (`200 Gb/s`) or in bytes; HPE's Ethernet for supercomputers."""

    kind, called, short, joins = "slingshot", "Slingshot", "SS", "fabric"
    examples = ({"rate": "200 Gb/s", "length": "100 m", "mtu": "2048 B", "efficiency": "90 %"},)

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        return None if self.mtu is None else Framing(power_of_two(self.mtu), AROUND_SLINGSHOT, LEAST_SLINGSHOT)


def power_of_two(most: float) -> float:
    """The largest power of two from 256 to 4096 that is at most `most`: the payload of RDMA.

    >>> power_of_two(1500), power_of_two(9000)
    (1024.0, 4096.0)
    """
    size = 4096.0
    while size > most and size > 256:
        size /= 2
    return size
