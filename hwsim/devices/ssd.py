"""A solid-state drive, described by its data sheet, by its flash, or by both.

    accesses per second with n in flight = rate_at(n, one, most, sharpness)      (see `hwsim.devices.contention`)

- `one`: the time of a single access: the `latency` of the data sheet (4 KiB), or controller + flash + interface.
- `most`: the maximum rate: the `iops` of the data sheet up to the bandwidth, or the rate of the chips and channels (see
  `hwsim.devices.flash`). Numbers that are omitted are derived from the flash.
- Random writes in steady state are slower by the write amplification, which the `write_iops` of a data sheet includes.
- A write smaller than the mapping `unit` writes the whole unit (16 to 64 KiB on QLC drives). The drive's read of the rest of the
  unit, a tenth of the time or less, is not modelled.
- `cache` (SLC cells or DRAM) takes writes at its own rate until it is full, and drains at the steady rate (a token bucket).

Source: data sheets; `hwsim.devices.flash` for flash.
Error: random reads of three sizes at queue depths 1..512, from geometry alone: 2.9 % on average against MQSim; fresh writes
1.3 %; drives measured with fio 5.5 % (docs/validation/components.md).
Range: each op starts with an empty cache; if identical writes would take longer as a single op, the run warns. The tail
latency of reads that wait for a program or an erase on their chip requires the request-level simulation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from hwsim.demand import Cost, Term
from hwsim.devices.contention import Mixture, ParallelChips, device_share_at, rate_at
from hwsim.devices.flash import Endurance, Flash, amplification, moved_pages
from hwsim.devices.kind import Storage, prefix_problems
from hwsim.devices.roofline import Input, source_of
from hwsim.devices.storage import (
    PAGE,
    Direction,
    StorageAccesses,
    StorageLimit,
    burst_amount,
    cost_of,
    count_input,
    drain_time,
    key_input,
    size_input,
)
from hwsim.formats import format_quantity, precise
from hwsim.origins import GIVEN, Cited
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Ratio, Seconds


@dataclass(frozen=True, slots=True)
class WriteCache:
    """A write cache of SLC cells or DRAM."""

    size: Bytes = field("capacity of the write cache", exclusive_minimum=0.0)
    write: BytesPerSecond = field("write bandwidth until the cache is full", exclusive_minimum=0.0)
    iops: PerSecond | None = field("random writes per second until the cache is full; limited only by `write` if omitted",
                                   default=None, exclusive_minimum=0.0)  # fmt: skip
    latency: Seconds | None = field("latency of a write into the cache; that of the drive if omitted", default=None)


@dataclass(frozen=True, slots=True)
class Ssd(Storage):
    """A solid-state drive; stated numbers override those derived from its flash."""

    kind: ClassVar[str] = "ssd"
    read: BytesPerSecond | None = field("sequential read bandwidth; derived from `flash` if omitted",
                                        default=None, exclusive_minimum=0.0)  # fmt: skip
    write: BytesPerSecond | None = field("sequential write bandwidth after any cache is full; if omitted, from `flash`, else "
                                         "`read`", default=None, exclusive_minimum=0.0)  # fmt: skip
    latency: Seconds | None = field("latency of a single random 4 KiB read; derived from `flash` if omitted", default=None)
    sequential_latency: Seconds | None = field("latency to the first byte of a sequential read or write; the random latency if "
                                               "omitted", default=None)  # fmt: skip
    write_latency: Seconds | None = field("latency of a single random 4 KiB write; if omitted, from `flash`, else `latency`",
                                          default=None)  # fmt: skip
    iops: PerSecond | None = field("maximum random 4 KiB reads per second; if omitted, derived from `flash`, else set by `read`",
                                   default=None, exclusive_minimum=0.0)  # fmt: skip
    write_iops: PerSecond | None = field("maximum random 4 KiB writes per second in steady state; if omitted, derived from "
                                         "`flash`, else set by `write`", default=None, exclusive_minimum=0.0)  # fmt: skip
    sharpness: float = field("sharpness of the knee in IOPS over queue depth; a large value makes a corner",
                             default=1.5, exclusive_minimum=0.0)  # fmt: skip
    queue: int = field("maximum queue depth (SATA 32, NVMe up to 64 Ki in each queue)", default=65536, minimum=1)
    interface: BytesPerSecond | None = field("bandwidth of SATA or PCIe, net of protocol overhead; unlimited if omitted",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip
    controller: Seconds = field("controller time of each access, added to a latency that is derived from `flash`", default=0.0)
    turnaround: Seconds = field("time lost at each change between reading and writing", default=0.0)
    flush: Seconds = field("extra time of a write with `sync`; 0 with power-loss protection", default=0.0)
    flash: Flash | None = field("NAND flash of the drive", default=None)
    unit: Bytes | None = field("mapping unit, the smallest amount that is written; if omitted, the flash page without a cache, "
                               "else 4 KiB", default=None, exclusive_minimum=0.0)  # fmt: skip
    over_provisioning: Ratio | None = field("share of the flash that the host cannot address; no write amplification if omitted",
                                            default=None, minimum=0.0, maximum=1.0)  # fmt: skip
    reserve: Ratio = field("share of the flash kept free for garbage collection and open blocks",
                           default=0.0, minimum=0.0, maximum=0.99)  # fmt: skip
    state: Literal["fresh", "steady"] = field("steady: random writes wait for garbage collection, after long use; fresh: the "
                                              "drive was never fully written", default="steady")  # fmt: skip
    cache: WriteCache | None = field("write cache (SLC cells or DRAM)", default=None)
    endurance: Endurance | None = field("limit on the bytes written during the drive's life",
                                        default=None, record="no simulation wears the drive out")  # fmt: skip
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        if self.flash is None:
            if self.read is None:
                yield "read", "an SSD requires a read bandwidth", "add `read: 3 GB/s`, or its `flash:`"
            if self.latency is None:
                yield "latency", "an SSD requires a read latency", "add `latency: 100 us`, or its `flash:`"
        if self.cache is not None and self.cache.write < self.write_bandwidth:
            yield "cache.write", "the write cache is slower than the drive behind it", "remove the cache"
        if self.endurance is not None:
            yield from prefix_problems("endurance", self.endurance.problems())

    # ---- what it does, whichever way it is described ----

    @property
    def amplification(self) -> float:
        """Write amplification of random writes: pages programmed per page written."""
        if self.state == "fresh" or self.over_provisioning is None:
            return 1.0
        return amplification(self.over_provisioning, self.reserve)

    @property
    def write_bandwidth(self) -> float:
        """Sequential write bandwidth behind the cache at a high queue depth (B/s)."""
        return self._capped(
            self.write or self._striped(math.inf, 1 << 20) if self.flash is not None else self.write or self.read or 0.0
        )

    def one(self, direction: Direction, size: float) -> float:
        """Return the time of a single random access (s)."""
        stated = self.latency if direction == "read" else self.write_latency
        if stated is None and self.flash is not None:
            return self.controller + self.flash.one(direction, size) + (size / self.interface if self.interface else 0.0)
        stated = stated if stated is not None else self.latency or 0.0
        rate = self.bandwidth(direction)
        return stated + max(0.0, size - PAGE) / rate

    def own(self, direction: Direction, size: float) -> float:
        """Return the part of the time of a single random access beyond its latency (s), which scales with the drive's speed."""
        return self.one(direction, size) - self.one(direction, min(size, PAGE))

    def bandwidth(self, direction: Direction) -> float:
        """Return the sequential bandwidth at a high queue depth (B/s)."""
        if direction == "write":
            return self.write_bandwidth
        if self.read is not None or self.flash is None:
            return self._capped(self.read or 0.0)
        return self._capped(self.flash.reads(self.flash.page, striped=True) * self.flash.page)

    def most(self, direction: Direction, size: float) -> float:
        """Return the maximum rate of random accesses of a size at any queue depth (1/s)."""
        size = max(size, 1.0)
        if direction == "read":
            limit = (
                self.iops if self.iops is not None else math.inf if self.flash is None else self.flash.reads(size, striped=False)
            )
            return min(limit, self.bandwidth("read") / size)
        units_bytes = max(1.0, math.ceil(size / self.smallest)) * self.smallest
        cap = self._capped(math.inf) / size
        if self.write_iops is not None:
            at_page = max(1.0, math.ceil(PAGE / self.smallest)) * self.smallest
            share = at_page / units_bytes if self.state == "steady" else 1.0  # garbage collection is per byte
            return min(self.write_iops * min(1.0, share), self.bandwidth("write") / size, cap)
        if self.flash is None:
            return min(self.bandwidth("write") / units_bytes, cap)
        pages = moved_pages(StorageAccesses(size=size), self.flash.page, self.smallest, self.cache is not None)
        factor = self.amplification if self.state == "steady" else 0.0
        limit = self.flash.writes(pages, self.flash.transfer(units_bytes), factor, 1.0)
        return min(limit, cap)

    @property
    def smallest(self) -> float:
        """Smallest number of bytes that a write programs."""
        if self.unit is not None:
            return self.unit
        return self.flash.page if self.flash is not None and self.cache is None else PAGE

    def lifetime(self, rate: float, *, random: bool = True) -> float | None:
        """Return the lifetime (s) at a constant rate of random or sequential writes (B/s); None without an endurance.

        >>> drive = Ssd(read=3e9, latency=1e-4, size=1e12, endurance=Endurance(written=600e12))
        >>> round((drive.lifetime(20e6) or 0) / 86400)  # days at 20 MB/s
        347
        """
        written = None if self.endurance is None else self.endurance.bytes(self.size, self.amplification if random else 1.0)
        return None if written is None or rate <= 0 else written / rate

    def serve(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        """Return the cost of the reads or writes of one op; for writes, with the lifetime of the drive at that rate."""
        cost_method = self._sequential if accesses.access == "sequential" else self._random
        cost = cost_method(name, direction, accesses)
        alone_s = cost.demand.alone({f"{name}.media": 1.0})
        lasts = (
            self.lifetime(accesses.bytes / alone_s, random=accesses.access == "random")
            if direction == "write" and alone_s > 0
            else None
        )
        if lasts is None:
            return cost
        label = "lasts, if this went on"
        key = next(key for key in ("written", "per_day", "cycles") if getattr(self.endurance, key) is not None)
        source = f"endurance.{key}: " + source_of(self.sources, f"endurance.{key}")
        return replace(cost, why=(*cost.why, Term("wear", label, ((label, format_quantity(lasts, "s"), source),), 0.0)))

    # ---- derivations ----

    def _capped(self, rate: float) -> float:
        return rate if self.interface is None else min(rate, self.interface)

    def _striped(self, depth: float, size: float) -> float:
        if self.flash is None:
            return self.write or self.read or 0.0
        pages = moved_pages(StorageAccesses(size=size), self.flash.page, self.smallest, gathers=True)
        planes = self.flash.planes_at(depth * pages)
        factor = 1.0 if self.state == "steady" else 0.0
        return self.flash.writes(1.0, self.flash.transfer(self.flash.page), factor, planes) * self.flash.page

    def _source(self, key: str) -> Cited:
        stated = self.sources.get(key)
        return f"{key}: " + (stated or GIVEN) if stated is not None or self.flash is None else "flash"

    def _sequential(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        steady = self.bandwidth(direction)
        if direction == "write" and self.flash is not None and self.write is None and accesses.size > 0:
            steady = self._capped(
                self._striped(math.inf if self.cache is not None else accesses.at_once(self.queue), accesses.size)
            )
        key = "latency" if direction == "read" else "write_latency"
        errors = f"disk/{direction}", self._source(direction)
        start = self.one(direction, PAGE)
        if self.sequential_latency is not None:
            start, key = self.sequential_latency, "sequential_latency"
        elif direction == "write" and self.cache is not None and self.cache.latency is not None:
            start, key = self.cache.latency, "cache.latency"
        if accesses.sync and direction == "write":
            one_s = max(start, self.one("write", PAGE), self.one("write", accesses.size) - accesses.size / steady) + self.flush
            one_input = ("one", precise(one_s, "s"), f"{self._source(key)!s}, flush: " + source_of(self.sources, "flush"))
            inputs = (
                count_input(accesses),
                one_input,
                size_input(accesses),
                ("bandwidth", precise(steady, "B/s"), self._source("write")),
            )
            alone = one_s + accesses.size / steady
            floor = StorageLimit(
                "accesses", "times x (one + size / bandwidth)", inputs, accesses.times * alone, accesses.bytes / steady
            )
            crowd = ParallelChips(alone, max(steady / max(accesses.size, 1.0), 1 / alone), self.sharpness, self.queue, 0.0)
            return cost_of(name, accesses, [], [floor], ("", 0.0, ""), errors, crowd)
        speed = ("bandwidth", precise(steady, "B/s"), self._source(direction))
        limit = StorageLimit(
            "media", "times x size / bandwidth", (count_input(accesses), size_input(accesses), speed), accesses.bytes / steady
        )
        if direction == "write" and self.cache is not None:
            limit = self._cached(accesses, self._capped(self.cache.write), steady)
            if any(key == "first" for key, *_ in limit.inputs):  # the cache runs full
                errors = "disk/filled", self._source("write")
        if direction == "write" and self.flash is not None and self.write is None and self.cache is None:
            one_s = self.one("write", accesses.size)  # a write completes after its program; writes in flight hide the latency
            waits = (count_input(accesses), ("one", precise(one_s, "s"), self._source(key)), accesses.under_way(self.queue))
            turns = accesses.times / accesses.at_once(self.queue)
            floor = StorageLimit(
                "accesses", "times x one / at once", waits, turns * one_s, turns * self.own("write", accesses.size)
            )
            return cost_of(name, accesses, [limit], [floor], ("", 0.0, ""), errors)
        return cost_of(name, accesses, [limit], [], ("first access", start, self._source(key)), errors)

    def _cached(self, accesses: StorageAccesses, fast: float, steady: float) -> StorageLimit:
        cache = self.cache
        stock = cache.size if cache is not None and not accesses.of_service else 0.0
        seconds = drain_time(accesses.bytes, fast, steady, stock)
        written = ("bytes", precise(accesses.bytes, "B"), "workload")
        quick = ("fast", precise(fast, "B/s"), "cache: " + source_of(self.sources, "cache.write"))
        absorbed = burst_amount(accesses.bytes, fast, steady, stock)
        if absorbed is None:
            return StorageLimit("media", "bytes / fast", (written, quick), seconds)
        slow = ("steady", precise(steady, "B/s"), self._source("write"))
        first_input = ("first", precise(absorbed, "B"), f"until the cache of {precise(stock, 'B')} is full")
        return StorageLimit("media", "first / fast + (bytes - first) / steady", (first_input, quick, written, slow), seconds)

    def _random(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        write = direction == "write"
        depth = accesses.at_once(self.queue)
        one_s, most = self.one(direction, accesses.size), self.most(direction, accesses.size)
        fast_one, fast_most = one_s, most
        own_s = fast_own_s = self.own(direction, accesses.size)
        if write and accesses.sync:
            one_s += self.flush
        elif write and self.cache is not None:
            fast_one, fast_own_s = (one_s, own_s) if self.cache.latency is None else (self.cache.latency, 0.0)
            fast_most = max(most, min(self.cache.iops or math.inf, self._capped(self.cache.write) / max(accesses.size, 1.0)))
        steady = rate_at(depth, one_s, most, self.sharpness)
        moving = device_share_at(depth, one_s, most, self.sharpness, own_s)
        latency = "write_latency" if write and self.write_latency is not None else "latency"
        iops = "write_iops" if write else "iops"
        amplified = (
            f", amplification {self.amplification:.3g}" if write and self.write_iops is None and self.amplification > 1 else ""
        )
        inputs: tuple[Input, ...] = (
            count_input(accesses),
            accesses.under_way(self.queue),
            ("one", precise(one_s, "s"), self._source(latency)),
            ("most", precise(most, "1/s"), self._source(iops) + amplified),
            ("p", f"{self.sharpness:g}", "sharpness: " + source_of(self.sources, "sharpness")),
        )
        formula = "times x (at once^-p x (one^p - most^-p) + most^-p)^(1/p)"
        top = (count_input(accesses), inputs[3])
        errors = f"disk/{direction}", inputs[3][2]
        behind = ParallelChips(one_s, most, self.sharpness, self.queue, 1 / most)
        if fast_most <= most or accesses.size <= 0:
            limits = [StorageLimit("media", "times / most", top, accesses.times / most)]
            floor = StorageLimit("accesses", formula, inputs, accesses.times / steady, accesses.times / steady * moving)
            return cost_of(name, accesses, limits, [floor], ("", 0.0, ""), errors, behind)
        quick = rate_at(depth, fast_one, fast_most, self.sharpness)
        stock = self.cache.size / accesses.size if self.cache is not None and not accesses.of_service else 0.0
        cache_input = key_input("room", self.cache.size if self.cache is not None else 0.0, "B", self.sources, "cache.size")
        rates = (
            count_input(accesses),
            ("fast", precise(quick, "1/s"), "cache, at this queue depth"),
            ("steady", precise(steady, "1/s"), self._source(iops) + amplified),
        )
        floor = StorageLimit("accesses", "times / fast", rates[:2], drain_time(accesses.times, quick, steady, stock))
        absorbed = burst_amount(accesses.times, quick, steady, stock)
        if absorbed is not None:
            inputs = (*rates, ("first", precise(absorbed, "1"), f"until the cache of {cache_input[1]} is full"))
            floor = StorageLimit("accesses", "first / fast + (times - first) / steady", inputs, floor.seconds)
        both = (count_input(accesses), ("fast", precise(fast_most, "1/s"), "cache"), inputs[-1])
        limits = [StorageLimit("media", "times / fast, then / most", both, drain_time(accesses.times, fast_most, most, stock))]
        into = ParallelChips(fast_one, fast_most, self.sharpness, self.queue, 1 / fast_most)
        cached_share = 1.0 if absorbed is None else absorbed / accesses.times
        fast = device_share_at(depth, fast_one, fast_most, self.sharpness, fast_own_s)
        floor = replace(floor, moving=accesses.times * (cached_share * fast / quick + (1.0 - cached_share) * moving / steady))
        crowd = into if absorbed is None else Mixture(((cached_share, into), (1 - cached_share, behind)))
        return cost_of(name, accesses, limits, [floor], ("", 0.0, ""), errors, crowd)
