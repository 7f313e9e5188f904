"""NVLink: generation x number of links.

Source: NVIDIA's per-link figures, each direction: 20 GB/s (P100 whitepaper, 2016), 25 GB/s (V100
whitepaper, 2017; A100, 2020; H100, 2022: two lane pairs instead of four), 50 GB/s (Blackwell, 2024).
Error: what the wires carry.  Large copies reach 83 to 92 % of it; state what is sustained as `bandwidth:`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Seconds

# Generation: bytes per second of one link in each direction.
GENERATIONS: Final[Mapping[int, float]] = {1: 20e9, 2: 25e9, 3: 25e9, 4: 25e9, 5: 50e9}


@dataclass(frozen=True, slots=True)
class Nvlink:
    """A generation, and how many of its links run side by side."""

    kind: ClassVar[str] = "nvlink"
    budget: ClassVar[str] = "nvlinks"
    network: ClassVar[bool] = False
    gen: Literal[1, 2, 3, 4, 5] | None = field("generation", default=None)
    links: int = field("links side by side", default=1, minimum=1)
    bandwidth: BytesPerSecond | None = field(
        "of one link in each direction, instead of what the generation gives", default=None, exclusive_minimum=0.0
    )
    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if self.bandwidth is None and self.gen is None:
            yield "kind", "an nvlink link needs gen", "write `gen: 2`, or the `bandwidth: 25 GB/s` of one link"
        if self.bandwidth is not None and self.gen is not None:
            yield "gen", "the generation has no effect beside a bandwidth", "leave out one of them"

    def peak(self) -> float:
        """Bytes per second in each direction.

        >>> Nvlink(gen=2, links=2).peak() / 1e9
        50.0
        """
        return self.links * (GENERATIONS[self.gen or 1] if self.bandwidth is None else self.bandwidth)

    def formula(self) -> str:
        """Where `peak` is from, in words."""
        which = "of a given bandwidth" if self.bandwidth is not None else f"of NVLink {self.gen} (NVIDIA)"
        return f"{self.links} links {which}"

    def uses(self) -> int:
        """NVLink links it takes of the device at either end."""
        return self.links
