"""NVLink: bandwidth by generation, number of links, packet headers and efficiency.

    peak      = links x bandwidth of one link
    bandwidth = peak x payload / (payload + header) x efficiency

**Source**: NVIDIA's per-link figures, each direction: 20 GB/s (P100 whitepaper, 2016), 25 GB/s (V100 whitepaper, 2017; A100,
2020; H100, 2022: two lane pairs instead of four), 50 GB/s (Blackwell, 2024). Flits of 16 bytes, packets of up to 256 bytes of
data and one header flit (Foley and Danskin, IEEE Micro 37(2), 2017).
**Error**: without `payload` and `efficiency`, the bandwidth is the peak, of which large copies reach 83 to 92 %. The library's
parts nvlink2 to nvlink5 contain published values of both.
**Range**: large transfers between two GPUs. Flows through one NVSwitch contend for its links, not for its crossbar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from hwsim.links.kind import Framing, LinkKind, ineffective_keys
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Ratio

# Generation: bytes per second of one link in each direction.
GENERATIONS: Final[Mapping[int, float]] = {1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink(LinkKind):
    """A bundle of parallel NVLinks of one generation."""

    kind, called, short, joins, colour = "nvlink", "NVLink", "NV", "gpus", "green"
    budget = "nvlinks"
    examples = (
        {"gen": 2, "links": 2, "payload": "256 B", "header": "16 B", "efficiency": "90 %"},
        {"bandwidth": "20 GB/s"},
    )
    gen: Literal[1, 2, 3, 4, 5] | None = field("NVLink generation", default=None)
    links: int = field("number of parallel links", default=1, minimum=1)
    bandwidth: BytesPerSecond | None = field(
        "bandwidth of one link in each direction (default: by `gen`)", default=None, exclusive_minimum=0.0
    )
    payload: Bytes | None = field("maximum data bytes of a packet (default: no overhead)", default=None, exclusive_minimum=0.0)
    header: Bytes = field("header bytes of a packet", default=16.0)
    efficiency: Ratio = field("achieved fraction of the rate after packet headers", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        if self.bandwidth is None and self.gen is None:
            yield "kind", "an nvlink link requires `gen` or `bandwidth`", "gen: 2, or bandwidth: 25 GB/s (of one link)"
        stated = {"gen": self.gen is not None, "payload": self.payload is not None, "efficiency": self.efficiency < 1}
        yield from ineffective_keys(self.bandwidth, stated)
        yield from LinkKind.problems(self)

    def peak(self) -> float:
        """Return the peak bandwidth of each direction (bytes/s).

        >>> Nvlink(gen=2, links=2).peak() / 1e9
        50.0
        """
        return self.links * (GENERATIONS[self.gen or 1] if self.bandwidth is None else self.bandwidth)

    def carried(self) -> float:
        """Return the payload bandwidth of each direction (bytes/s).

        >>> round(Nvlink(gen=3, links=12, payload=256).carried() / 1e9)
        282
        """
        packets = 1.0 if self.payload is None else Framing(self.payload, self.header).share()
        return self.peak() * packets * self.efficiency

    def formula(self) -> Cited:
        source = "of a stated bandwidth" if self.bandwidth is not None else f"of NVLink {self.gen} (NVIDIA)"
        packets = "" if self.payload is None else f", {self.payload:g} of {self.payload + self.header:g} bytes of a packet"
        return self.reached(f"{self.links} links {source}{packets}", self.efficiency)

    def label(self) -> str:
        return self.called if self.gen is None else f"{self.called} {self.gen}"

    def uses(self) -> int:
        return self.links
