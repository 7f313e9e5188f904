"""A generic communication library: start and step times in addition to the links, of whose bandwidth it reaches a part."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from hwsim.demand import knee_bytes
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds


@dataclass(frozen=True, slots=True)
class Overheads:
    """The overheads of a communication library. By default they are zero: links at their bandwidth and latency.

        t = start + steps x step + (S + h (1 - exp(-S / h))) / B

    S: message size.  B: bandwidth of long messages.  h: `knee`, extra bytes that appear as the message grows.

    Source of the knee: fitted, 2.1 % average error, cross-validated over sizes, for an all-reduce among 8 H200 from 32 KiB to 16
    GiB (stas00/ml-engineering@744d01e18b79, network/README.md); a straight line fitted to the same data has 10.5 %.
    """

    kind: ClassVar[str] = "overheads"

    start: Seconds = field("start time of a collective (kernel or call), before its first byte", default=0.0)
    step: Seconds = field("time of each step, besides the latency of its links", default=0.0)
    hop: Seconds | None = field("time of each step between nodes (default: `step`)", default=None)
    efficiency: Ratio = field("fraction of the link bandwidth that long messages reach", default=1.0, exclusive_minimum=0.0)
    knee: Bytes = field("overhead of a long message, as the bytes that take the same time", default=0.0)
    compute: Ratio = field("fraction of each GPU's compute units used during a collective", default=0.0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # source of each key

    def told(self, sources: Mapping[str, Origin]) -> Overheads:
        """Return a copy with the sources of its numbers."""
        found = dataclasses.replace(self)
        object.__setattr__(found, "sources", sources)
        return found

    def of_step(self, across: bool) -> float:
        """Return the time (s) of a step without its links; across: between nodes."""
        return self.step if self.hop is None or not across else self.hop

    def slowdown(self, size: float) -> float:
        """Return the transfer time of a message relative to that at full bandwidth (1 to 2), without latency.

        >>> Overheads(knee=1e6).slowdown(1.0), round(Overheads(knee=1e6).slowdown(1e6), 3), Overheads().slowdown(8.0)
        (1.9999995000001667, 1.632, 1.0)
        """
        return knee_bytes(size, self.knee) / size if size > 0 else 1.0


PLAIN = Overheads()
