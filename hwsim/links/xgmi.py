"""xGMI (Infinity Fabric): between AMD GPUs, and between EPYC sockets.

    carried = links x lanes x transfers/s / 8 bit x efficiency

**Source**: AMD: 16 lanes a link and direction; EPYC 7002 and 7003 at 16 to 18 GT/s. MI200 at 25 GT/s (50 GB/s a link and
direction: AMD Instinct MI250 datasheet), MI300X at 32 GT/s (64 GB/s: AMD CDNA 3 white paper, 2023). Default: MI300X.
**Error**: without `efficiency` what the wires carry; CRC and headers take a part, and one DMA engine does not fill a link.
"""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.links.kind import LinkKind, void_keys
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import BytesPerSecond, Ratio, TransfersPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Xgmi(LinkKind):
    """A transfer rate, lanes and the number of parallel links."""

    kind, called, short, joins, colour = "xgmi", "xGMI", "XGMI", "gpus", "red"
    budget = "xgmi_links"
    examples = ({"rate": "16 GT/s", "lanes": 16, "links": 2, "efficiency": "90 %"}, {"bandwidth": "30 GB/s"})
    rate: TransfersPerSecond = field("transfers per second of a lane", default=32e9, exclusive_minimum=0.0)
    lanes: int = field("lanes of a link", default=16, minimum=1)
    links: int = field("links side by side", default=1, minimum=1)
    bandwidth: BytesPerSecond | None = field(
        "of one link in each direction, instead of what rate and lanes give", default=None, exclusive_minimum=0.0
    )
    efficiency: Ratio = field("part of what the wires carry that is reached", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        yield from void_keys(self.bandwidth, {"efficiency": self.efficiency < 1})
        yield from LinkKind.problems(self)

    def peak(self) -> float:
        """>>> Xgmi().peak() / 1e9
        64.0
        """
        return self.links * (self.rate * self.lanes / 8 if self.bandwidth is None else self.bandwidth)

    def carried(self) -> float:
        return self.peak() * self.efficiency

    def formula(self) -> Cited:
        which = (
            "of a given bandwidth" if self.bandwidth is not None else f"of {self.lanes} lanes at {self.rate / 1e9:g} GT/s (AMD)"
        )
        return self.reached(f"{self.links} xGMI links {which}", self.efficiency)

    def uses(self) -> int:
        return self.links
