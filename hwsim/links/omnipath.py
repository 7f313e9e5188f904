"""Omni-Path: 100 Gb/s each way over four lanes, the fabric of HPC clusters from 2015.

    packets of up to 10 KiB (usually 8 KiB) with headers as InfiniBand's, in flits of 65 bits of which 64 are data

**Source**: Birrittella et al., "Intel Omni-Path Architecture: Enabling Scalable, High Performance Fabrics", Hot Interconnects,
2015: 4 lanes of 25.78125 Gb/s with 64b/66b, 12.5 GB/s each way; transfer packets of 1056 bits: 16 flits of 65 bits and 16 bits
of CRC and credits.
**Error**: the data rate where no `mtu` is given.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hwsim.links.carrier import Framing, Protocol
from hwsim.links.network import Network
from hwsim.records import dataclass

AROUND: Final = 26.0
FLITS: Final = 1024 / 1056  # data bits of a transfer packet


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnipath(Network):
    """A rate, in bits as on the label (`100 Gb/s`) or in bytes."""

    kind: ClassVar[str] = "omnipath"
    called: ClassVar[str] = "Omni-Path"

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (one kind of packet)
        """Its packets, where `mtu` says how large they are; the CRC of the flits is counted with the headers."""
        return None if self.mtu is None else Framing(self.mtu, (self.mtu + AROUND) / FLITS - self.mtu, AROUND)
