"""Overheads that a communication library adds to the links: it takes time to start and to step, and does not fill them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from hwsim.demand import softened
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds


@dataclass(frozen=True, slots=True)
class Overheads:
    """Nothing by default: links at their rates and latencies, as a textbook counts.

    Between the time of a start and the bandwidth of long messages lies a knee, carried by the floor of a demand:

        t = start + steps x step + (S + h (1 - exp(-S / h))) / B          h: `knee`

    Source of the knee: fitted, 2.1 % mean error leaving one size out on an all-reduce among 8 H200 from 32 KiB to 16 GiB
    (stas00/ml-engineering@744d01e18b79, network/README.md) against 10.5 % for a straight line fitted to the same.
    """

    kind: ClassVar[str] = "overheads"

    start: Seconds = field("once, before the first byte: the kernel's or the call's own", default=0.0)
    step: Seconds = field("of each step beyond the latency of its links", default=0.0)
    hop: Seconds | None = field("of a step between nodes; as `step` if left out", default=None)
    efficiency: Ratio = field("part of the links' rate that long messages reach", default=1.0, exclusive_minimum=0.0)
    knee: Bytes = field("bytes of extra time that a message has grown to once it is long", default=0.0)
    compute: Ratio = field("part of each GPU's compute it holds while it runs", default=0.0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def told(self, sources: Mapping[str, Origin]) -> Overheads:
        """The same, knowing where its numbers are from."""
        found = dataclasses.replace(self)
        object.__setattr__(found, "sources", sources)
        return found

    def of_step(self, across: bool) -> float:
        """Seconds that a step takes beyond its links, between nodes or not."""
        return self.step if self.hop is None or not across else self.hop

    def slowdown(self, size: float) -> float:
        """Time of a message of that size over its time at full speed, its latency aside: 1 to 2.

        >>> Overheads(knee=1e6).slowdown(1.0), round(Overheads(knee=1e6).slowdown(1e6), 3), Overheads().slowdown(8.0)
        (1.9999995000001667, 1.632, 1.0)
        """
        return softened(size, self.knee) / size if size > 0 else 1.0


PLAIN = Overheads()
