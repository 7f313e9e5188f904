"""A network card: one rate out, one rate in, and what each message takes.

    n messages:  overhead at both ends + latency + max((n - 1) x overhead, n / message rate, bytes / rate)

**Source**: the LogGP model (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): o of a message at either end, g = 1 / rate of
messages, G = 1 / bandwidth. With TCP and UDP o is time of a core, with RDMA of the card.
**Error**: the overheads of real stacks vary with the kernel, its version and the load by a factor of two.
**Range**: no interrupt moderation, no batching of small messages; a message of a TCP stream is one call.

A switch: passes traffic on. A full crossbar, or one backplane that all its ports share.

    cut-through:        latency
    store-and-forward:  latency + packet / bandwidth of the link it came on
    backplane:          as given, or what all links at it carry out together / oversubscription

**Source**: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapters 3 and 13.
**Error**: the crossbar is ideal; real ones lose some per cent to arbitration.
**Range**: buffers are unbounded and lossless: no drops, no pauses that spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from hwsim.demand import Capacity
from hwsim.devices.kind import Device
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem, did_you_mean
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Seconds

PROTOCOLS: Final = ("tcp", "udp", "rdma")
ON_CORES: Final = ("tcp", "udp")  # whose messages a core of the host handles


@dataclass(frozen=True, slots=True)
class Nic(Device):
    """Bytes to the network draw from `tx`, bytes from the network from `rx`."""

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
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)

    def problems(self) -> Iterator[Problem]:
        for protocol in self.overhead:
            if protocol not in PROTOCOLS:
                yield f"overhead.{protocol}", f"unknown protocol '{protocol}'", did_you_mean(protocol, PROTOCOLS)

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        both = Capacity.of(name, "tx", self.bandwidth, "B"), Capacity.of(name, "rx", self.bandwidth, "B")
        if self.message_rate is None:
            return both
        rate = self.message_rate
        return *both, Capacity.of(name, "tx_messages", rate, "1"), Capacity.of(name, "rx_messages", rate, "1")


@dataclass(frozen=True, slots=True)
class Switch(Device):
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
    reduces: bool = field(
        "it adds up what its ports send, as NVSwitches since Hopper and InfiniBand switches with SHARP do", default=False
    )
    ports: int | None = field("network ports it has; unchecked if left out", default=None, minimum=0)
    nvlinks: int | None = field("NVLink links it has; unchecked if left out", default=None, minimum=0)

    def problems(self) -> Iterator[Problem]:
        if self.bandwidth is not None and self.oversubscription is not None:
            yield "oversubscription", "the backplane is given twice", "leave out `bandwidth` or `oversubscription`"

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        """The backplane, where its bandwidth is stated; one that follows from the links is the machine's to work out."""
        return () if self.bandwidth is None else (Capacity.of(name, "backplane", self.bandwidth, "B"),)
