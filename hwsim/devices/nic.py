"""A network card: one rate out, one rate in, and what each message takes.

    n messages:  overhead at both ends + latency + max((n - 1) x overhead, n / message rate, bytes / rate)

**Source**: the LogGP model (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): o of a message at either end, g = 1 / rate of
messages, G = 1 / bandwidth.  With TCP and UDP o is time of a core, with RDMA of the card.
**Error**: the overheads of real stacks vary with the kernel, its version and the load by a factor of two.
**Range**: no interrupt moderation, no batching of small messages; a message of a TCP stream is one call.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from hwsim.demand import Capacity
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import did_you_mean
from hwsim.units import BytesPerSecond, PerSecond, Seconds, Watts

PROTOCOLS: Final = ("tcp", "udp", "rdma")
ON_CORES: Final = ("tcp", "udp")  # whose messages a core of the host handles


@dataclass(frozen=True, slots=True)
class Nic:
    """What leaves for the network draws from `tx`, what comes from it from `rx`."""

    kind: ClassVar[str] = "nic"
    bandwidth: BytesPerSecond = field("each direction, e.g. 25 Gb/s", exclusive_minimum=0.0)
    latency: Seconds = field("of a message that passes it", default=0.0)
    protocol: Literal["tcp", "udp", "rdma"] | None = field(
        "of what does not say its own; messages cost nothing of their own if left out", default=None
    )
    overhead: Mapping[str, Seconds] = field(
        "of a message at either end by protocol: time of a core (tcp, udp), of the card (rdma)",
        default_factory=dict,
        example="{tcp: 3 us, udp: 2 us, rdma: 300 ns}",
    )
    message_rate: PerSecond | None = field("messages per second in each direction", default=None, exclusive_minimum=0.0)
    power: Watts | None = field("the most it may draw", default=None)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        for protocol in self.overhead:
            if protocol not in PROTOCOLS:
                yield f"overhead.{protocol}", f"unknown protocol '{protocol}'", did_you_mean(protocol, PROTOCOLS)

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        both = Capacity(f"{name}.tx", self.bandwidth, "B"), Capacity(f"{name}.rx", self.bandwidth, "B")
        if self.message_rate is None:
            return both
        rate = self.message_rate
        return *both, Capacity(f"{name}.tx_messages", rate, "1"), Capacity(f"{name}.rx_messages", rate, "1")
