"""The memory side of a GPU: caches, what memory sustains, how many threads it takes, and starting kernels.

Every section is a part of a `gpu` in a file; leaving one out means the ideal: memory serves all, at its full bandwidth,
whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field as attribute
from typing import Final

from hwsim.devices.cache import hit_share
from hwsim.devices.kind import under
from hwsim.devices.roofline import LocalMemory
from hwsim.devices.work import Start
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, PerSecond, Ratio, Seconds

NO_OP: Final = "no op says how many threads read and write; a measured kernel does (`Gpu.stream`)"
SECTOR: Final = 32.0  # bytes: what a GPU fetches at least; CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"


@dataclass(frozen=True, slots=True)
class Ramp:
    """The fall of a cache's hits as a set that is used repeatedly outgrows it."""

    full: float = field("working set, as a multiple of the cache size, up to which every access hits",
                        default=0.8, exclusive_minimum=0.0)  # fmt: skip
    none: float = field("working set, as a multiple of the cache size, from which no access hits",
                        default=1.3, exclusive_minimum=0.0)  # fmt: skip

    def hits(self, working_set: float, size: float) -> float:
        """Part of the accesses found in a cache of `size` bytes.

        >>> Ramp(full=0.5, none=1.5).hits(100.0, 100.0)
        0.5
        """
        return hit_share(working_set, size, full=self.full, none=self.none)


