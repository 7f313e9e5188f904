"""Between the sockets of an Intel server: 20 lanes a direction, of which 16 carry data.

    carried = links x transfers/s x 2 bytes x efficiency

**Source**: Intel, "An Introduction to the Intel QuickPath Interconnect", 2009: 2 bytes of data per transfer and direction, flits
of 80 bits with 64 of data.
**Error**: without `efficiency` what the wires carry; headers and snoops take more: a line of 64 bytes goes in 9 flits, 8/9.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hwsim.links.carrier import Carrier, reached
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Ratio, TransfersPerSecond

DATA: Final = 2  # bytes per transfer and direction


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketLink(Carrier):
    """A transfer rate, and how many links run side by side."""

    budget: ClassVar[str] = ""
    network: ClassVar[bool] = False
    called: ClassVar[str] = ""
    rate: TransfersPerSecond = field("transfers per second of one link", default=9.6e9, exclusive_minimum=0.0)
    links: int = field("links side by side", default=2, minimum=1)
    efficiency: Ratio = field("part of what the wires carry that is reached", default=1.0, exclusive_minimum=0.0)

    def peak(self) -> float:
        """Bytes per second that the wires carry in each direction."""
        return self.links * self.rate * DATA

    def carried(self) -> float:
        """Bytes per second of payload in each direction."""
        return self.peak() * self.efficiency

    def formula(self) -> str:
        """Where `carried` is from, in words."""
        wires = f"{self.links} {self.called} links at {self.rate / 1e9:g} GT/s, 2 bytes each (Intel)"
        return wires + reached(self.efficiency, self.sources.get("efficiency"))

    def uses(self) -> int:
        """Nothing that devices count."""
        return 0
