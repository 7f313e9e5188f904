"""Ethernet and wireless LAN: a data rate, frames, and the protocol in them.

    wire = MTU + 38:  preamble and delimiter 8, header 14, check sequence 4, gap 12 (no VLAN tag). Wireless: MTU + 36.
    TCP  carries MTU - 52 (IP 20, TCP 20, timestamps 12), UDP MTU - 28. RoCE v2 a power of two of at most MTU - 44 and 16 once

**Source**: IEEE 802.3; RFC 791, 768, 9293, 7323; InfiniBand Architecture Specification, annex A17 (RoCE v2: UDP, BTH 12, ICRC 4);
IEEE 802.11: rate of a station's modulation and streams, half duplex, every frame is acknowledged.
**Error**: arithmetic on full frames: TCP at an MTU of 1500 bytes 94.1 % of the rate, at 9000 99.0 %. Of a wireless link,
`efficiency` must say what contention, preambles and acknowledgements leave, 50 to 70 % of the rate in practice.
**Range**: no acknowledgements (on a cable they go the other way), no loss, no window that a long way would need; one wireless
station at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from hwsim.links.fabrics import Network, power_of_two
from hwsim.links.kind import LIGHT, Colour, Framing, Protocol
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem

AROUND: Final = 38.0  # bytes on the wire around the MTU
LEAST: Final = 84.0  # a frame of 64 bytes with preamble and gap
AROUND_IN_AIR: Final = 36.0  # MAC header 24 with QoS 2, LLC 8 less what Ethernet's MTU leaves out, check sequence 4
USUAL_MTU: Final = 1500.0
HEADERS: Final[dict[Protocol | None, float]] = {None: 0.0, "tcp": 52.0, "udp": 28.0, "rdma": 44.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ethernet(Network):
    """A rate, in bits as on the label (`25 Gb/s`) or in bytes.

    >>> round(100 * Ethernet(rate=1e9, mtu=1500).framing("tcp").share(), 2)
    94.15
    """

    kind, called, short, joins = "ethernet", "Ethernet", "ETH", "lan"
    colour: ClassVar[Colour] = "orange"
    examples = ({"rate": "25 Gb/s", "length": "100 m", "mtu": "1500 B", "efficiency": "90 %"},)
    around: ClassVar[float] = AROUND
    least: ClassVar[float] = LEAST
    aligned: ClassVar[bool] = True  # RDMA payloads are powers of two

    def framing(self, protocol: Protocol | None = None) -> Framing | None:
        """Packets of a protocol; without one, packets of the link itself, which a link without `mtu` does not count."""
        if self.mtu is None and protocol is None:
            return None
        mtu, headers = self.mtu or USUAL_MTU, HEADERS[protocol]
        payload = power_of_two(mtu - headers) if protocol == "rdma" and self.aligned else mtu - headers
        return Framing(payload, headers + self.around, self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wifi(Ethernet):
    """A rate, in bits as on the label (`866 Mb/s`): one channel that all stations and both directions share."""

    kind, called, short, colour = "wifi", "Wi-Fi", "WIFI", "yellow"
    medium = "of the signal: light in air"
    examples = ({"rate": "866 Mb/s", "length": "100 m", "mtu": "1500 B", "efficiency": "60 %"},)
    around, least, aligned = AROUND_IN_AIR, AROUND_IN_AIR, False
    duplex: Literal["full", "half"] = field("both directions share the channel", default="half")

    def problems(self) -> Iterator[Problem]:
        if self.duplex == "full":
            yield "duplex", "stations of a wireless LAN share one channel", "leave it out"
        yield from Ethernet.problems(self)

    def speed(self) -> float:
        return LIGHT