@dataclass(frozen=True, slots=True)
class Sustained:
    """The part of its bandwidth that a memory or a cache sustains, by how much of the traffic is written.

    Between reads alone, a copy (half of the bytes written) and writes alone the time per byte is linear in the share
    of writes, so that reads and writes each cost a time of their own.

    **Source**: the three are measured; GPUs that were not measured take the median of those that were.
    **Error**: 1 % (BabelStream on 11 GPUs, rows not fitted), see `docs/validation/components.md`.
    """

    read: Ratio = field("share of the bandwidth that reads alone sustain", default=1.0, exclusive_minimum=0.0)
    copy: Ratio = field("share of the bandwidth that a copy sustains (as many writes as reads)",
                        default=1.0, exclusive_minimum=0.0)  # fmt: skip
    write: Ratio = field("share of the bandwidth that writes alone sustain", default=1.0, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint): a copy cannot beat its reads or its writes alone."""
        if self.copy > 2 * min(self.read, self.write):
            yield "copy", f"expected at most twice `read` and twice `write`, got {self.copy:g}", None

    def bytes_at_peak(self, reads: float, writes: float) -> float:
        """Bytes at the full bandwidth that take as long as these.

        >>> Sustained(read=0.8, copy=0.5).bytes_at_peak(80.0, 0.0), Sustained(read=0.8, copy=0.5).bytes_at_peak(50.0, 50.0)
        (100.0, 200.0)
        """
        alone, more = (self.read, reads - writes) if reads >= writes else (self.write, writes - reads)
        return more / alone + 2.0 * min(reads, writes) / self.copy

    def part(self, reads: float, writes: float) -> float:
        """The part of the bandwidth that this mix of reads and writes reaches."""
        return (reads + writes) / self.bytes_at_peak(reads, writes) if reads + writes > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Level1:
    """The cache of one multiprocessor. Writes pass it.

    **Range**: it serves a multiprocessor that uses the same set repeatedly within one kernel. Between kernels it
    keeps nothing, and blocks of threads that share a set land on any multiprocessor.
    """

    size: Bytes = field("capacity of the L1 cache of one SM", exclusive_minimum=0.0)
    bandwidth: BytesPerSecond | None = field("bandwidth of the L1 cache of one SM; if omitted, streams do not use it",
                                             default=None, exclusive_minimum=0.0, record=NO_OP)  # fmt: skip
    latency: Seconds = field("latency of a read that hits the L1 cache", default=0.0)
    ramp: Ramp = field("cache hit rate over the working set of streams", default_factory=Ramp, record=NO_OP)
    chase: Ramp = field("cache hit rate over the working set of dependent reads (pointer chasing)", default_factory=Ramp)


@dataclass(frozen=True, slots=True)
class Together:
    """Reads that all multiprocessors make of the same lines at about the same time, such as one table for all.

    Memory sends each line once; what limits them is how fast the lines reach all.
    """

    near: BytesPerSecond = field("total bandwidth to all SMs of lines in the cache partition near each SM", exclusive_minimum=0.0)
    far: BytesPerSecond = field("total bandwidth to all SMs of lines from elsewhere", exclusive_minimum=0.0)
    ramp: Ramp = field("hit rate of the near partition over the working set", default_factory=Ramp)


@dataclass(frozen=True, slots=True)
class Level2:
    """The last cache before memory, shared by all multiprocessors.

    Large ones come in two halves: a multiprocessor has a copy in the `near` one of what it reads, what only the other
    has room for takes longer (`far`).
    """

    size: Bytes = field("total capacity of the L2 cache", exclusive_minimum=0.0)
    bandwidth: BytesPerSecond | None = field("total bandwidth to all SMs; if omitted, streams do not use the L2 cache",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip
    sustained: Sustained = field("sustained share of the L2 bandwidth", default_factory=Sustained)
    ramp: Ramp = field("cache hit rate over the working set of streams", default_factory=Ramp)
    together: Together | None = field("bandwidth of reads of the same lines by all SMs (default: as separate lines)",
                                      default=None, record=NO_OP)  # fmt: skip
    latency: Seconds = field("latency of a read that hits (the near partition, if there are two)", default=0.0)
    chase: Ramp = field("cache hit rate over the working set of dependent reads (pointer chasing)", default_factory=Ramp)
    near: Bytes | None = field("capacity of the partition near an SM; all of the cache if omitted",
                               default=None, exclusive_minimum=0.0)  # fmt: skip
    near_chase: Ramp = field("as `chase`, for the near partition", default_factory=Ramp)
    far: Seconds = field("latency of a read that hits the far partition; 0: `latency`", default=0.0)
    miss: Seconds = field("latency of a read from memory; 0: `latency` of the memory", default=0.0)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The threads that keep the memory busy.

    A thread begins, has a few reads in flight, waits for them (Little's law), writes, and ends:

        waiting = (begun x start + reads / in_flight x read + writes x write) / threads
        time    = (waiting^p + moving^p)^(1/p)

    with the numbers of threads begun, of reads and of writes, and `moving` the time the bytes take.

    **Source** of the rounding: see `hwsim.devices.roofline`.
    **Error**: 3.7 % (mean) on curves of five GPUs over 16 numbers of threads, half of them never seen by the fit.
    **Range**: threads that do nothing but read and write; reads to neighbouring addresses.
    """

    read: Seconds = field("latency of a read from busy memory", exclusive_minimum=0.0)
    write: Seconds = field("time that a write blocks its thread", default=0.0, record=NO_OP)
    start: Seconds = field("startup time of a thread, from the end of its predecessor to its first access",
                           default=0.0, record=NO_OP)  # fmt: skip
    sharpness: float = field("exponent p of the rounding between latency-bound and bandwidth-bound",
                             default=math.inf, minimum=1.0)  # fmt: skip
    threads: int = field("maximum number of resident threads of an SM", default=2048, minimum=1)
    blocks: PerSecond | None = field("thread blocks started per second; unlimited if omitted",
                                     default=None, exclusive_minimum=0.0, record=NO_OP)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """Seconds to start a kernel, by the way it is started."""

    stream: Seconds = field("gap between two kernels of a stream", default=0.0)
    graph: Seconds | None = field("gap between two kernels of a CUDA graph; `stream` if omitted", default=None)
    host: Seconds | None = field("launch and completion time of a kernel that the host waits for; `stream` if omitted",
                                 default=None)  # fmt: skip

    def by(self, start: Start) -> tuple[str, float]:
        """(the key, seconds) of a kernel started so.

        >>> Launch(stream=2e-6, graph=1e-6).by("graph"), Launch(stream=2e-6).by("host")
        (('graph', 1e-06), ('stream', 2e-06))
        """
        given = {"stream": self.stream, "graph": self.graph, "host": self.host}[start]
        return ("stream", self.stream) if given is None else (start, given)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The levels that serve the reads and writes of a GPU, the nearest first. Sections left out serve nothing."""

    memory: LocalMemory
    sustained: Sustained = attribute(default_factory=Sustained)
    sms: int | None = None
    l1: Level1 | None = None
    l2: Level2 | None = None
    occupancy: Occupancy | None = None
    sources: Mapping[str, Origin] = attribute(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Reads and writes of the threads of a kernel, neighbours next to each other.

    Args:
        reads, writes: bytes.
        each: bytes of one read or write of a thread.
        working_set: bytes used repeatedly; None: everything comes from memory once.
        together: every multiprocessor itself uses all of the working set, all at about the same time.
        threads: at work at any time; None: enough of them.
        in_flight: reads that a thread starts before it waits.
        begun: threads that begin, each in the place of one that ended.
        blocks: number of blocks of threads that are started.
        start: who starts the kernel.
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
    """(key, message, hint) of what cannot be: each level is at least as fast as the next, or it would not be one."""
    yield from under("sustained", parts.sustained.problems())
    first, second, memory = parts.l1, parts.l2, parts.memory.bandwidth
    if second is not None:
        yield from under("l2.sustained", second.sustained.problems())
        if second.bandwidth is not None and second.bandwidth * second.sustained.copy < memory * parts.sustained.copy:
            yield "l2.bandwidth", "the L2 cache is slower than the memory", None
        if second.together is not None and second.together.near < second.together.far:
            yield "l2.together.near", "near lines arrive more slowly than far lines: expected at least `far`", None
        ordered = [second.latency, second.far or second.latency, second.miss]
        if second.miss and ordered != sorted(ordered):
            yield "l2.miss", "memory is faster than the L2 cache: expected `latency` <= `far` <= `miss`", None
    if first is not None and first.bandwidth is not None:
        if parts.sms is None:
            yield "l1.bandwidth", "the L1 bandwidth of one SM requires the number of SMs", "add `sms: 80`"
        elif first.bandwidth * parts.sms < (second.bandwidth if second is not None and second.bandwidth else memory):
            yield "l1.bandwidth", "the L1 caches of all SMs are slower than the next level", None
