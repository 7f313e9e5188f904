"""A switch: passes traffic on.  A full crossbar, or one backplane that all its ports share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hwsim.demand import Capacity
from hwsim.spec.fields import field
from hwsim.units import BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Switch:
    """Without `bandwidth` a full crossbar: only the links at its ports limit."""

    kind: ClassVar[str] = "switch"
    latency: Seconds = field("of what passes it", default=0.0)
    bandwidth: BytesPerSecond | None = field(
        "of its backplane, all ports together; a full crossbar if left out", default=None, exclusive_minimum=0.0
    )
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)
    nvlinks: int | None = field("NVLink links it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return () if self.bandwidth is None else (Capacity(f"{name}.backplane", self.bandwidth, "B"),)
