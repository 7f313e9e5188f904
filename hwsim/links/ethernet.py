"""Ethernet and wireless LAN: data rate, frames, and the headers of the protocol.

    bytes on the wire = MTU + 38:  preamble and delimiter 8, header 14, check sequence 4, gap 12 (no VLAN tag); wireless MTU + 36
    payload of TCP = MTU - 52 (IP 20, TCP 20, timestamps 12), of UDP = MTU - 28
    payload of RoCE v2 = largest power of two up to MTU - 44, plus 16 bytes once per message

**Source**: IEEE 802.3; RFC 791, 768, 9293, 7323; InfiniBand Architecture Specification, annex A17 (RoCE v2: UDP, BTH 12, ICRC 4);
IEEE 802.11: rate by modulation and number of streams, half duplex, every frame acknowledged.
**Error**: arithmetic on full frames: TCP reaches 94.1 % of the rate at an MTU of 1500 bytes, 99.0 % at 9000. For a wireless link,
state contention, preambles and acknowledgements as `efficiency`, in practice 50 to 70 %.
**Range**: no acknowledgements (on a cable they use the other direction), no loss, no TCP window limit on long routes; one
wireless station at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from hwsim.links.fabrics import NetworkLink, power_of_two
from hwsim.links.kind import LIGHT, Colour, Framing, Protocol
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem

AROUND: Final = 38.0  # bytes on the wire beyond the MTU
LEAST: Final = 84.0  # bytes on the wire of the smallest frame: 64 bytes, preamble and gap
AROUND_IN_AIR: Final = 36.0  # bytes: MAC header 24 with QoS 2, LLC 8 (less the part outside Ethernet's MTU), check sequence 4
USUAL_MTU: Final = 1500.0
HEADERS: Final[dict[Protocol | None, float]] = {None: 0.0, "tcp": 52.0, "udp": 28.0, "rdma": 44.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ethernet(NetworkLink):
    """An Ethernet link of a data rate, in bits (`25 Gb/s`) or bytes per second.

    >>> round(100 * Ethernet(rate=1e9, mtu=1500).framing("tcp").share(), 2)
    94.15
    """

    kind, called, short, joins = "ethernet", "Ethernet", "ETH", "lan"
    colour: ClassVar[Colour] = "orange"
    examples = ({"rate": "25 Gb/s", "length": "100 m", "mtu": "1500 B", "efficiency": "90 %"},)
    around: ClassVar[float] = AROUND
    least: ClassVar[float] = LEAST
    aligned: ClassVar[bool] = True  # whether RDMA payloads are powers of two

    def framing(self, protocol: Protocol | None = None) -> Framing | None:
        """Return the packets of a protocol, or of the link itself if it has an `mtu`; else None."""
        if self.mtu is None and protocol is None:
            return None
        mtu, headers = self.mtu or USUAL_MTU, HEADERS[protocol]
        payload = power_of_two(mtu - headers) if protocol == "rdma" and self.aligned else mtu - headers
        return Framing(payload, headers + self.around, self.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wifi(Ethernet):
    """A wireless LAN of a data rate, such as `866 Mb/s`: all stations and both directions share one channel."""

    kind, called, short, colour = "wifi", "Wi-Fi", "WIFI", "yellow"
    medium = "of the signal: light in air"
    examples = ({"rate": "866 Mb/s", "length": "100 m", "mtu": "1500 B", "efficiency": "60 %"},)
    around, least, aligned = AROUND_IN_AIR, AROUND_IN_AIR, False
    duplex: Literal["full", "half"] = field("always half: both directions share the channel", default="half")

    def problems(self) -> Iterator[Problem]:
        if self.duplex == "full":
            yield "duplex", "expected half: the stations of a wireless LAN share one channel", "omit `duplex`"
        yield from Ethernet.problems(self)

    def speed(self) -> float:
        return LIGHT
