"""Ethernet: a data rate each way, frames, and the protocol in them.

    wire = MTU + 38:  preamble and delimiter 8, header 14, check sequence 4, gap 12 (no VLAN tag)
    TCP  carries MTU - 52 (IP 20, TCP 20, timestamps 12), UDP MTU - 28, RoCE v2 a power of two of at most MTU - 44 and 16 once

**Source**: IEEE 802.3; RFC 791, 768, 9293, 7323; InfiniBand Architecture Specification, annex A17 (RoCE v2: UDP, BTH 12, ICRC 4).
**Error**: arithmetic on full frames: TCP at an MTU of 1500 bytes 94.1 % of the rate, at 9000 99.0 %.
**Range**: no acknowledgements (they go the other way), no loss, no window that a long way would need.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.network import Network, power_of_two
from hwsim.records import dataclass

AROUND: Final = 38.0  # bytes on the wire around the MTU
LEAST: Final = 84.0  # a frame of 64 bytes with preamble and gap
USUAL_MTU: Final = 1500.0
HEADERS: Final[dict[Protocol | None, float]] = {None: 0.0, "tcp": 52.0, "udp": 28.0, "rdma": 44.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ethernet(Network):
    """A rate, in bits as on the label (`25 Gb/s`) or in bytes.

    >>> round(100 * Ethernet(rate=1e9, mtu=1500).framing("tcp").share(), 2)
    94.15
    """

    kind: ClassVar[str] = "ethernet"
    called: ClassVar[str] = "Ethernet"

    def framing(self, protocol: Protocol | None = None) -> Framing | None:
        """Packets of a protocol; without one those of the link itself, which a link without `mtu` does not count."""
        if self.mtu is None and protocol is None:
            return None
        mtu, headers = self.mtu or USUAL_MTU, HEADERS[protocol]
        payload = power_of_two(mtu - headers) if protocol == "rdma" else mtu - headers
        return Framing(payload, headers + AROUND, LEAST)
