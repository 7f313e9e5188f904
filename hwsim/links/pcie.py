"""PCI Express: the bandwidth of a link, from its generation, width and packet overhead.

    peak      = lanes x transfers/s x encoding / 8 bit
    bandwidth = peak x payload / (payload + header) x efficiency

**Source**: PCI Express Base Specification, revisions 1.0a to 6.0 (PCI-SIG). 2.5 and 5 GT/s with 8b/10b encoding; 8, 16 and
32 GT/s with 128b/130b. 64 GT/s (PAM4) in FLITs of 256 bytes: 236 for packets, 6 for the data link layer, 14 for CRC and
FEC. A write of up to `payload` bytes (Max_Payload_Size: 128, 256 or 512) has a header of 12 or 16 bytes and, up to revision 5,
8 bytes of framing, sequence number and LCRC: 20 to 28 bytes in total.
**Error**: without `payload` and `efficiency`, the bandwidth is the peak; copies of several megabytes reach 77 to 88 % of it. The
library's pcie3-x16, pcie4-x16 and pcie5-x16 state both, fitted to published copies.
**Range**: transfers of many packets. The startup time of a copy belongs to the copy engine (`copies` of a GPU). Two directions
together carry less than twice one direction (`two_way`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, cast

from hwsim.links.kind import Framing, LinkKind, ineffective_keys
from hwsim.origins import Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Ratio

# Generation -> (transfers per second and lane, share of the bits that carry packets).
GENERATIONS: Final[Mapping[int, tuple[float, float]]] = {
    1: (2.5e9, 8 / 10),
    2: (5e9, 8 / 10),
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 236 / 256),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pcie(LinkKind):
    """A PCI Express link, given by generation and lanes, or by bandwidth."""

    kind, called, short, joins, colour = "pcie", "PCIe", "PCIE", "host", "blue"
    budget, trains = "lanes", "pcie"
    examples = (
        {"gen": 3, "lanes": 8, "payload": "256 B", "header": "26 B", "efficiency": "90 %"},
        {"bandwidth": "12 GB/s"},
    )
    gen: Literal[1, 2, 3, 4, 5, 6] | None = field("PCIe generation", default=None)
    lanes: Literal[1, 2, 4, 8, 12, 16, 32] | None = field("link width", default=None)
    bandwidth: BytesPerSecond | None = field(
        "bandwidth in each direction, instead of `gen` and `lanes`", default=None, exclusive_minimum=0.0
    )
    payload: Bytes | None = field(
        "maximum payload of a packet (Max_Payload_Size); no packet overhead if omitted", default=None, exclusive_minimum=0.0
    )
    header: Bytes | None = field("bytes of a packet besides its payload (default: 26 B; generation 6: 16 B)", default=None)
    efficiency: Ratio = field(
        "achieved share of the bandwidth that remains after packet overhead", default=1.0, exclusive_minimum=0.0
    )
    fetches: Ratio = field(
        "share of that bandwidth reached by a device that reads the memory at the other end, limited by its outstanding reads",
        default=1.0,
        exclusive_minimum=0.0,
    )

    def problems(self) -> Iterator[Problem]:
        if self.bandwidth is None and (self.gen is None or self.lanes is None):
            missing = "gen and lanes" if self.gen is None and self.lanes is None else "lanes" if self.lanes is None else "gen"
            yield "kind", f"a pcie link needs {missing}", "write `gen: 3, lanes: 16`, or its `bandwidth: 16 GB/s`"
        stated = {"gen": self.gen is not None, "payload": self.payload is not None, "efficiency": self.efficiency < 1}
        yield from ineffective_keys(self.bandwidth, stated)
        yield from LinkKind.problems(self)

    def peak(self) -> float:
        """Peak bandwidth in each direction (B/s), before packet overhead.

        >>> round(Pcie(gen=3, lanes=16).peak() / 1e9, 2)
        15.75
        """
        if self.bandwidth is not None:
            return self.bandwidth
        rate, encoding = GENERATIONS[self.gen or 1]
        return (self.lanes or 0) * rate * encoding / 8

    def carried(self) -> float:
        """Bandwidth of payloads in each direction (B/s).

        >>> round(Pcie(gen=3, lanes=16, payload=256, efficiency=0.9).carried() / 1e9, 2)
        12.87
        """
        if self.bandwidth is not None:
            return self.bandwidth
        packets = 1.0 if self.payload is None else Framing(self.payload, self._header()).share()
        return self.peak() * packets * self.efficiency

    def formula(self) -> Cited:
        if self.bandwidth is not None:
            return "bandwidth as given"
        packets = "" if self.payload is None else f", {self.payload:g} of {self.payload + self._header():g} bytes of a packet"
        return self.reached(f"PCIe {self.gen}, {self.lanes} lanes (PCI-SIG){packets}", self.efficiency)

    def _header(self) -> float:
        """Overhead of a packet (B). A FLIT of generation 6 has framing and CRC of its own, which the encoding contains."""
        return self.header if self.header is not None else 16.0 if self.gen == 6 else 26.0

    def label(self) -> str:
        return self.called if self.gen is None or self.lanes is None else f"{self.called} {self.gen} x{self.lanes}"

    def generation(self) -> int:
        return 0 if self.bandwidth is not None else self.gen or 0

    def at(self, generation: int) -> Pcie:
        header = self.header if (generation == 6) == (self.gen == 6) else None
        slower = replace(self, gen=cast("Literal[1, 2, 3, 4, 5, 6]", generation), header=header)
        object.__setattr__(slower, "sources", self.sources)  # no key of a file, hence no argument
        return slower

    def fetched(self) -> Ratio:
        return self.fetches

    def uses(self) -> int:
        """Number of lanes that the link occupies on each of its devices; 0 if unknown."""
        return self.lanes or 0
