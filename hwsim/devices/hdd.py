"""A hard disk: an arm that seeks, rotating platters, and tracks whose capacity grows with their radius.

    time of a random access = overhead + (seek + half a revolution) / n^gain + size / rate,  n = queued accesses

- Seek: see `hwsim.devices.arm`. Random accesses take the average over the cylinders in use, so a `region` of the disk is
  faster than all of the disk (short-stroking).
- Rotation: 60 / rpm at most (8.33 ms at 7,200 rpm, 6 ms at 10,000 rpm), half of it on average.
- Queue: out of n queued accesses, the disk takes the one with the shortest positioning time, which shrinks as n^-gain.
- Rate: the density is the same everywhere, so the capacity of a track is proportional to its radius. After a share x of the bytes
  from the outer edge, the rate is sqrt(outer^2 - x (outer^2 - inner^2)). A range of tracks is read at the average of the rates
  at its two ends.
- Requests of services are streams that interrupt each other. Each positioning takes arm time, and a stream with one access in
  flight loses its position whenever other streams are active.
- Cache: reads of a `region` hit once the region has been read. With `write_cache`, a write completes in the cache. The cached
  writes reach the platter in the best order until the cache is full, then at the rate of the platter.

Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994 (seek, rotation, zones);
gain: fitted on a request-level simulation of shortest-positioning-time-first scheduling.
Error: seek curves of five drives of the DiskSim collection, the half not fitted: 5.2 % on average; accesses per second with
1 to 64 in flight on two of them, against a request-level simulation: 2 % (docs/validation/components.md).
Range: independent accesses. Each op starts with an empty cache; a sequential op without a `region` starts at the outer edge.
If identical ops would take longer as a single op, the run warns. No shingled recording, no defects, no skew between tracks
(the rate is an average over many tracks).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from hwsim.demand import Cost
from hwsim.devices.arm import HeadPositioning, Platter, Seek
from hwsim.devices.contention import QueuedArm, SequentialStreams
from hwsim.devices.kind import Storage, prefix_problems
from hwsim.devices.roofline import CannotCompute, Input, source_of
from hwsim.devices.storage import (
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
from hwsim.formats import precise
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Hdd(Storage):
    """A hard disk whose surfaces share one arm, with one access at a time out of a queue."""

    kind: ClassVar[str] = "hdd"
    rpm: float = field("rotational speed in revolutions per minute", exclusive_minimum=0.0)
    seek: Seek = field("seek time of the arm as a function of the distance")
    outer: BytesPerSecond | None = field("transfer rate at the outermost track; derived from `platter` if omitted",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    inner: BytesPerSecond | None = field("transfer rate at the innermost track; if omitted, derived from `platter`, else `outer`",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    platter: Platter | None = field("geometry of the platters, from which transfer rates and capacity are derived", default=None)
    size: Bytes | None = field("capacity; if omitted, derived from `platter`, else unlimited",
                               default=None, exclusive_minimum=0.0)  # fmt: skip
    overhead: Seconds = field("controller and command time of each access", default=0.0)
    settle: Seconds = field("extra settling time of the head before a write", default=0.0)
    queue: int = field("maximum queue depth, from which the disk chooses the next access (SATA: 32)", default=32, minimum=1)
    gain: float = field("exponent g: with n queued accesses the positioning time shrinks by n^-g; 0: first come, first served",
                        default=0.205, minimum=0.0, maximum=1.0)  # fmt: skip
    cache: Bytes = field("size of the disk's cache", default=0.0)
    write_cache: bool = field("whether a write completes once it is in the cache", default=False)
    interface: BytesPerSecond | None = field("bandwidth of SATA or SAS, e.g. 600 MB/s; unlimited if omitted",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        yield from prefix_problems("seek", self.seek.problems())
        if self.outer is None and self.platter is None:
            yield "rpm", "a hard disk requires a transfer rate", "add `outer: 250 MB/s`, or a `platter:`"
        if self.inner is not None and self.inner > self.rate(0.0):
            yield "inner", "the innermost track is faster than the outermost one", "swap `outer` and `inner`"
        if self.write_cache and not self.cache:
            yield "write_cache", "a write cache requires a cache", "add `cache: 256 MiB`"

    @property
    def turn(self) -> float:
        """Time of one revolution (s), the longest wait for a sector.

        >>> [round(60 / rpm * 1e3, 2) for rpm in (7200, 10_000, 15_000)]  # ms
        [8.33, 6.0, 4.0]
        """
        return 60.0 / self.rpm

    @property
    def holds(self) -> float | None:
        """Capacity (B); None if unlimited."""
        return self.platter.size() if self.size is None and self.platter is not None else self.size

    def rate(self, part: float) -> float:
        """Return the transfer rate (B/s) after a share `part` (0 to 1) of the capacity, counted from the outer edge."""
        outer = self.outer if self.outer is not None else self.platter.rate(self.rpm) if self.platter is not None else math.inf
        inner = self.inner
        if inner is None:
            inner = outer * self.platter.inner / self.platter.outer if self.platter is not None else outer
        return math.sqrt(max(inner**2, outer**2 - min(1.0, max(0.0, part)) * (outer**2 - inner**2)))

    def stretch(self, part: float) -> float:
        """Return the average transfer rate (B/s) over the outermost share `part` of the disk."""
        return 0.5 * (self.rate(0.0) + self.rate(part))

    def ways(self, part: float = 1.0, *, writes: bool = False) -> HeadPositioning:
        """Return the positioning times to random sectors of the outermost share `part` of the disk, at queue depth 1."""
        outer, inner, edge_rate = self.rate(0.0), self.rate(1.0), self.rate(part)
        cylinders = (outer - edge_rate) / (outer - inner) if outer > inner else part
        return HeadPositioning(self.seek.within(cylinders), self.turn, self.settle if writes else 0.0)

    def serve(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        part = self._covered_share(accesses)
        if accesses.access == "sequential":
            return self._sequential(name, direction, accesses, part)
        return self._random(name, direction, accesses, part)

    @property
    def _rate_source(self) -> Origin:
        key = "outer" if self.outer is not None else "platter.density"
        return f"{key}: " + source_of(self.sources, key)

    def _covered_share(self, accesses: StorageAccesses) -> float:
        if self.holds is None:
            if accesses.region is not None:
                raise CannotCompute("a region requires the size of the disk", "add `size: 4 TB` to the disk")
            return 0.0 if accesses.access == "sequential" else 1.0
        over = (
            accesses.region if accesses.region is not None else accesses.bytes if accesses.access == "sequential" else self.holds
        )
        return min(1.0, over / self.holds)

    def _capped(self, rate: float) -> float:
        return rate if self.interface is None else min(rate, self.interface)

    def _hit_rate(self, accesses: StorageAccesses) -> float:
        if accesses.region is None or self.cache <= 0 or accesses.bytes <= accesses.region:
            return 0.0
        kept = min(1.0, self.cache / accesses.region) if accesses.access == "random" else float(accesses.region <= self.cache)
        return kept * (1.0 - accesses.region / accesses.bytes)

    def _sequential(self, name: str, direction: Direction, accesses: StorageAccesses, part: float) -> Cost:
        rate = self._capped(self.stretch(part))
        speed = ("bandwidth", precise(rate, "B/s"), self._rate_source + f"; over {part:.4g} of the disk")
        times, size = count_input(accesses), size_input(accesses)
        again = self._hit_rate(accesses) if direction == "read" else 0.0
        limits, floors = [], []
        if direction == "write" and accesses.sync:
            wait = self.overhead + self.turn
            inputs: tuple[Input, ...] = (
                times,
                ("wait", precise(wait, "s"), "one revolution and the overhead, rpm: " + source_of(self.sources, "rpm")),
            )
            seconds = (
                max(0.0, accesses.times - 1) * wait + accesses.times * accesses.size / rate
            )  # the first access is in position already
            limits.append(StorageLimit("media", "(times - 1) x wait + times x size / bandwidth", (*inputs, size, speed), seconds))
        elif again > 0:
            missed = accesses.bytes * (1 - again)
            inputs = (("missed", precise(missed, "B"), "bytes read for the first time"), speed)
            limits.append(StorageLimit("media", "missed / bandwidth", inputs, missed / rate))
            floors += self._hit_limits(accesses)
        else:
            limits.append(StorageLimit("media", "times x size / bandwidth", (times, size, speed), accesses.bytes / rate))
        ways = self.ways(1.0 if accesses.region is None else part)
        position_s = ways.mean
        start = self.overhead + position_s
        source = "seek: " + source_of(self.sources, "seek.average")
        if not accesses.of_service or accesses.times <= 0:
            return cost_of(name, accesses, limits, floors, ("first access", start, source))
        [limit] = limits
        lead = ("overhead", precise(self.overhead, "s"), "overhead: " + source_of(self.sources, "overhead"))
        way = ("position", precise(position_s, "s"), source)
        queue: tuple[Input, ...] = (
            ("queue", "1", "alone"),
            ("gain", f"{self.gain:g}", "gain: " + source_of(self.sources, "gain")),
        )
        formula = f"overhead + position / queue^gain + {limit.formula}"
        limit = StorageLimit("media", formula, (lead, way, *queue, *limit.inputs), start + limit.seconds)
        streams = SequentialStreams(
            alone=limit.seconds / accesses.times,
            each=accesses.size / rate,
            fixed=self.overhead,
            reach=position_s,
            gain=self.gain,
            queue=self.queue,
            together=accesses.own_depth,
            ways=ways,
        )
        return cost_of(name, accesses, [limit], floors, ("", 0.0, ""), crowd=None if again > 0 else streams)

    def _hit_limits(self, accesses: StorageAccesses) -> list[StorageLimit]:
        if self.interface is None:
            return []
        inputs: tuple[Input, ...] = (
            ("bytes", precise(accesses.bytes, "B"), "workload"),
            key_input("interface", self.interface, "B/s", self.sources, "interface"),
        )
        seconds = accesses.bytes / self.interface
        return [StorageLimit("interface", "bytes / interface", inputs, seconds, seconds)]

    def _random(self, name: str, direction: Direction, accesses: StorageAccesses, part: float) -> Cost:
        write = direction == "write"
        buffered = write and self.write_cache and not accesses.sync
        ways = self.ways(part, writes=write)
        position_s = ways.mean
        depth = float(self.queue) if buffered else accesses.at_once(self.queue)
        rate = self._capped(self.stretch(part))
        reach = position_s / depth**self.gain
        one_s = self.overhead + reach + accesses.size / rate
        hit_rate = 0.0 if write else self._hit_rate(accesses)
        scope = "" if part >= 1 else f" over {part:.4g} of the disk"
        inputs: list[Input] = [
            count_input(accesses),
            ("overhead", precise(self.overhead, "s"), "overhead: " + source_of(self.sources, "overhead")),
            (
                "position",
                precise(position_s, "s"),
                f"average seek {precise(position_s - self.turn / 2, 's')}{scope} and half a turn, {precise(self.turn / 2, 's')}",
            ),
            ("queue", f"{depth:.6g}", "writes in the cache" if buffered else accesses.under_way(self.queue)[2]),
            ("gain", f"{self.gain:g}", "gain: " + source_of(self.sources, "gain")),
            size_input(accesses),
            ("bandwidth", precise(rate, "B/s"), self._rate_source),
        ]
        formula = "times x (overhead + position / queue^gain + size / bandwidth)"
        seconds = accesses.times * (1 - hit_rate) * one_s
        if hit_rate > 0:
            inputs.append(("missed", precise(1 - hit_rate, "%"), "the rest hits the cache"))
            formula = f"missed x {formula}"
        if buffered and accesses.size > 0 and not accesses.of_service:  # the cache of a service is full
            fast = max(1.0 / one_s, 1.0 / (self.overhead + accesses.size / (self.interface or self.rate(0.0))))
            stock = self.cache / accesses.size
            seconds = drain_time(accesses.times, fast, 1 / one_s, stock)
            quick = ("fast", precise(fast, "1/s"), "into the cache")
            absorbed = burst_amount(accesses.times, fast, 1 / one_s, stock)
            if absorbed is None:
                inputs, formula = [inputs[0], quick], "times / fast"
            else:
                room = f"until the cache of {precise(self.cache, 'B')} is full"
                inputs += [quick, ("first", precise(absorbed, "1"), room)]
                formula = formula.replace("times x", "first / fast + (times - first) x")
        floors = self._hit_limits(accesses) if hit_rate > 0 else []
        fixed = self.overhead + accesses.size / rate
        crowd = None if buffered else QueuedArm(fixed, position_s, self.gain, self.queue, ways)
        if buffered and accesses.of_service:  # the disk behind the cache has the whole queue
            crowd = QueuedArm(fixed, reach, 0.0, self.queue, ways)
        limit = StorageLimit("media", formula, tuple(inputs), seconds)
        return cost_of(name, accesses, [limit], floors, ("", 0.0, ""), crowd=crowd)
