"""A memory of its own, reached over links: a CXL expander, a second NUMA domain, a scratch pool."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from hwsim.demand import Capacity
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Memory:
    """One bandwidth for reading and writing together."""

    kind: ClassVar[str] = "memory"
    bandwidth: BytesPerSecond = field("reading and writing together", exclusive_minimum=0.0)
    size: Bytes | None = field("bytes it holds; unlimited if left out", default=None, exclusive_minimum=0.0)
    latency: Seconds = field("first byte of a copy", default=0.0)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return (Capacity(f"{name}.memory", 1.0),)

    def copy_bytes(self, name: str, size: float) -> tuple[str, float]:
        """What a transfer that leaves (or reaches) it draws of it: memory time."""
        return f"{name}.memory", size / self.bandwidth

    def copy_latency(self) -> float:
        """Seconds before the first byte of a transfer that ends here."""
        return self.latency
