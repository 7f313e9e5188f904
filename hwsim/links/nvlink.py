"""NVLink: generation x number of links x what flits leave x what is reached.

    wires   = links x bandwidth of one
    carried = wires x payload / (payload + header) x efficiency

**Source**: NVIDIA's per-link figures, each direction: 20 GB/s (P100 whitepaper, 2016), 25 GB/s (V100 whitepaper, 2017; A100,
2020; H100, 2022: two lane pairs instead of four), 50 GB/s (Blackwell, 2024). Flits of 16 bytes, packets of up to 256 bytes of
data and one header flit (Foley and Danskin, IEEE Micro 37(2), 2017).
**Error**: without `payload` and `efficiency` what the wires carry; large copies reach 83 to 92 % of it. The library's nvlink2
to nvlink5 state what was published.
**Range**: large transfers between two GPUs; traffic that meets inside an NVSwitch shares its links, not its crossbar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from hwsim.links.kind import Framing, LinkKind, void_keys
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Ratio

# Generation: bytes per second of one link in each direction.
GENERATIONS: Final[Mapping[int, float]] = {1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink(LinkKind):
    """A generation, and how many of its links run side by side."""

    kind, called, short, joins, colour = "nvlink", "NVLink", "NV", "gpus", "green"
    budget = "nvlinks"
    examples = (
        {"gen": 2, "links": 2, "payload": "256 B", "header": "16 B", "efficiency": "90 %"},
        {"bandwidth": "20 GB/s"},
    )
    gen: Literal[1, 2, 3, 4, 5] | None = field("generation", default=None)
    links: int = field("links side by side", default=1, minimum=1)
    bandwidth: BytesPerSecond | None = field(
        "of one link in each direction, instead of what the generation gives", default=None, exclusive_minimum=0.0
    )
    payload: Bytes | None = field(
        "most bytes of data in a packet; headers cost nothing if left out", default=None, exclusive_minimum=0.0
    )
    header: Bytes = field("bytes of flits beside the data", default=16.0)
    efficiency: Ratio = field("part of what packets leave that is reached", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        if self.bandwidth is None and self.gen is None:
            yield "kind", "an nvlink link needs gen", "write `gen: 2`, or the `bandwidth: 25 GB/s` of one link"
        stated = {"gen": self.gen is not None, "payload": self.payload is not None, "efficiency": self.efficiency < 1}
        yield from void_keys(self.bandwidth, stated)
        yield from LinkKind.problems(self)

    def peak(self) -> float:
        """Bytes per second that the wires carry in each direction.

        >>> Nvlink(gen=2, links=2).peak() / 1e9
        50.0
        """
        return self.links * (GENERATIONS[self.gen or 1] if self.bandwidth is None else self.bandwidth)

    def carried(self) -> float:
        """Bytes per second of payload in each direction.

        >>> round(Nvlink(gen=3, links=12, payload=256).carried() / 1e9)
        282
        """
        packets = 1.0 if self.payload is None else Framing(self.payload, self.header).share()
        return self.peak() * packets * self.efficiency

    def formula(self) -> Cited:
        which = "of a given bandwidth" if self.bandwidth is not None else f"of NVLink {self.gen} (NVIDIA)"
        packets = "" if self.payload is None else f", {self.payload:g} of {self.payload + self.header:g} bytes of a packet"
        return self.reached(f"{self.links} links {which}{packets}", self.efficiency)

    def label(self) -> str:
        return self.called if self.gen is None else f"{self.called} {self.gen}"

    def uses(self) -> int:
        return self.links
