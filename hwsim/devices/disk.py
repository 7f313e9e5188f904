"""A disk given by its bandwidth, the latency of one access, and the number of accesses in progress.

A sequential op takes the latency of one access, then the full bandwidth. Random accesses with at most `depth` in flight take at
least

    ceil(times / depth) x (latency + size / bandwidth)

and at most `iops` of them complete per second.
Source: Little's law; Patterson and Hennessy, "Computer Organization and Design", chapter on storage.
Error: not yet measured.
Range: no cache, no seek curve, no write amplification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Crowd, Demand, Term
from hwsim.devices.contention import ParallelChips, SequentialStreams
from hwsim.devices.kind import Storage
from hwsim.devices.roofline import Input, latency_term, source_of
from hwsim.devices.storage import Direction, StorageAccesses, StorageLimit, cost_of, count_input, key_input, size_input
from hwsim.formats import precise
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Disk(Storage):
    """A disk whose reads and writes share the medium; numbers for writes default to those for reads."""

    kind: ClassVar[str] = "disk"
    read_bandwidth: BytesPerSecond = field("read bandwidth", key="read", exclusive_minimum=0.0)
    write_bandwidth: BytesPerSecond | None = field("write bandwidth; `read` if omitted",
                                                   key="write", default=None, exclusive_minimum=0.0)  # fmt: skip
    latency: Seconds = field("latency of one access: seek and rotation, or a flash page read", default=0.0)
    write_latency: Seconds | None = field("latency of one write; `latency` if omitted", default=None)
    iops: PerSecond | None = field("maximum random reads per second; unlimited if omitted", default=None, exclusive_minimum=0.0)
    write_iops: PerSecond | None = field("maximum random writes per second; `iops` if omitted",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    queue: int = field("maximum number of accesses in progress; 1 for a single arm", default=1, minimum=1)
    size: Bytes | None = field("capacity; unlimited if omitted", default=None, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        if self.write_iops is not None and self.iops is None:
            yield "write_iops", "`write_iops` requires `iops`, which is missing", "add `iops: 100 IOPS`"

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        media = Capacity.of(name, "media")
        return (media,) if self.iops is None else (media, Capacity.of(name, "iops", self.iops, "1"))

    def serve(self, name: str, direction: Direction, request: StorageAccesses) -> Cost:
        """Return the cost of the reads or writes of one op. `region` has no effect; `sync` only limits the depth to 1."""
        serial = self.queue == 1 or request.times == 1
        cost = (
            self._stream
            if request.of_service and request.access == "sequential" and request.times > 0 and serial
            else self._accesses
        )
        return cost(name, request, *self._numbers(direction))

    def _numbers(self, direction: Direction) -> tuple[tuple[str, float], tuple[str, float], tuple[str, float]]:
        """Return (key, number) of the bandwidth, of the latency and of the IOPS (0: unlimited)."""
        rate, latency, iops = ("read", self.read_bandwidth), ("latency", self.latency), ("iops", self.iops or 0.0)
        if direction == "read":
            return rate, latency, iops
        return (
            rate if self.write_bandwidth is None else ("write", self.write_bandwidth),
            latency if self.write_latency is None else ("write_latency", self.write_latency),
            iops if self.write_iops is None else ("write_iops", self.write_iops),
        )

    def _stream(
        self, name: str, request: StorageAccesses, rate: tuple[str, float], latency: tuple[str, float], _: tuple[str, float]
    ) -> Cost:
        """Return the cost of sequential accesses of one request among others: the latency occupies the device, as at random."""
        wait: Input = ("latency", precise(latency[1], "s"), source_of(self.sources, latency[0]))
        speed = key_input("bandwidth", rate[1], "B/s", self.sources, rate[0])
        seconds = latency[1] + request.bytes / rate[1]
        limit = StorageLimit(
            "media", "latency + times x size / bandwidth", (wait, count_input(request), size_input(request), speed), seconds
        )
        access_s, one_s = seconds / request.times, request.size / rate[1]
        if self.queue == 1:
            streams = SequentialStreams(
                access_s, one_s, fixed=latency[1], reach=0.0, gain=0.0, queue=1, together=request.own_depth
            )
            return cost_of(name, request, [limit], [], ("", 0.0, ""), crowd=streams)
        knee = ParallelChips(access_s, self.queue / access_s, math.inf, self.queue, one_s)
        media = StorageLimit(
            "media", "times x size / bandwidth", (count_input(request), size_input(request), speed), request.bytes / rate[1]
        )
        limit = replace(limit, label="accesses", moving=request.bytes / rate[1])
        return cost_of(name, request, [media], [limit], ("", 0.0, ""), crowd=knee)

    def _accesses(
        self, name: str, request: StorageAccesses, rate: tuple[str, float], latency: tuple[str, float], iops: tuple[str, float]
    ) -> Cost:
        size, times, depth = request.size, request.times, 1.0 if request.sync else request.depth
        seconds = size * times / rate[1]
        media = f"{name}.media"
        speed = key_input("bandwidth", rate[1], "B/s", self.sources, rate[0])
        amounts, moved = {media: seconds}, {media: size * times}
        why = [Term("media", "times x size / bandwidth", (count_input(request), size_input(request), speed), seconds, media)]
        latency_source = source_of(self.sources, latency[0])
        crowd, part, start, floor = None, 0.0, 0.0, 0.0
        if request.access == "sequential" or times <= 0:
            start = latency[1] if times > 0 else 0.0
            if start > 0:
                why.insert(0, latency_term("first access", start, latency_source, media, name))
        else:
            in_flight = min(depth, self.queue)
            one_s = latency[1] + size / rate[1]
            floor = math.ceil(times / in_flight) * one_s
            part = size / rate[1] / one_s if size * one_s > 0 else 0.0
            if one_s > 0:
                knee = ParallelChips(one_s, self.queue / one_s, math.inf, self.queue, size / rate[1])
                crowd = Crowd(media, max(1, round(min(depth, times))), knee)
            at_once = ("at once", f"{in_flight:g}", f"minimum of depth {depth:g} and queue {self.queue}")
            formula = "ceil(times / at once) x (latency + size / bandwidth)"
            latency_input = ("latency", precise(latency[1], "s"), latency_source)
            why.append(
                Term(
                    "accesses", formula, (count_input(request), at_once, latency_input, size_input(request), speed), floor, media
                )
            )
            if self.iops is not None:
                # One capacity in reads per second; a write draws the number of reads that it displaces.
                amounts[f"{name}.iops"], moved[f"{name}.iops"] = times * self.iops / iops[1], times
                iops_input = key_input("iops", iops[1], "1/s", self.sources, iops[0])
                why.append(Term("iops", "times / iops", (count_input(request), iops_input), times / iops[1], f"{name}.iops"))
        draws = tuple(sorted((capacity, amount) for capacity, amount in amounts.items() if amount > 0))
        longest = max([seconds, *(term.seconds for term in why if term.label == "iops")])
        return Cost(
            Demand(
                latency=start, amounts=draws, floor=floor, share=longest * rate[1] or 1.0, crowd=crowd, clocks=((media, part),)
            ),
            moved=tuple((capacity, moved[capacity], "B" if capacity == media else "1") for capacity, _ in draws),
            why=tuple(why),
        )
