"""Every link kind hwsim knows.  A new kind is a new file here and a name in this union."""

from __future__ import annotations

from typing import Final

from hwsim.links.direct import Direct
from hwsim.links.ethernet import Ethernet
from hwsim.links.infiniband import Infiniband
from hwsim.links.nvlink import Nvlink
from hwsim.links.pcie import Pcie
from hwsim.links.qpi import Qpi
from hwsim.links.upi import Upi

LinkKind = Direct | Ethernet | Infiniband | Nvlink | Pcie | Qpi | Upi

KINDS: Final[dict[str, type[LinkKind]]] = {
    "direct": Direct,
    "ethernet": Ethernet,
    "infiniband": Infiniband,
    "nvlink": Nvlink,
    "pcie": Pcie,
    "qpi": Qpi,
    "upi": Upi,
}

__all__ = ["KINDS", "Direct", "Ethernet", "Infiniband", "LinkKind", "Nvlink", "Pcie", "Qpi", "Upi"]
