"""Wireless LAN: one channel that all stations and both directions share.

**Source**: IEEE 802.11: the rate of a station's modulation and streams; half duplex, every frame is acknowledged.
**Error**: `efficiency` must say what contention, preambles and acknowledgements leave, 50 to 70 % of the rate in practice.
**Range**: one station at a time; the signal goes at the speed of light in air.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.ethernet import HEADERS, USUAL_MTU
from hwsim.links.network import Network
from hwsim.records import dataclass
from hwsim.spec.fields import field

AROUND: Final = 36.0  # MAC header 24 with QoS 2, LLC 8 less what Ethernet's MTU leaves out, check sequence 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wifi(Network):
    """A rate, in bits as on the label (`866 Mb/s`), shared by both directions."""

    kind: ClassVar[str] = "wifi"
    called: ClassVar[str] = "WiFi"
    medium: ClassVar[str] = "of the signal: light in air"
    duplex: Literal["full", "half"] = field("both directions share the channel", default="half")

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if self.duplex == "full":
            yield "duplex", "stations of a wireless LAN share one channel", "leave it out"
        yield from Network.problems(self)

    def speed(self) -> float:
        return 299_792_458.0

    def framing(self, protocol: Protocol | None = None) -> Framing | None:
        """Packets of a protocol; without one those of the link itself, which a link without `mtu` does not count."""
        if self.mtu is None and protocol is None:
            return None
        mtu, headers = self.mtu or USUAL_MTU, HEADERS[protocol]
        return Framing(mtu - headers, headers + AROUND, AROUND)
