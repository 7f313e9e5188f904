"""Ultra Path Interconnect: between the sockets of an Intel server since 2017.

**Source**: Intel Xeon Scalable processor datasheet, 2017: 20 lanes, hence 2 bytes of data per transfer and direction after
protocol bits, as in QPI.  Defaults: first generation (10.4 GT/s, 2 links); Sapphire Rapids has up to 4 at 16 GT/s.
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.links.sockets import SocketLink
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import TransfersPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Upi(SocketLink):
    """A transfer rate, and how many links run side by side.

    >>> Upi(links=1).peak() / 1e9
    20.8
    """

    kind: ClassVar[str] = "upi"
    called: ClassVar[str] = "UPI"
    rate: TransfersPerSecond = field("transfers per second of one link", default=10.4e9, exclusive_minimum=0.0)
