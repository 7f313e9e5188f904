"""QuickPath Interconnect: between the sockets of an Intel server.

    bandwidth = links x transfers/s x 2 bytes

Source: Intel, "An Introduction to the Intel QuickPath Interconnect", 2009: 2 bytes of data per transfer
and direction.  Defaults: Xeon E5 v3 and v4 (datasheet: 9.6 GT/s, 2 links per socket).
Error: what the wires carry; snoops and headers take more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hwsim.spec.fields import field
from hwsim.units import Seconds, TransfersPerSecond


@dataclass(frozen=True, slots=True)
class Qpi:
    """A transfer rate, and how many links run side by side."""

    kind: ClassVar[str] = "qpi"
    budget: ClassVar[str] = ""
    network: ClassVar[bool] = False
    rate: TransfersPerSecond = field("transfers per second of one link", default=9.6e9, exclusive_minimum=0.0)
    links: int = field("links side by side", default=2, minimum=1)
    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()

    def peak(self) -> float:
        """Bytes per second in each direction.

        >>> Qpi(links=1).peak() / 1e9
        19.2
        """
        return self.links * self.rate * 2

    def formula(self) -> str:
        """Where `peak` is from, in words."""
        return f"{self.links} QPI links at {self.rate / 1e9:g} GT/s, 2 bytes each (Intel)"

    def uses(self) -> int:
        """Nothing that devices count."""
        return 0
