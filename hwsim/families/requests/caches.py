"""The caches of a CPU, access by access: set-associative LRU caches, coherence between cores, and prefetching.

An access has the latency of the first level with its line, from L1 outwards; if there is none, the latency of memory, which
delivers lines at its bandwidth. The line is then stored in every level that missed. A victim level instead stores the lines
evicted from the level before it. A modified line is owned by one core. An access by another core waits for its transfer;
transfers of a line are serialized, which is the cost of false sharing. A store invalidates the line in all other caches (MESI
without the exclusive state). A core issues in order. With `depth` L1 misses outstanding, it waits for the oldest one; with a
depth of 1, accesses are dependent. A prefetcher fetches up to 20 lines ahead into L2, once two successive strides in a page are
equal.

**Source.** Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970 (stacks).
Sorin, Hill and Wood, "A Primer on Memory Consistency and Cache Coherence", 2011; Intel 64 and IA-32 Architectures
Optimization Reference Manual, "Data prefetching" (streams in pages of 4 KiB).
**Error.** Hits equal the hits by stack distances exactly (tests/test_request_level_caches.py).
**Range.** True LRU, contiguous physical addresses; no inclusion, no store buffers (a store takes as long as a load), no bandwidth
limit between levels. Suitable for working sets up to about 100,000 lines.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Literal

import numpy as np

from hwsim.demand import Requests
from hwsim.devices.cache import Caches
from hwsim.devices.cores import Coherence
from hwsim.devices.cpu import Cpu
from hwsim.devices.cpu_access import memory_latency
from hwsim.families.requests.dram import dram_play
from hwsim.families.requests.requests import NoRequestSimulation, RequestColumns, RequestDevice, requests_of
from hwsim.graph.opgraph import Ints
from hwsim.units import BytesPerSecond, Seconds

Prefetch = Literal["none", "stream"]

PAGE: Final = 4096  # bytes: a prefetcher does not cross page boundaries
AHEAD: Final = 20  # lines: prefetch distance
STREAMS: Final = 32  # maximum pages tracked by a core's prefetcher
_PURGE: Final = 1 << 14  # entries of `_arrives` above which entries in the past are deleted


def cpu_play(cpu: Cpu, name: str = "the cpu") -> RequestDevice:
    """Return the simulation of a CPU: its caches, or its memory if it has no `caches:`."""
    return caches_play(cpu, name) if cpu.caches else dram_play(cpu.memory.dram, cpu.memory.size, name)


def caches_play(cpu: Cpu, name: str = "the cpu") -> RequestDevice:
    """Return the simulation of a CPU's caches.

    Each core has its own contiguous part of sequential or strided accesses. An op that reads a working set repeatedly finds the
    caches in the state after its last pass.

    Raises:
        CannotPlay: The CPU has no caches.
    """
    if cpu.caches is None:
        raise NoRequestSimulation(f"{name} has no `caches`", "caches: {levels: {L1: {size: 32 KiB, cycles: 4}}}")
    clock = cpu.clock_of("scalar", 1) or 1e9
    loads = cpu.core.loads if cpu.core else 2.0
    simulation = CacheSimulation(
        cpu.caches,
        cores=cpu.cores,
        clock=clock,
        memory=memory_latency(cpu),
        bandwidth=cpu.memory.bandwidth,
        coherence=cpu.coherence,
        gap=1.0 / (loads * clock),
    )

    def requests(wanted: Requests, span: float, time: float) -> RequestColumns:
        served = requests_of(wanted, span, time)
        if wanted.pattern in ("sequential", "strided"):
            served.core = [index * wanted.cores // len(served) for index in range(len(served))]
        if wanted.span:
            simulation.warm(int(wanted.span), wanted.cores, alike=wanted.pattern in ("random", "dependent"))
        return served

    return RequestDevice(simulation, cpu.memory.size or 1 << 40, requests)


class _Actor:
    """The accesses of an op on one core, in order."""

    __slots__ = ("core", "flying", "gate", "next", "rows", "served", "window")

    def __init__(self, served: RequestColumns, core: int, rows: list[int], window: float) -> None:
        self.served, self.core, self.rows, self.window = served, core, rows, window
        self.flying: deque[Seconds] = deque()  # completion times of outstanding accesses
        self.next, self.gate = 0, 0.0


class CacheSimulation:
    """The request-level simulation of caches; implements `RequestSimulation`. The cores of an op share its `depth` evenly.

    Args:
        caches: levels from the core outwards; a level without `ways` is fully associative.
        cores: number of cores.
        clock: clock frequency (Hz).
        memory: latency of a miss in all levels (s).
        bandwidth: memory bandwidth (bytes/s).
        coherence: time of a line transfer between cores; default: the latency of the last level.
        prefetch: prefetcher: none, or streams.
        gap: minimum time between two accesses of a core (s).
    """

    def __init__(
        self,
        caches: Caches,
        *,
        cores: int = 1,
        clock: float = 1e9,
        memory: Seconds = 80e-9,
        bandwidth: BytesPerSecond = math.inf,
        coherence: Coherence | None = None,
        prefetch: Prefetch = "stream",
        gap: Seconds = 0.0,
    ) -> None:
        self._line, self._cores, self._memory, self._gap = int(caches.line), cores, memory, gap
        self._names = tuple(caches.levels)
        levels = tuple(caches.levels.values())
        self._times = [level.time(clock) for level in levels]
        self._victim = [level.victim for level in levels]
        self._of = [[core // level.shared_by for core in range(cores)] for level in levels]  # level, core -> index of its cache
        self._ways: list[int] = []
        self._sets: list[list[list[dict[int, None]]]] = []  # by level, cache and set: lines, least recently used first
        for level in levels:
            lines = max(1, int(level.size // caches.line))
            ways = min(level.ways or lines, lines)
            self._ways.append(ways)
            self._sets.append([[{} for _ in range(max(1, lines // ways))] for _ in range(-(-cores // level.shared_by))])
        self._between = [[self._transfer(index, other, coherence) for other in range(cores)] for index in range(cores)]
        self._prefetch: Prefetch = prefetch
        self._allocate = caches.write_allocate
        self._line_time = caches.line / bandwidth
        self._memory_free = 0.0
        self._pages: list[dict[int, tuple[int, int]]] = [{} for _ in range(cores)]  # by core: page -> (last line, stride)
        self._tlbs = [
            (int(tlb.page), tlb.entries, tlb.miss, [dict[int, None]() for _ in range(cores)]) for tlb in caches.tlbs.values()
        ]
        self._writer: dict[int, int] = {}  # line -> core that owns the modified line
        self._holders: dict[int, int] = {}  # line -> bit mask of cores that may have it
        self._dirty: set[int] = set()
        self._arrives: dict[int, Seconds] = {}  # line in flight -> arrival time
        self._heap: list[tuple[float, int, _Actor]] = []
        self._order = count().__next__
        self._hits = [0] * len(levels)
        self._counted = dict.fromkeys(
            ("accesses", "lines", "memory_reads", "write_backs", "transfers", "prefetched", "tlb_misses"), 0
        )
        self._access = self._access_function()

    @property
    def counters(self) -> dict[str, float]:
        """Counts of accesses, lines, hits by level, memory reads, write-backs, line transfers, prefetches and TLB misses."""
        hits = {f"{name}_hits": hit for name, hit in zip(self._names, self._hits, strict=True)}
        return {
            **{name: float(number) for name, number in self._counted.items()},
            **{name: float(hit) for name, hit in hits.items()},
        }

    def units(self, address: Ints) -> tuple[Ints, str]:
        return np.zeros_like(address), "cache"

    def offer(self, served: RequestColumns) -> None:
        rows: dict[int, list[int]] = {}
        for row, core in enumerate(served.core):
            rows.setdefault(core % self._cores, []).append(row)
        for core, core_rows in rows.items():
            window = math.inf if served.depth is None else max(1, served.depth // len(rows))
            heappush(self._heap, (served.at[core_rows[0]], self._order(), _Actor(served, core, core_rows, window)))

    def warm(self, span: int, cores: int = 1, *, alike: bool = True) -> None:
        """Set the state after a sequential read of the first `span` bytes.

        A level then has the last lines that fit; a victim level has the lines before them.

        Args:
            span: bytes.
            cores: number of cores that read.
            alike: every core has read all bytes; otherwise each has read its own part.
        """
        lines, done = -(-span // self._line), set[tuple[int, int]]()
        for core in range(min(cores, self._cores)):
            first, last = (0, lines) if alike else (lines * core // cores, lines * (core + 1) // cores)
            end = last
            for level, ways in enumerate(self._ways):
                which = self._of[level][core]
                sets = self._sets[level][which]
                if not self._victim[level]:
                    end = last
                begin = max(first, end - len(sets) * ways)
                if not (alike and (level, which) in done):
                    done.add((level, which))
                    for line in range(begin, end):
                        content = sets[line % len(sets)]
                        content.pop(line, None)
                        content[line] = None
                        if len(content) > ways:
                            del content[next(iter(content))]
                        if self._cores > 1:
                            self._holders[line] = self._holders.get(line, 0) | 1 << core
                end = begin
            for page, entries, _, pages in self._tlbs:
                final = last * self._line // page
                for number in range(max(0, final - entries), final + 1):
                    pages[core][number] = None
                    if len(pages[core]) > entries:
                        del pages[core][next(iter(pages[core]))]

    def due(self) -> float:
        return self._heap[0][0] if self._heap else math.inf

    def advance(self, until: float) -> None:
        heap, gap, access, counts = self._heap, self._gap, self._access, self._counted
        quick = 1.001 * self._times[0]
        while heap and heap[0][0] <= until:
            time, _, actor = heappop(heap)
            another = heap[0][0] if heap else math.inf  # continue with this core until another one is due
            served, rows, core, window, flying = actor.served, actor.rows, actor.core, actor.window, actor.flying
            issued, start, finish = served.issued, served.start, served.finish
            address, size, write = served.address, served.size, served.write
            index, begun, last = actor.next, actor.next, len(rows)
            while True:
                row = rows[index]
                issued[row] = start[row] = time
                finish[row] = ends = access(time, core, address[row], size[row], write[row])
                index += 1
                if index == last:
                    break
                upcoming = time + gap
                if window == 1 or ends > time + quick:
                    flying.append(ends)
                if len(flying) >= window:
                    gone = flying.popleft()
                    if gone > actor.gate:
                        actor.gate = gone
                    if actor.gate > upcoming:
                        upcoming = actor.gate
                arrives = served.at[rows[index]]
                time = max(upcoming, arrives)
                if time >= another or time > until:
                    heappush(heap, (time, self._order(), actor))
                    break
            actor.next = index
            served.left -= index - begun
            counts["accesses"] += index - begun

    def _transfer(self, core: int, other: int, coherence: Coherence | None) -> Seconds:
        """Return the time to transfer a line between two cores (s)."""
        if coherence is None:
            return self._times[-1]
        near = coherence.cluster_cores is None or core // coherence.cluster_cores == other // coherence.cluster_cores
        return coherence.cluster if near or coherence.across is None else coherence.across

    def _access_function(self) -> Callable[[float, int, int, int, bool], float]:
        """Return the function of one access; closures over local names make it fast."""
        sets, of, times, ways, victim = self._sets, self._of, self._times, self._ways, self._victim
        hits, events = self._hits, self._counted
        writer, holders, dirty, arrives, line_size = self._writer, self._holders, self._dirty, self._arrives, self._line
        depth, several, first = len(times), self._cores > 1, sets[0]
        counts = [len(level[0]) for level in sets]
        of_first, first_sets, first_time = of[0], counts[0], times[0]
        ahead_level = min(1, depth - 1)

        def from_memory(time: float) -> float:
            begin = max(time, self._memory_free)
            self._memory_free = begin + self._line_time
            events["memory_reads"] += 1
            return begin + self._memory

        def put(level: int, core: int, line: int) -> None:
            """Store a line in a level; evict the least recently used line of the set if it is full."""
            lines = sets[level][of[level][core]][line % counts[level]]
            lines.pop(line, None)
            lines[line] = None
            if len(lines) > ways[level]:
                gone = next(iter(lines))
                del lines[gone]
                if level + 1 < depth and victim[level + 1]:
                    put(level + 1, core, gone)
                elif level == depth - 1:
                    leave(gone)

        def leave(line: int) -> None:
            """Evict a line from the last level."""
            writer.pop(line, None)
            if line in dirty:
                dirty.discard(line)
                self._memory_free += self._line_time
                events["write_backs"] += 1

        def take(core: int, line: int) -> bool:
            """Invalidate a line in all other caches; return whether another core may have had it."""
            others = holders.get(line, 0) & ~(1 << core)
            holders[line] = 1 << core
            if not others:
                return False
            for other_core in range(self._cores):
                if others >> other_core & 1:
                    for level in range(depth):
                        if of[level][other_core] != of[level][core]:
                            sets[level][of[level][other_core]][line % counts[level]].pop(line, None)
            return True

        def fetch(time: float, core: int, line: int, write: bool) -> float:
            """Return the time at which a line is available after an L1 miss, or after a store to a shared line."""
            owner = writer.get(line, core)
            if owner != core:
                ends = max(time, arrives.get(line, 0.0)) + self._between[owner][core]
                arrives[line] = ends
                events["transfers"] += 1
                del writer[line]
                if write:
                    take(core, line)
                bring(depth, core, line)
                return ends
            ends = time
            for level in range(depth):
                if line in sets[level][of[level][core]][line % counts[level]]:
                    hits[level] += 1
                    ends = time + times[level]
                    bring(level, core, line)
                    break
            else:
                if write and not self._allocate:
                    self._memory_free = max(time, self._memory_free) + self._line_time
                    events["write_backs"] += 1
                    return time + first_time
                ends = arrives[line] = from_memory(time)
                bring(depth, core, line)
            if write and several and take(core, line):
                ends = max(ends, time + max(self._between[core]))
                events["transfers"] += 1
            return ends

        def bring(level: int, core: int, line: int) -> None:
            """Store a line in the levels nearer to the core than `level`; a victim level gives it up."""
            if 0 < level < depth:
                lines = sets[level][of[level][core]][line % counts[level]]
                del lines[line]
                if not victim[level]:
                    lines[line] = None
            for nearer in range(min(level, depth) - 1, -1, -1):
                if nearer == 0 or not victim[nearer]:
                    put(nearer, core, line)
            if level == 0:
                lines = first[of_first[core]][line % first_sets]
                del lines[line]
                lines[line] = None

        def look_ahead(time: float, core: int, line: int) -> None:
            """Prefetch the next lines of a stream."""
            page = line * line_size // PAGE
            pages = self._pages[core]
            last, before = pages.pop(page, (line, 0))
            step = line - last
            pages[page] = (line, step or before)
            if len(pages) > STREAMS:
                del pages[next(iter(pages))]
            if step == 0 or step != before:
                return
            for wanted in range(line + step, line + step * (AHEAD + 1), step):
                if wanted < 0 or wanted * line_size // PAGE != page:
                    return
                if wanted in writer and writer[wanted] != core:
                    continue
                level_found = next(
                    (level for level in range(depth) if wanted in sets[level][of[level][core]][wanted % counts[level]]), depth
                )
                if level_found <= ahead_level:
                    continue
                arrives[wanted] = time + times[level_found] if level_found < depth else from_memory(time)
                events["prefetched"] += 1
                if several:
                    holders[wanted] = holders.get(wanted, 0) | 1 << core
                for level in range(min(level_found, depth) - 1, ahead_level - 1, -1):
                    if level == ahead_level or not victim[level]:
                        put(level, core, wanted)

        def translated(core: int, address: int) -> float:
            """Return the time of address translation (s)."""
            more = 0.0
            for page, entries, miss, tlbs in self._tlbs:
                number, pages = address // page, tlbs[core]
                if number in pages:
                    del pages[number]
                else:
                    more += miss
                    events["tlb_misses"] += 1
                pages[number] = None
                if len(pages) > entries:
                    del pages[next(iter(pages))]
            return more

        watching, paged = self._prefetch != "none", bool(self._tlbs)

        def access(time: float, core: int, address: int, size: int, write: bool) -> float:
            line, last = address // line_size, (address + size - 1) // line_size
            begin = time + translated(core, address) if paged else time
            ends = 0.0
            while True:
                lines = first[of_first[core]][line % first_sets]
                if line in lines and not (write and several and writer.get(line) != core):
                    del lines[line]
                    lines[line] = None
                    hits[0] += 1
                    ends_at = begin + first_time
                    if arrives and line in arrives:
                        ends_at = max(ends_at, arrives[line])
                else:
                    if line in arrives and arrives[line] <= time:
                        del arrives[line]
                    waits = arrives.get(line, 0.0) if writer.get(line, core) == core else 0.0
                    ends_at = max(fetch(begin, core, line, write), waits)
                    if several:
                        holders[line] = holders.get(line, 0) | 1 << core
                    if watching:
                        look_ahead(time, core, line)
                if write:
                    writer[line] = core
                    dirty.add(line)
                events["lines"] += 1
                ends = max(ends, ends_at)
                if line == last:
                    break
                line += 1
            if len(arrives) > _PURGE:
                for gone in [line for line, when in arrives.items() if when <= time]:
                    del arrives[gone]
            return ends

        return access
