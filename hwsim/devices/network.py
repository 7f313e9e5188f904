"""A NIC: one rate out, one rate in, and the overhead of each message.

    n messages:  overhead at both ends + latency + max((n - 1) x overhead, n / message rate, bytes / rate)

**Source**: the LogGP model (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): o of a message at each end, g = 1 / message
rate, G = 1 / bandwidth. With TCP and UDP, o is CPU core time; with RDMA, NIC time.
**Error**: the overheads of real stacks vary by a factor of two with the kernel, its version and the load.
**Range**: no interrupt moderation, no batching of small messages; a message of a TCP stream is one call.

A switch, which forwards traffic: a full crossbar, or one backplane that all ports share.

    cut-through:        latency
    store-and-forward:  latency + packet / bandwidth of the incoming link
    backplane:          as given, or total outgoing bandwidth of its links / oversubscription

**Source**: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapters 3 and 13.
**Error**: the crossbar is ideal; real ones lose a few per cent to arbitration.
**Range**: unbounded, lossless buffers: no drops, no congestion spreading by pause frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal

from hwsim.demand import Capacity
from hwsim.devices.kind import Device
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.library import names
from hwsim.spec.mistakes import Problem, did_you_mean
from hwsim.units import Bytes, BytesPerSecond, DataRate, PerSecond, Seconds

PROTOCOLS: Final = ("tcp", "udp", "rdma")
ON_CORES: Final = ("tcp", "udp")  # protocols whose messages a host core handles


@dataclass(frozen=True, slots=True)
class Nic(Device):
    """A NIC; transmitted bytes use the capacity `tx`, received bytes `rx`."""

    kind: ClassVar[str] = "nic"
    bandwidth: DataRate = field("bandwidth in each direction", exclusive_minimum=0.0)
    latency: Seconds = field("latency that the NIC adds to a message", default=0.0)
    protocol: Literal["tcp", "udp", "rdma"] | None = field("protocol of messages that state none; if omitted, such messages have "
                                                           "no overhead", default=None)  # fmt: skip
    overhead: Mapping[str, Seconds] = field("overhead of a message at each end by protocol: CPU core time (tcp, udp) or NIC time "
                                            "(rdma)",
                                            default_factory=dict, example="{tcp: 3 us, udp: 2 us, rdma: 300 ns}")  # fmt: skip
    message_rate: PerSecond | None = field("maximum messages per second in each direction; unlimited if omitted",
                                           default=None, exclusive_minimum=0.0)  # fmt: skip
    ports: int | None = field("number of network ports; not checked if omitted", default=None, minimum=0)
    fabric: str | None = field("network constants for NCCL, a file of machines/parts/fabric (default: by the kind of its links)",
                               default=None, example="efa")  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        for protocol in self.overhead:
            if protocol not in PROTOCOLS:
                yield f"overhead.{protocol}", f"unknown protocol '{protocol}'", did_you_mean(protocol, PROTOCOLS)
        if self.fabric is not None and self.fabric not in (known := names("fabric")):
            yield "fabric", f"there is no fabric '{self.fabric}' in the library", did_you_mean(self.fabric, known)

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        both = Capacity.of(name, "tx", self.bandwidth, "B"), Capacity.of(name, "rx", self.bandwidth, "B")
        if self.message_rate is None:
            return both
        rate = self.message_rate
        return *both, Capacity.of(name, "tx_messages", rate, "1"), Capacity.of(name, "rx_messages", rate, "1")


@dataclass(frozen=True, slots=True)
class Switch(Device):
    """A switch; without `bandwidth` or `oversubscription` a full crossbar, limited only by the links at its ports."""

    kind: ClassVar[str] = "switch"
    latency: Seconds = field("latency that the switch adds", default=0.0)
    bandwidth: BytesPerSecond | None = field("backplane bandwidth of all ports together; a full crossbar if omitted",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip
    oversubscription: float | None = field("total link bandwidth divided by backplane bandwidth, e.g. 3 for 3:1; alternative to "
                                           "`bandwidth`", default=None, minimum=1.0)  # fmt: skip
    forwarding: Literal["cut-through", "store-and-forward"] = field("store-and-forward: a packet is forwarded after it has "
                                                                    "arrived completely", default="cut-through")  # fmt: skip
    packet: Bytes = field("packet size for store-and-forward", default=1538.0, exclusive_minimum=0.0)
    reduces: bool = field("in-network reduction, as in NVSwitch since Hopper and InfiniBand switches with SHARP", default=False)
    ports: int | None = field("number of network ports; not checked if omitted", default=None, minimum=0)
    nvlinks: int | None = field("number of NVLink links; not checked if omitted", default=None, minimum=0)

    def problems(self) -> Iterator[Problem]:
        if self.bandwidth is not None and self.oversubscription is not None:
            yield "oversubscription", "two backplanes: expected `bandwidth` or `oversubscription`, got both", None

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        """Return the backplane if its bandwidth is stated; the machine derives a backplane from the links."""
        return () if self.bandwidth is None else (Capacity.of(name, "backplane", self.bandwidth, "B"),)
