"""A switch: passes traffic on.  A full crossbar, or one backplane that all its ports share.

    cut-through:        latency
    store-and-forward:  latency + packet / bandwidth of the link it came on
    backplane:          as given, or what all links at it carry out together / oversubscription

**Source**: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapters 3 and 13.
**Error**: the crossbar is ideal; real ones lose some per cent to arbitration.
**Range**: buffers are unbounded and lossless: no drops, no pauses that spread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal

from hwsim.demand import Capacity
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Seconds, Watts


@dataclass(frozen=True, slots=True)
class Switch:
    """Without `bandwidth` or `oversubscription` a full crossbar: only the links at its ports limit."""

    kind: ClassVar[str] = "switch"
    latency: Seconds = field("of what passes it", default=0.0)
    bandwidth: BytesPerSecond | None = field(
        "of its backplane, all ports together; a full crossbar if left out", default=None, exclusive_minimum=0.0
    )
    oversubscription: float | None = field(
        "links at its ports to backplane, e.g. 3 for 3:1; instead of `bandwidth`", default=None, minimum=1.0
    )
    forwarding: Literal["cut-through", "store-and-forward"] = field(
        "store-and-forward: a packet leaves once all of it is there", default="cut-through"
    )
    packet: Bytes = field("what it stores before it forwards", default=1538.0, exclusive_minimum=0.0)
    power: Watts | None = field("the most it may draw", default=None)
    reduces: bool = field(
        "it adds up what its ports send, as NVSwitches since Hopper and InfiniBand switches with SHARP do", default=False
    )
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)
    nvlinks: int | None = field("NVLink links it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if self.bandwidth is not None and self.oversubscription is not None:
            yield "oversubscription", "the backplane is given twice", "leave out `bandwidth` or `oversubscription`"

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        """The backplane, where its bandwidth is stated; one that follows from the links is the machine's to work out."""
        return () if self.bandwidth is None else (Capacity(f"{name}.backplane", self.bandwidth, "B"),)
