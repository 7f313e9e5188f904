"""A network card: one rate out, one rate in, and the time a message takes to pass it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hwsim.demand import Capacity
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Nic:
    """What leaves for the network draws from `tx`, what comes from it from `rx`."""

    kind: ClassVar[str] = "nic"
    bandwidth: BytesPerSecond = field("each direction, e.g. 25 Gb/s", exclusive_minimum=0.0)
    latency: Seconds = field("of a message that passes it", default=0.0)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return Capacity(f"{name}.tx", self.bandwidth, "B"), Capacity(f"{name}.rx", self.bandwidth, "B")
