"""Kinds of links: peak bandwidth, packet headers and latency of each.

To add a kind, write a module with a subclass of `hwsim.links.kind.LinkKind` and add a line to `KINDS`.
"""

from __future__ import annotations

from typing import Final

from hwsim.links.kind import Framing, Keys, LatencyPart, LinkKind, Protocol
from hwsim.spec.kinds import KindTable

KINDS: Final = KindTable[type[LinkKind]](
    {
        "direct": "hwsim.links.direct:DirectLink",
        "ethernet": "hwsim.links.ethernet:Ethernet",
        "infiniband": "hwsim.links.fabrics:Infiniband",
        "nvlink": "hwsim.links.nvlink:Nvlink",
        "omnipath": "hwsim.links.fabrics:Omnipath",
        "pcie": "hwsim.links.pcie:Pcie",
        "qpi": "hwsim.links.sockets:Qpi",
        "slingshot": "hwsim.links.fabrics:Slingshot",
        "upi": "hwsim.links.sockets:Upi",
        "wifi": "hwsim.links.ethernet:Wifi",
        "xgmi": "hwsim.links.xgmi:Xgmi",
    }
)

__all__ = ["KINDS", "Framing", "Keys", "LatencyPart", "LinkKind", "Protocol"]
