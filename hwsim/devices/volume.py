"""A cloud volume: provisioned accesses and bytes per second, and burst credits.

    base = clamp(iops, iops_per_gib x size, iops_most),   burst duration = credits / (demand - base)

Both limits are token buckets: while the demand exceeds the refill rate, credits are spent, and then the base rate remains.
An access larger than `chunk` counts as several accesses; small sequential accesses are merged up to `chunk`.
Source: Amazon EBS user guide (volume types); Google and Azure sell the same with other numbers.
Error: the bucket is exact (brute force in the tests); the effect of other tenants of the storage is not modelled.
Range: each op starts with full credits (or as `credits` states), whatever earlier ops spent. If identical ops would take
longer as a single op, the run warns (see `hwsim.workload.totals`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from hwsim.demand import Cost
from hwsim.devices.kind import Storage
from hwsim.devices.roofline import Input, source_of
from hwsim.devices.storage import Direction, StorageAccesses, StorageLimit, burst_amount, cost_of, drain_time
from hwsim.formats import precise
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Seconds

_GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Volume(Storage):
    """A cloud volume with base and burst limits on accesses and bytes per second, for reads and writes together."""

    kind: ClassVar[str] = "volume"
    iops: PerSecond = field("baseline accesses per second", exclusive_minimum=0.0)
    bandwidth: BytesPerSecond = field("baseline bandwidth", exclusive_minimum=0.0)
    iops_per_gib: PerSecond = field("baseline accesses per second for each GiB of `size`, if that exceeds `iops`", default=0.0)
    iops_most: PerSecond | None = field("upper limit of the baseline accesses per second; unlimited if omitted",
                                        default=None, exclusive_minimum=0.0)  # fmt: skip
    burst_iops: PerSecond | None = field("accesses per second while `credits` last", default=None, exclusive_minimum=0.0)
    credits: float = field("burst credits at the start of an op, in accesses", default=0.0, minimum=0.0)
    burst_bandwidth: BytesPerSecond | None = field("bandwidth while `byte_credits` last", default=None, exclusive_minimum=0.0)
    byte_credits: Bytes = field("burst credits at the start of an op, in bytes", default=0.0)
    chunk: Bytes = field("largest access that is counted as one; a larger access counts as several",
                         default=262144.0, exclusive_minimum=0.0)  # fmt: skip
    latency: Seconds = field("latency of one access", default=0.0)
    write_latency: Seconds | None = field("latency of one write; `latency` if omitted", default=None)
    queue: int = field("maximum number of accesses in flight", default=65536, minimum=1)
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        if self.iops_per_gib and self.size is None:
            yield "iops_per_gib", "`iops_per_gib` requires a size", "add `size: 500 GiB`"
        if self.credits and self.burst_iops is None:
            yield "credits", "`credits` requires a burst rate", "add `burst_iops: 3 kIOPS`"
        if self.byte_credits and self.burst_bandwidth is None:
            yield "byte_credits", "`byte_credits` requires a burst bandwidth", "add `burst_bandwidth: 250 MiB/s`"

    @property
    def base(self) -> float:
        """Baseline accesses per second."""
        grown = max(self.iops, self.iops_per_gib * (self.size or 0.0) / _GIB)
        return grown if self.iops_most is None else min(grown, self.iops_most)

    def serve(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        key = "write_latency" if direction == "write" and self.write_latency is not None else "latency"
        one_s = (self.write_latency if key == "write_latency" else self.latency) or 0.0
        chunks = math.ceil(accesses.size / self.chunk) if accesses.access == "random" else accesses.size / self.chunk
        count = accesses.times * max(chunks, 1.0 if accesses.access == "random" else 0.0)
        start = one_s if accesses.access == "sequential" else 0.0
        waits, depth = accesses.waits, accesses.at_once(self.queue)
        cap = accesses.times / (waits * one_s / depth) if waits * one_s > 0 else math.inf  # latency-bound rate (1/s)
        limits, floors = [], []
        for label, amount, unit, base, burst, stock, stock_key in (
            ("iops", count, "1/s", self.base, self.burst_iops, self.credits, "credits"),
            ("bandwidth", accesses.bytes, "B/s", self.bandwidth, self.burst_bandwidth, self.byte_credits, "byte_credits"),
        ):
            if amount <= 0:
                continue
            if accesses.of_service:  # a service has spent its credits
                stock = 0.0
            fast = max(base, burst or base) if stock > 0 else base
            per = amount / accesses.times
            limits.append(self._bucket(label, amount, unit, fast, base, stock, label, stock_key))
            if base < cap * per < fast:
                floors.append(self._bucket(f"{label} at this depth", amount, unit, cap * per, base, stock, label, stock_key))
        if math.isfinite(cap):
            waits_inputs: tuple[Input, ...] = (
                ("waits", precise(waits, "1"), "accesses exposed to the latency"),
                ("latency", precise(one_s, "s"), f"{key}: " + source_of(self.sources, key)),
                accesses.under_way(self.queue),
            )
            floors.append(StorageLimit("accesses", "waits x latency / at once", waits_inputs, waits * one_s / depth))
        return cost_of(name, accesses, limits, floors, ("first access", start, f"{key}: " + source_of(self.sources, key)))

    def _bucket(
        self, label: str, amount: float, unit: str, fast: float, base: float, stock: float, base_key: str, stock_key: str
    ) -> StorageLimit:
        seconds = drain_time(amount, fast, base, stock)
        plain = "B" if unit == "B/s" else "1"
        amount_input: Input = ("amount", precise(amount, plain), "amount counted against the limit")
        quick: Input = ("fast", precise(fast, unit), f"{base_key}, burst: " + source_of(self.sources, base_key))
        burst = burst_amount(amount, fast, base, stock)
        if burst is None:
            return StorageLimit(label, "amount / fast", (amount_input, quick), seconds)
        first: Input = ("first", precise(burst, plain), f"{stock_key} of {precise(stock, plain)}, until used up")
        slow: Input = ("base", precise(base, unit), f"{base_key}: " + source_of(self.sources, base_key))
        return StorageLimit(
            label, "first / fast + (amount - first) / base", (first, quick, amount_input, slow), seconds, (amount - burst) / base
        )
