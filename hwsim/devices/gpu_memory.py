"""The memory side of a GPU: caches, sustained bandwidth, occupancy, and kernel launches.

Each class is a key of a `gpu` in a file. An omitted key is ideal: memory serves every access at its full bandwidth, whatever
the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field as attribute
from typing import Final

from hwsim.devices.cache import hit_share
from hwsim.devices.kind import prefix_problems
from hwsim.devices.roofline import LocalMemory
from hwsim.devices.work import Start
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Ratio, Seconds

NO_OP: Final = "no op states its threads; only a measured kernel does (`Gpu.stream`)"
SECTOR: Final = 32.0  # smallest fetch of a GPU (B); CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"


@dataclass(frozen=True, slots=True)
class Ramp:
    """The decrease of a cache's hit rate as a repeatedly used working set outgrows the cache."""

    full: float = field("working set, as a multiple of the cache size, up to which every access hits",
                        default=0.8, exclusive_minimum=0.0)  # fmt: skip
    none: float = field("working set, as a multiple of the cache size, from which no access hits",
                        default=1.3, exclusive_minimum=0.0)  # fmt: skip

    def hits(self, working_set: float, size: float) -> float:
        """Return the hit rate of a cache of `size` bytes.

        >>> Ramp(full=0.5, none=1.5).hits(100.0, 100.0)
        0.5
        """
        return hit_share(working_set, size, full=self.full, none=self.none)


