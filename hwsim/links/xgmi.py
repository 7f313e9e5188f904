"""xGMI (Infinity Fabric): links between AMD GPUs and between EPYC sockets.

    bandwidth = links x lanes x transfers/s / 8 bit x efficiency

**Source**: AMD: 16 lanes per link and direction; EPYC 7002 and 7003 at 16 to 18 GT/s. MI200 at 25 GT/s (50 GB/s per link and
direction: AMD Instinct MI250 datasheet), MI300X at 32 GT/s (64 GB/s: AMD CDNA 3 white paper, 2023). Default: MI300X.
**Error**: without `efficiency`, the bandwidth is the peak. CRC and headers lower it, and one DMA engine does not saturate a link.
"""

from __future__ import annotations

from collections.abc import Iterator

from hwsim.links.kind import LinkKind, ineffective_keys
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import BytesPerSecond, Ratio, TransfersPerSecond


@dataclass(frozen=True, slots=True, kw_only=True)
class Xgmi(LinkKind):
    """A bundle of parallel xGMI links."""

    kind, called, short, joins, colour = "xgmi", "xGMI", "XGMI", "gpus", "red"
    budget = "xgmi_links"
    examples = ({"rate": "16 GT/s", "lanes": 16, "links": 2, "efficiency": "90 %"}, {"bandwidth": "30 GB/s"})
    rate: TransfersPerSecond = field("transfers per second of one lane", default=32e9, exclusive_minimum=0.0)
    lanes: int = field("number of lanes of a link", default=16, minimum=1)
    links: int = field("number of parallel links", default=1, minimum=1)
    bandwidth: BytesPerSecond | None = field(
        "bandwidth of one link in each direction (default: from `rate` and `lanes`)", default=None, exclusive_minimum=0.0
    )
    efficiency: Ratio = field("achieved fraction of the peak bandwidth", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        yield from ineffective_keys(self.bandwidth, {"efficiency": self.efficiency < 1})
        yield from LinkKind.problems(self)

    def peak(self) -> float:
        """>>> Xgmi().peak() / 1e9
        64.0
        """
        return self.links * (self.rate * self.lanes / 8 if self.bandwidth is None else self.bandwidth)

    def carried(self) -> float:
        return self.peak() * self.efficiency

    def formula(self) -> Cited:
        rate = f"{self.lanes} lanes at {self.rate / 1e9:g} GT/s (AMD)"
        source = f"of {'a stated bandwidth' if self.bandwidth is not None else rate}"
        return self.reached(f"{self.links} xGMI links {source}", self.efficiency)

    def uses(self) -> int:
        return self.links
