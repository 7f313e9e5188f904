"""Network storage shared by many clients: NFS, Lustre, GPFS, an object store.

    n requests of one client: min(n / (latency + size / stream), requests, client / size) per second; all clients: `bandwidth`
    a single stream: stream x stripes, at most client and bandwidth

All clients share the aggregate bandwidth; the limits of one client or one stream apply to each op separately.
A file with `stripes` targets is read from all of them at once, at stream x stripes, but never faster than the client's link.
Source: LogGP-like arithmetic; Lustre operations manual (striping); Amazon S3 performance guide (bandwidth of one request).
Error: not measured; the accelerators limit the published rows of MLPerf Storage.
Range: no metadata server beyond `requests`, no client cache.
"""

from __future__ import annotations

import math
from typing import ClassVar

from hwsim.demand import Cost
from hwsim.devices.kind import Storage
from hwsim.devices.roofline import Input, source_of
from hwsim.devices.storage import Direction, StorageAccesses, StorageLimit, cost_of, count_input, key_input, size_input
from hwsim.formats import precise
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Filesystem(Storage):
    """A network storage with aggregate, per-client and per-stream limits; numbers for writes default to those for reads."""

    kind: ClassVar[str] = "filesystem"
    bandwidth: BytesPerSecond = field("aggregate read bandwidth of all clients", exclusive_minimum=0.0)
    write_bandwidth: BytesPerSecond | None = field("aggregate write bandwidth of all clients; `bandwidth` if omitted",
                                                   default=None, exclusive_minimum=0.0)  # fmt: skip
    client: BytesPerSecond | None = field("bandwidth of one client, e.g. of its mount or NIC; unlimited if omitted",
                                          default=None, exclusive_minimum=0.0)  # fmt: skip
    stream: BytesPerSecond | None = field("bandwidth of one request to one storage target; unlimited if omitted",
                                          default=None, exclusive_minimum=0.0)  # fmt: skip
    stripes: int = field("stripe count: number of storage targets of a file", default=1, minimum=1)
    requests: PerSecond | None = field("aggregate requests per second of all clients; unlimited if omitted",
                                       default=None, exclusive_minimum=0.0)  # fmt: skip
    latency: Seconds = field("latency to the first byte of a request", default=0.0)
    write_latency: Seconds | None = field("latency to the acknowledgement of a write, without its transfer; `latency` if omitted",
                                          default=None)  # fmt: skip
    queue: int = field("maximum number of requests of one client in flight", default=65536, minimum=1)
    request: Bytes = field("maximum request size; a larger access is split into requests that are sent together",
                           default=2.0**20, exclusive_minimum=0.0)  # fmt: skip
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)

    def serve(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        key, rate = "bandwidth", self.bandwidth
        if direction == "write" and self.write_bandwidth is not None:
            key, rate = "write_bandwidth", self.write_bandwidth
        speed = key_input("bandwidth", rate, "B/s", self.sources, key)
        limits = [
            StorageLimit(
                "media", "times x size / bandwidth", (count_input(accesses), size_input(accesses), speed), accesses.bytes / rate
            )
        ]
        if self.requests is not None:
            count = accesses.times * max(1.0, math.ceil(accesses.size / self.request))
            inputs = (("count", precise(count, "1"), f"requests of at most {precise(self.request, 'B')}"),)
            request_rate = key_input("most", self.requests, "1/s", self.sources, "requests")
            limits.append(StorageLimit("requests", "count / most", (*inputs, request_rate), count / self.requests))
        floors = []
        if self.client is not None:
            inputs_client = (
                count_input(accesses),
                size_input(accesses),
                key_input("client", self.client, "B/s", self.sources, "client"),
            )
            floors.append(StorageLimit("client", "times x size / client", inputs_client, accesses.bytes / self.client))
        latency, slow = self.latency, "latency"
        if direction == "write" and self.write_latency is not None:
            latency, slow = self.write_latency, "write_latency"
        start = latency if accesses.access == "sequential" else 0.0
        waits, depth = accesses.waits, accesses.at_once(self.queue)
        stream_rate = min(limit for limit in (rate, self.client, self.stream and self.stream * self.stripes) if limit)
        key = "bandwidth" if stream_rate == rate else "client" if stream_rate == self.client else "stream"
        source = f"{key}: " + source_of(self.sources, key) + (f", {self.stripes} stripes" if key == "stream" else "")
        terms: tuple[Input, ...] = (
            count_input(accesses),
            ("waits", precise(waits, "1"), "requests exposed to the latency"),
            ("latency", precise(latency, "s"), f"{slow}: " + source_of(self.sources, slow)),
            size_input(accesses),
            ("alone", precise(stream_rate, "B/s"), source),
            accesses.under_way(self.queue),
        )
        formula = "(waits x latency + times x size / alone) / at once"
        moving = accesses.bytes / stream_rate / depth if key != "client" else 0.0
        floors.append(StorageLimit("accesses", formula, terms, (waits * latency + accesses.bytes / stream_rate) / depth, moving))
        return cost_of(name, accesses, limits, floors, ("first byte", start, f"{slow}: " + source_of(self.sources, slow)))
