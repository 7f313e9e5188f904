"""InfiniBand: a data rate each way.

    packets of up to 4096 bytes with 26 around them: LRH 8, BTH 12, ICRC 4, VCRC 2

**Source**: InfiniBand Architecture Specification, volume 1 (IBTA): 100 Gb/s (EDR), 200 (HDR), 400 (NDR) for four lanes.
**Error**: the data rate where no `mtu` is given; headers take 0.6 % of it at 4096 bytes.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.network import Network
from hwsim.records import dataclass

AROUND: Final = 26.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Infiniband(Network):
    """A rate, in bits as on the label (`400 Gb/s`) or in bytes.

    >>> round(100 * Infiniband(rate=50e9, mtu=4096).framing().share(), 1)
    99.4
    """

    kind: ClassVar[str] = "infiniband"
    called: ClassVar[str] = "InfiniBand"

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        """Its packets, where `mtu` says how large they are."""
        return None if self.mtu is None else Framing(self.mtu, AROUND, AROUND)
