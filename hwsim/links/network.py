"""What the networks between machines have in common: a rate, a cable, packets of a protocol.

rate as given, or with `mtu`:  carried = rate x payload / (payload + headers) x efficiency
latency = that of the ports + length / (2/3 of light)
"""

from __future__ import annotations

from typing import ClassVar

from hwsim.links.carrier import Carrier, Framing, reached
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Metres, Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Network(Carrier):
    """A rate, in bits as on the label (`25 Gb/s`) or in bytes."""

    budget: ClassVar[str] = "ports"
    network: ClassVar[bool] = True
    called: ClassVar[str] = ""
    rate: BytesPerSecond = field("each direction, e.g. 25 Gb/s", exclusive_minimum=0.0)
    length: Metres = field("of the cable: the signal goes at two thirds of light", default=0.0)
    mtu: Bytes | None = field(
        "most bytes in a packet, headers of the protocol included; packets cost nothing if left out",
        default=None,
        minimum=128.0,
        example="1500 B",
    )
    efficiency: Ratio = field(
        "part of the rate that long messages reach, beside what packets take", default=1.0, exclusive_minimum=0.0
    )

    def peak(self) -> float:
        """Bytes per second on the wire in each direction."""
        return self.rate

    def carried(self) -> float:
        """Bytes per second on the wire that are reached; `framing` says what a message takes of them."""
        return self.rate * self.efficiency

    def formula(self) -> str:
        """Where `carried` is from, in words."""
        return f"{self.called} rate as given" + reached(self.efficiency, self.sources.get("efficiency"))

    def distance(self) -> float:
        return self.length


def power_of_two(most: float, *, largest: float = 4096.0) -> float:
    """The largest power of two from 256 to `largest` that is at most `most`: what RDMA takes as its payload.

    >>> power_of_two(1500), power_of_two(9000)
    (1024.0, 4096.0)
    """
    size = largest
    while size > most and size > 256:
        size /= 2
    return size


__all__ = ["Framing", "Network", "power_of_two"]
