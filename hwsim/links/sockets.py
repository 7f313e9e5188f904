"""Links between the sockets of an Intel server: QuickPath (QPI, 2008 to 2016) and Ultra Path Interconnect (UPI).

    20 lanes per direction, 16 of them for data:  bandwidth = links x transfers/s x 2 bytes x efficiency

**Source**: Intel, "An Introduction to the Intel QuickPath Interconnect", 2009: 2 bytes of data per transfer and direction, flits
of 80 bits with 64 of data. Defaults of QPI: Xeon E5 v3 and v4 (datasheet: 9.6 GT/s, 2 links per socket). Intel Xeon Scalable
processor datasheet, 2017. 20 lanes, hence 2 bytes of data per transfer and direction after protocol bits, as in QPI. Defaults
of UPI: first generation (10.4 GT/s, 2 links); Sapphire Rapids has up to 4 at 16 GT/s.
**Error**: without `efficiency`, the bandwidth is the peak. Headers and snoops lower it: a cache line of 64 bytes takes 9 flits
(8/9).
"""

from __future__ import annotations

from typing import Final

from hwsim.links.kind import LinkKind
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Ratio, TransfersPerSecond

DATA: Final = 2  # data bytes per transfer and direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Qpi(LinkKind):
    """A bundle of parallel QPI links.

    >>> Qpi(links=1).peak() / 1e9
    19.2
    """

    kind, called, short, joins, colour = "qpi", "QPI", "QPI", "sockets", "red"
    examples = ({"rate": "9.6 GT/s", "links": 2, "efficiency": "90 %"},)
    rate: TransfersPerSecond = field("transfers per second of one link", default=9.6e9, exclusive_minimum=0.0)
    links: int = field("number of parallel links", default=2, minimum=1)
    efficiency: Ratio = field("achieved fraction of the peak bandwidth", default=1.0, exclusive_minimum=0.0)

    def peak(self) -> float:
        return self.links * self.rate * DATA

    def carried(self) -> float:
        return self.peak() * self.efficiency

    def formula(self) -> Cited:
        wires = f"{self.links} {self.called} links at {self.rate / 1e9:g} GT/s, 2 bytes each (Intel)"
        return self.reached(wires, self.efficiency)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upi(Qpi):
    """A bundle of parallel UPI links.

    >>> Upi(links=1).peak() / 1e9
    20.8
    """

    kind, called, short = "upi", "UPI", "UPI"
    examples = ({"rate": "10.4 GT/s", "links": 2, "efficiency": "90 %"},)
    rate: TransfersPerSecond = field("transfers per second of one link", default=10.4e9, exclusive_minimum=0.0)
