"""QuickPath Interconnect: between the sockets of an Intel server, 2008 to 2016.

**Source**: as `hwsim.links.sockets`; defaults: Xeon E5 v3 and v4 (datasheet: 9.6 GT/s, 2 links per socket).
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.links.sockets import SocketLink
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Qpi(SocketLink):
    """A transfer rate, and how many links run side by side.

    >>> Qpi(links=1).peak() / 1e9
    19.2
    """

    kind: ClassVar[str] = "qpi"
    called: ClassVar[str] = "QPI"
