"""Ethernet: a data rate each way.

Source: IEEE 802.3.
Error: the line rate.  Frames, IP and TCP headers take 5.9 % of it at an MTU of 1500 bytes, 1 % at 9000.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Ethernet:
    """A rate, in bits as on the label (`25 Gb/s`) or in bytes."""

    kind: ClassVar[str] = "ethernet"
    budget: ClassVar[str] = "ports"
    network: ClassVar[bool] = True
    rate: BytesPerSecond = field("each direction, e.g. 25 Gb/s", exclusive_minimum=0.0)
    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()

    def peak(self) -> float:
        """Bytes per second in each direction."""
        return self.rate

    def formula(self) -> str:
        """Where `peak` is from, in words."""
        return "Ethernet rate as given"

    def uses(self) -> int:
        """Ports it takes of the device at either end."""
        return 1
