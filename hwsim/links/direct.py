"""A link described by its two numbers, whatever it is made of."""

from __future__ import annotations

from typing import ClassVar

from hwsim.links.carrier import Carrier
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Metres


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(Carrier):
    """Bandwidth and latency as given."""

    kind: ClassVar[str] = "direct"
    budget: ClassVar[str] = "ports"
    network: ClassVar[bool] = True
    bandwidth: BytesPerSecond = field("each direction", exclusive_minimum=0.0)
    length: Metres = field("of the cable, in glass fibre", default=0.0)

    def peak(self) -> float:
        """Bytes per second in each direction."""
        return self.bandwidth

    def carried(self) -> float:
        """Bytes per second of payload in each direction."""
        return self.bandwidth

    def formula(self) -> str:
        """Where `carried` is from, in words."""
        return "bandwidth as given"

    def distance(self) -> float:
        return self.length
