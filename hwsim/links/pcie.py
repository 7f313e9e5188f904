"""PCI Express: generation x lanes x encoding.

    bandwidth = lanes x transfers/s x encoding / 8 bit

Source: PCI Express Base Specification, revisions 1.0a to 6.0 (PCI-SIG): 2.5 and 5 GT/s with 8b/10b
encoding; 8, 16 and 32 GT/s with 128b/130b; 64 GT/s (PAM4) in FLITs of 256 bytes, of which 236
carry packets, 6 the data link layer and 14 CRC and FEC.
Error: what the wires carry.  Packet headers and flow control take more: a copy of megabytes
reaches 78 % (generation 3) to 90 % of it; state what is sustained as `bandwidth:`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Seconds

# Generation: transfers per second and lane, and the part of the bits that is not line code.
GENERATIONS: Final[Mapping[int, tuple[float, float]]] = {
    1: (2.5e9, 8 / 10),
    2: (5e9, 8 / 10),
    3: (8e9, 128 / 130),
    4: (16e9, 128 / 130),
    5: (32e9, 128 / 130),
    6: (64e9, 236 / 256),
}


@dataclass(frozen=True, slots=True)
class Pcie:
    """A generation and a number of lanes, or a bandwidth as given."""

    kind: ClassVar[str] = "pcie"
    budget: ClassVar[str] = "lanes"
    network: ClassVar[bool] = False
    gen: Literal[1, 2, 3, 4, 5, 6] | None = field("generation", default=None)
    lanes: Literal[1, 2, 4, 8, 12, 16, 32] | None = field("lanes it is wide", default=None)
    bandwidth: BytesPerSecond | None = field(
        "each direction, instead of what generation and lanes give", default=None, exclusive_minimum=0.0
    )
    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if self.bandwidth is None and (self.gen is None or self.lanes is None):
            missing = "gen and lanes" if self.gen is None and self.lanes is None else "lanes" if self.lanes is None else "gen"
            yield "kind", f"a pcie link needs {missing}", "write `gen: 3, lanes: 16`, or its `bandwidth: 16 GB/s`"
        if self.bandwidth is not None and self.gen is not None:
            yield "gen", "the generation has no effect beside a bandwidth", "leave out one of them"

    def peak(self) -> float:
        """Bytes per second in each direction.

        >>> round(Pcie(gen=3, lanes=16).peak() / 1e9, 2)
        15.75
        """
        if self.bandwidth is not None:
            return self.bandwidth
        rate, encoding = GENERATIONS[self.gen or 1]
        return (self.lanes or 0) * rate * encoding / 8

    def formula(self) -> str:
        """Where `peak` is from, in words."""
        return "bandwidth as given" if self.bandwidth is not None else f"PCIe {self.gen}, {self.lanes} lanes (PCI-SIG)"

    def uses(self) -> int:
        """Lanes it takes of the device at either end; 0 where they are not stated."""
        return self.lanes or 0
