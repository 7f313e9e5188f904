"""A link described by its two numbers, whatever it is made of."""

from __future__ import annotations

from hwsim.links.kind import LinkKind
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Metres


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(LinkKind):
    """Bandwidth and latency as given. A network, but where it joins a network card to its own host."""

    kind, called, short, colour = "direct", "direct", "DIR", "sky"
    joins, network, budget = "anything", True, "ports"
    examples = ({"bandwidth": "10 GB/s", "length": "100 m"},)
    bandwidth: BytesPerSecond = field("each direction", exclusive_minimum=0.0)
    length: Metres = field("of the cable, in glass fibre", default=0.0)

    def peak(self) -> float:
        return self.bandwidth

    def distance(self) -> float:
        return self.length
