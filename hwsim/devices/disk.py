"""A disk: bandwidth, the time of one access, and how many accesses it works on at once.

Sequential reading costs one access and then goes at full bandwidth. Of random accesses, `depth`
are in flight at most, so that they take at least

    ceil(times / depth) x (latency + size / bandwidth)

and no more than `iops` of them end in a second.
Source: Little's law; Patterson and Hennessy, "Computer Organization and Design", chapter on storage.
Error: not yet measured. No cache, no seek curve, no write amplification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from hwsim.demand import Capacity, Cost, Crowd, Demand, Term
from hwsim.devices.crowding import Knee, Streams
from hwsim.devices.kind import Storage
from hwsim.devices.roofline import WORKLOAD, CannotCompute, Input, latency_term, source_of
from hwsim.devices.storage import Access, Asked, Direction, Limit, cost_of, each, given, number
from hwsim.formats import precise
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Seconds

__all__ = ["Access", "Disk"]


@dataclass(frozen=True, slots=True)
class Disk(Storage):
    """Reads and writes share the media; a number for writing left out is that for reading."""

    kind: ClassVar[str] = "disk"
    read_bandwidth: BytesPerSecond = field("bandwidth of reading", key="read", exclusive_minimum=0.0)
    write_bandwidth: BytesPerSecond | None = field("bandwidth of writing", key="write", default=None, exclusive_minimum=0.0)
    latency: Seconds = field("one access: seek and rotation, or flash page", default=0.0)
    write_latency: Seconds | None = field("one access that writes", default=None)
    iops: PerSecond | None = field("random reads per second at most", default=None, exclusive_minimum=0.0)
    write_iops: PerSecond | None = field("random writes per second at most", default=None, exclusive_minimum=0.0)
    queue: int = field("accesses it works on at once; 1 for an arm", default=1, minimum=1)
    size: Bytes | None = field("bytes it holds; unlimited if left out", default=None, exclusive_minimum=0.0)
    lanes: int | None = field("PCIe lanes it has; unchecked if left out", default=None, minimum=0)

    def problems(self) -> Iterator[Problem]:
        if self.write_iops is not None and self.iops is None:
            yield "write_iops", "accesses per second are given for writing only", "add `iops:` for reading"

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        media = Capacity.of(name, "media")
        return (media,) if self.iops is None else (media, Capacity.of(name, "iops", self.iops, "1"))

    def serve(self, name: str, direction: Direction, request: Asked) -> Cost:
        """Reads or writes of one op; regions and writes that must be on the medium are not modelled."""
        depth = 1 if request.sync else request.depth
        if (
            request.of_service
            and request.access == "sequential"
            and request.times > 0
            and (self.queue == 1 or request.times == 1)
        ):
            return self._stream(name, direction, request)
        go = self.read if direction == "read" else self.write
        return go(name, request.size, request.times, request.access, depth)

    def read(self, name: str, size: float, times: float, access: Access = "sequential", depth: float = 1) -> Cost:
        """`times` reads of `size` bytes each, `depth` of them asked for at once."""
        latency = ("latency", self.latency)
        return self._accesses(name, size, times, access, depth, ("read", self.read_bandwidth), latency, ("iops", self.iops))

    def write(self, name: str, size: float, times: float, access: Access = "sequential", depth: float = 1) -> Cost:
        """`times` writes of `size` bytes each, `depth` of them handed over at once."""
        rate = ("read", self.read_bandwidth) if self.write_bandwidth is None else ("write", self.write_bandwidth)
        latency = ("latency", self.latency) if self.write_latency is None else ("write_latency", self.write_latency)
        iops = ("iops", self.iops) if self.write_iops is None else ("write_iops", self.write_iops)
        return self._accesses(name, size, times, access, depth, rate, latency, iops)

    def _stream(self, name: str, direction: Direction, request: Asked) -> Cost:
        """Accesses in sequence of a request among others: the latency is the device's time, as of one at random."""
        write = direction == "write"
        rate = self.write_bandwidth if write and self.write_bandwidth is not None else self.read_bandwidth
        key = "write_latency" if write and self.write_latency is not None else "latency"
        latency = self.write_latency if write and self.write_latency is not None else self.latency
        wait: Input = ("latency", precise(latency, "s"), source_of(self.sources, key))
        speed = given("bandwidth", rate, "B/s", self.sources, "write" if write and self.write_bandwidth is not None else "read")
        seconds = latency + request.bytes / rate
        line = Limit("media", "latency + times x size / bandwidth", (wait, number(request), each(request), speed), seconds)
        alone, one_s = seconds / request.times, request.size / rate
        if self.queue == 1:
            streams = Streams(alone, one_s, fixed=latency, reach=0.0, gain=0.0, queue=1, together=request.own_depth)
            return cost_of(name, request, [line], [], ("", 0.0, ""), crowd=streams)
        knee = Knee(alone, self.queue / alone, math.inf, self.queue, one_s)
        media = Limit("media", "times x size / bandwidth", (number(request), each(request), speed), request.bytes / rate)
        line = replace(line, label="accesses", moving=request.bytes / rate)
        return cost_of(name, request, [media], [line], ("", 0.0, ""), crowd=knee)

    def _accesses(
        self,
        name: str,
        size: float,
        times: float,
        access: Access,
        depth: float,
        rate: tuple[str, float],
        latency: tuple[str, float],
        iops: tuple[str, float | None],
    ) -> Cost:
        if depth < 1:
            raise CannotCompute(f"{depth:g} accesses at once are none", "write a depth of 1 or more")
        seconds = size * times / rate[1]
        media = f"{name}.media"
        speed = ("bandwidth", precise(rate[1], "B/s"), f"{rate[0]}: " + source_of(self.sources, rate[0]))
        number, size_input = ("times", precise(times, "1"), WORKLOAD), ("size", precise(size, "B"), WORKLOAD)
        amounts, moved = {media: seconds}, {media: size * times}
        why = [Term("media", "times x size / bandwidth", (number, size_input, speed), seconds, media)]
        wait = source_of(self.sources, latency[0])
        crowd, part = None, 0.0
        if access == "sequential" or times <= 0:
            start = latency[1] if times > 0 else 0.0
            floor = 0.0
            if start > 0:
                why.insert(0, latency_term("first access", start, wait, media, name))
        else:
            start, together = 0.0, min(depth, self.queue)
            one_s = latency[1] + size / rate[1]
            floor = math.ceil(times / together) * one_s
            part = size / rate[1] / one_s if size * one_s > 0 else 0.0
            if one_s > 0:
                crowd = Crowd(
                    media, max(1, round(min(depth, times))), Knee(one_s, self.queue / one_s, math.inf, self.queue, size / rate[1])
                )
            at_once = ("at once", f"{together:g}", f"the smaller of depth {depth:g} and queue {self.queue}")
            formula = "ceil(times / at once) x (latency + size / bandwidth)"
            latency_input = ("latency", precise(latency[1], "s"), wait)
            why.append(Term("accesses", formula, (number, at_once, latency_input, size_input, speed), floor, media))
            if self.iops is not None and iops[1] is not None:
                # One capacity in reads a second; a write draws as many reads' worth as it displaces.
                amounts[f"{name}.iops"], moved[f"{name}.iops"] = times * self.iops / iops[1], times
                most = ("iops", precise(iops[1], "1/s"), f"{iops[0]}: " + source_of(self.sources, iops[0]))
                why.append(Term("iops", "times / iops", (number, most), times / iops[1], f"{name}.iops"))
        drawn = tuple(sorted((capacity, amount) for capacity, amount in amounts.items() if amount > 0))
        longest = max([seconds, *(term.seconds for term in why if term.label == "iops")])
        return Cost(
            Demand(
                latency=start, amounts=drawn, floor=floor, share=longest * rate[1] or 1.0, crowd=crowd, clocks=((media, part),)
            ),
            moved=tuple((capacity, moved[capacity], "B" if capacity == media else "1") for capacity, _ in drawn),
            why=tuple(why),
        )