@dataclass(frozen=True, slots=True)
class SustainedBandwidth:
    """The sustained share of the bandwidth of a memory or cache, by the share of writes.

    Between reads only, a copy (half of the bytes written) and writes only, the time per byte is linear in the share of writes.
    Reads and writes therefore each have a time of their own.

    **Source**: the three are measured; GPUs without measurements take the median of the measured GPUs.
    **Error**: 1 % (BabelStream on 11 GPUs, rows that were not fitted), see `docs/validation/components.md`.
    """

    read: Ratio = field("share of the bandwidth that reads alone sustain", default=1.0, exclusive_minimum=0.0)
    copy: Ratio = field("share of the bandwidth that a copy sustains (as many writes as reads)",
                        default=1.0, exclusive_minimum=0.0)  # fmt: skip
    write: Ratio = field("share of the bandwidth that writes alone sustain", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) if a copy is faster than its reads or its writes alone."""
        if self.copy > 2 * min(self.read, self.write):
            yield "copy", f"expected at most twice `read` and twice `write`, got {self.copy:g}", None

    def bytes_at_peak(self, reads: float, writes: float) -> float:
        """Return the bytes that take the same time at the full bandwidth.

        >>> (SustainedBandwidth(read=0.8, copy=0.5).bytes_at_peak(80.0, 0.0),
        ...  SustainedBandwidth(read=0.8, copy=0.5).bytes_at_peak(50.0, 50.0))
        (100.0, 200.0)
        """
        share, excess = (self.read, reads - writes) if reads >= writes else (self.write, writes - reads)
        return excess / share + 2.0 * min(reads, writes) / self.copy

    def part(self, reads: float, writes: float) -> float:
        """Return the share of the bandwidth that a mix of reads and writes reaches."""
        return (reads + writes) / self.bytes_at_peak(reads, writes) if reads + writes > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Level1:
    """The L1 cache of one SM, which writes bypass.

    **Range**: it serves an SM that uses the same working set repeatedly within one kernel. It keeps nothing between kernels, and
    thread blocks that share a working set run on any SM.
    """

    size: Bytes = field("capacity of the L1 cache of one SM", exclusive_minimum=0.0)
    bandwidth: BytesPerSecond | None = field("bandwidth of the L1 cache of one SM; if omitted, streams do not use it",
                                             default=None, exclusive_minimum=0.0, record=NO_OP)  # fmt: skip
    latency: Seconds = field("latency of a read that hits the L1 cache", default=0.0)
    ramp: Ramp = field("hit rate of streams as a function of the working set", default_factory=Ramp, record=NO_OP)
    chase: Ramp = field("hit rate of dependent reads (pointer chasing) as a function of the working set", default_factory=Ramp)


@dataclass(frozen=True, slots=True)
class SharedReads:
    """Reads of the same lines by all SMs at about the same time, e.g. of a shared table.

    Memory transfers each line once; the limit is the bandwidth at which the lines reach all SMs.
    """

    near: BytesPerSecond = field("total bandwidth to all SMs of lines in the cache partition near each SM", exclusive_minimum=0.0)
    far: BytesPerSecond = field("total bandwidth to all SMs of lines outside the near partition", exclusive_minimum=0.0)
    ramp: Ramp = field("hit rate of the near partition as a function of the working set", default_factory=Ramp)


@dataclass(frozen=True, slots=True)
class Level2:
    """The L2 cache, shared by all SMs.

    Large L2 caches have two partitions: lines that an SM reads are copied to the `near` partition; lines for which only the other
    partition has space have a higher latency (`far`).
    """

    size: Bytes = field("total capacity of the L2 cache", exclusive_minimum=0.0)
    bandwidth: BytesPerSecond | None = field("total bandwidth to all SMs; if omitted, streams do not use the L2 cache",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip
    sustained: SustainedBandwidth = field("sustained share of the L2 bandwidth", default_factory=SustainedBandwidth)
    ramp: Ramp = field("hit rate of streams as a function of the working set", default_factory=Ramp)
    together: SharedReads | None = field("bandwidth when all SMs read the same lines (default: as if each SM read its own lines)",
                                      default=None, record=NO_OP)  # fmt: skip
    latency: Seconds = field("latency of a read that hits (the near partition, if there are two)", default=0.0)
    chase: Ramp = field("hit rate of dependent reads (pointer chasing) as a function of the working set", default_factory=Ramp)
    near: Bytes | None = field("capacity of the partition near an SM; all of the cache if omitted",
                               default=None, exclusive_minimum=0.0)  # fmt: skip
    near_chase: Ramp = field("hit rate of dependent reads in the near partition as a function of the working set",
                             default_factory=Ramp)  # fmt: skip
    far: Seconds = field("latency of a read that hits the far partition; 0: `latency`", default=0.0)
    miss: Seconds = field("latency of a read from memory; 0: `latency` of the memory", default=0.0)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The threads that saturate the memory.

    A thread starts, has a few reads in flight, waits for them (Little's law), writes, and ends:

        waiting = (begun x start + reads / in_flight x read + writes x write) / threads
        time    = (waiting^p + moving^p)^(1/p)

    where begun, reads and writes are counts, and `moving` is the transfer time of the bytes.

    **Source** of the rounding: see `hwsim.devices.roofline`.
    **Error**: 3.7 % (mean) on curves of five GPUs over 16 numbers of threads, half of them not fitted.
    **Range**: threads that only read and write; reads of adjacent addresses.
    """

    read: Seconds = field("latency of a read from busy memory", exclusive_minimum=0.0)
    write: Seconds = field("time that a write blocks its thread", default=0.0, record=NO_OP)
    start: Seconds = field("startup time of a thread, from the end of its predecessor to its first access",
                           default=0.0, record=NO_OP)  # fmt: skip
    sharpness: float = field("exponent p of the transition from latency-bound to bandwidth-bound (p-norm of both times)",
                             default=math.inf, minimum=1.0)  # fmt: skip
    threads: int = field("maximum number of resident threads of an SM", default=2048, minimum=1)
    blocks: PerSecond | None = field("thread blocks started per second; unlimited if omitted",
                                     default=None, exclusive_minimum=0.0, record=NO_OP)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """The time to start a kernel, by the way it is launched."""

    stream: Seconds = field("gap between consecutive kernels of a stream", default=0.0)
    graph: Seconds | None = field("gap between consecutive kernels of a CUDA graph; `stream` if omitted", default=None)
    host: Seconds | None = field("launch and completion time of a kernel that the host waits for; `stream` if omitted",
                                 default=None)  # fmt: skip

    def by(self, start: Start) -> tuple[str, float]:
        """Return (key, time in s) of a kernel with the launch mechanism `start`.

        >>> Launch(stream=2e-6, graph=1e-6).by("graph"), Launch(stream=2e-6).by("host")
        (('graph', 1e-06), ('stream', 2e-06))
        """
        seconds = {"stream": self.stream, "graph": self.graph, "host": self.host}[start]
        return ("stream", self.stream) if seconds is None else (start, seconds)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The memory levels that serve the reads and writes of a GPU, nearest first; omitted levels serve nothing."""

    memory: LocalMemory
    sustained: SustainedBandwidth = attribute(default_factory=SustainedBandwidth)
    sms: int | None = None
    l1: Level1 | None = None
    l2: Level2 | None = None
    occupancy: Occupancy | None = None
    sources: Mapping[str, Origin] = attribute(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadStream:
    """The reads and writes of the threads of a kernel, with adjacent addresses in adjacent threads.

    Args:
        reads: bytes read.
        writes: bytes written.
        each: size of one read or write of a thread (B).
        working_set: bytes used repeatedly; None: each byte comes from memory once.
        together: whether every SM uses the whole working set, all at about the same time.
        threads: number of resident threads; None: enough to saturate the memory.
        in_flight: number of reads that a thread starts before it waits.
        begun: number of threads that start in the slot of a finished thread.
        blocks: number of thread blocks that are started.
        start: how the kernel is launched.
    """

    reads: float = 0.0
    writes: float = 0.0
    each: float = 4.0
    working_set: float | None = None
    together: bool = False
    threads: float | None = None
    in_flight: float = 1.0
    begun: float = 0.0
    blocks: float = 0.0
    start: Start = "stream"


def memory_problems(parts: Hierarchy) -> Iterator[Problem]:
    """Yield (key, message, hint) for each memory level that is slower than the next one."""
    yield from prefix_problems("sustained", parts.sustained.problems())
    l1, l2, memory = parts.l1, parts.l2, parts.memory.bandwidth
    if l2 is not None:
        yield from prefix_problems("l2.sustained", l2.sustained.problems())
        if l2.bandwidth is not None and l2.bandwidth * l2.sustained.copy < memory * parts.sustained.copy:
            yield "l2.bandwidth", "the L2 cache is slower than the memory", None
        if l2.together is not None and l2.together.near < l2.together.far:
            yield "l2.together.near", "near lines arrive more slowly than far lines: expected at least `far`", None
        ordered = [l2.latency, l2.far or l2.latency, l2.miss]
        if l2.miss and ordered != sorted(ordered):
            yield "l2.miss", "memory is faster than the L2 cache: expected `latency` <= `far` <= `miss`", None
    if l1 is not None and l1.bandwidth is not None:
        if parts.sms is None:
            yield "l1.bandwidth", "the L1 bandwidth of one SM requires the number of SMs", "add `sms: 80`"
        elif l1.bandwidth * parts.sms < (l2.bandwidth if l2 is not None and l2.bandwidth else memory):
            yield "l1.bandwidth", "the L1 caches of all SMs are slower than the next level", None
