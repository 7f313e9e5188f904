"""Slingshot: HPE's Ethernet for supercomputers, 200 Gb/s a port.

    packets carry up to 4096 bytes of an RDMA message with 30 to 62 bytes of headers and Ethernet's preamble and gap

**Source**: De Sensi et al., "An In-Depth Analysis of the Slingshot Interconnect", SC 2020: 200 Gb/s ports, Ethernet with the
preamble, gap and minimal frame cut down (32 bytes instead of 64) for RDMA between its own parts; switch latency 350 ns.
**Error**: the data rate where no `mtu` is given; the headers counted here (14 + 4 Ethernet, 44 RoCE) are those of plain Ethernet.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.network import Network, power_of_two
from hwsim.records import dataclass

AROUND: Final = 62.0
LEAST: Final = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slingshot(Network):
    """A rate, in bits as on the label (`200 Gb/s`) or in bytes."""

    kind: ClassVar[str] = "slingshot"
    called: ClassVar[str] = "Slingshot"

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        """Its packets, where `mtu` says how large they are."""
        return None if self.mtu is None else Framing(power_of_two(self.mtu), AROUND, LEAST)
