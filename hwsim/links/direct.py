"""A link of any technology, described by its bandwidth and latency."""

from __future__ import annotations

from hwsim.links.kind import LinkKind
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Metres


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectLink(LinkKind):
    """A link with a stated bandwidth and latency. It counts as a network link unless it connects a NIC to its own host."""

    kind, called, short, colour = "direct", "direct", "DIR", "sky"
    joins, network, budget = "anything", True, "ports"
    examples = ({"bandwidth": "10 GB/s", "length": "100 m"},)
    bandwidth: BytesPerSecond = field("bandwidth in each direction", exclusive_minimum=0.0)
    length: Metres = field("length of the cable (glass fibre), for the propagation delay", default=0.0)

    def peak(self) -> float:
        return self.bandwidth

    def distance(self) -> float:
        return self.length
