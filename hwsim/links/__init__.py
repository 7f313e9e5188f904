"""Every link kind hwsim knows.  A new kind is a new file here and a name in this union."""

from __future__ import annotations

from typing import Final

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.direct import Direct
from hwsim.links.ethernet import Ethernet
from hwsim.links.infiniband import Infiniband
from hwsim.links.nvlink import Nvlink
from hwsim.links.omnipath import Omnipath
from hwsim.links.pcie import Pcie
from hwsim.links.qpi import Qpi
from hwsim.links.slingshot import Slingshot
from hwsim.links.upi import Upi
from hwsim.links.wifi import Wifi
from hwsim.links.xgmi import Xgmi

LinkKind = Direct | Ethernet | Infiniband | Nvlink | Omnipath | Pcie | Qpi | Slingshot | Upi | Wifi | Xgmi

KINDS: Final[dict[str, type[LinkKind]]] = {
    "direct": Direct,
    "ethernet": Ethernet,
    "infiniband": Infiniband,
    "nvlink": Nvlink,
    "omnipath": Omnipath,
    "pcie": Pcie,
    "qpi": Qpi,
    "slingshot": Slingshot,
    "upi": Upi,
    "wifi": Wifi,
    "xgmi": Xgmi,
}

__all__ = [
    "KINDS",
    "Direct",
    "Ethernet",
    "Framing",
    "Infiniband",
    "LinkKind",
    "Nvlink",
    "Omnipath",
    "Pcie",
    "Protocol",
    "Qpi",
    "Slingshot",
    "Upi",
    "Wifi",
    "Xgmi",
]
