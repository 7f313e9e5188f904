"""Caches: hit rates of a working set by level, bandwidth of each level, latency of an access.

Sequential reuse: level l has the hit rate hit(W / C), a ramp (see `hit_share`), and its misses are served by the next level.
The time of a core for each op is

    bytes / b1 + sum of (bytes that miss l - 1) / b_l       without overlap (Intel)
    max(bytes / b1, (bytes that miss l - 1) / b_l)           with overlap (AMD Zen)

Random access: each line is equally likely, so a level with capacity C serves C / W of accesses to W bytes. If pages of random
colour compete for sets of `ways` lines, the hit rate is E[min(N, ways)] / mean, N ~ Poisson(mean = ways W / C).
The latency of an access adds the latencies of the levels that it misses, and a page-table walk beyond the reach of the TLB:

    latency = first level + sum (1 - hit_l^k) (latency_l+1 - latency_l) + sum (1 - reach_t^k) miss_t + walk_t log2(W / reach_t)

for k parallel chains, of which the slowest counts. It is at least the time of k accesses with `in_flight` misses in flight, or,
if measured, with `paired` / 2 of the chains in flight.

Source: composition: Treibig and Hager, "Introducing a performance model for bandwidth-limited loop kernels", PPAM 2009
(execution-cache-memory model). Page colours: Kessler and Hill, ACM TOCS 10(4), 1992.
Error: docs/validation/components.md: in-cache streams against likwid-bench, latency against tinymembench.
Range: LRU or random replacement, uniform accesses, streams that a prefetcher detects. No inclusion effects, no stencils (layer
conditions), no cache shared with other programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache level, as one core sees it."""

    size: Bytes = field("capacity of one cache of this level", exclusive_minimum=0.0)
    latency: Seconds | None = field("load-to-use latency from the core; alternative to `cycles`", default=None)
    cycles: float | None = field("load-to-use latency in core cycles; alternative to `latency`", default=None, minimum=0.0)
    bandwidth: BytesPerSecond | None = field("read bandwidth of one core, unlimited if omitted; alternative to `per_cycle`",
                                             default=None, exclusive_minimum=0.0)  # fmt: skip
    per_cycle: float | None = field("bytes that one core reads per cycle; alternative to `bandwidth`",
                                    default=None, exclusive_minimum=0.0)  # fmt: skip
    together: BytesPerSecond | None = field("total read bandwidth of the cores that share one cache; unlimited if omitted",
                                            default=None, exclusive_minimum=0.0)  # fmt: skip
    write_cost: float = field("time to write a byte, relative to the time to read one", default=1.0, minimum=0.0)
    shared_by: int = field("number of cores that share one cache", default=1, minimum=1)
    ways: int = field("associativity, for conflict misses of randomly coloured pages; 0: no conflict misses",
                      default=0, minimum=0)  # fmt: skip
    full: float = field("working set, as a multiple of the cache size, up to which sequential reuse always hits",
                        default=0.8, minimum=0.0)  # fmt: skip
    none: float = field("working set, as a multiple of the cache size, from which sequential reuse never hits",
                        default=1.3, exclusive_minimum=0.0)  # fmt: skip
    victim: bool = field("whether it is a victim cache: its size adds to the previous level's", default=False)

    def time(self, clock: float) -> float:
        """Return the load-to-use latency (s)."""
        return self.latency if self.latency is not None else (self.cycles or 0.0) / clock

    def rate(self, clock: float, sharing: int) -> float:
        """Return the read bandwidth (B/s) of each of `sharing` cores; infinite if not given."""
        rate = self.bandwidth if self.bandwidth is not None else math.inf if self.per_cycle is None else self.per_cycle * clock
        return rate if self.together is None else min(rate, self.together / max(sharing, 1))


@dataclass(frozen=True, slots=True)
class Tlb:
    """A translation lookaside buffer."""

    entries: int = field("number of TLB entries (pages)", minimum=1)
    page: Bytes = field("page size", default=4096.0, exclusive_minimum=0.0)
    miss: Seconds = field("extra time of an access that misses this TLB", default=0.0)
    walk: Seconds = field("extra time for each doubling of the working set beyond the TLB's reach", default=0.0)

    @property
    def reach(self) -> float:
        """Bytes whose translations fit into the TLB."""
        return self.entries * self.page


@dataclass(frozen=True, slots=True)
class Caches:
    """The caches of a socket from the core outwards, and its TLBs."""

    levels: Mapping[str, CacheLevel] = field("cache levels from the core outwards: {L1: ..., L2: ..., L3: ...}")
    tlbs: Mapping[str, Tlb] = field("TLBs from the core outwards", default_factory=dict)
    line: Bytes = field("size of a cache line", default=64.0, exclusive_minimum=0.0)
    overlap: bool = field("true: levels transfer concurrently (AMD Zen); false: one after another (Intel)", default=False)
    write_allocate: bool = field("whether a cache line is read before it is written", default=True)
    in_flight: float = field("number of cache misses that one core keeps in flight in random access", default=10.0, minimum=1.0)
    paired: float | None = field("number of chains (1 to 2) that progress at once if a core follows two dependent chains; both "
                                 "if omitted", default=None, minimum=1.0, maximum=2.0)  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        if not self.levels:
            yield "caches.levels", "no cache level is defined", "such as {L1: {size: 32 KiB, cycles: 4}}"
        before: CacheLevel | None = None
        for name, level in self.levels.items():
            key = f"caches.levels.{name}"
            if level.latency is not None and level.cycles is not None:
                yield key, "two latencies: expected `latency` or `cycles`, got both", None
            if level.bandwidth is not None and level.per_cycle is not None:
                yield key, "two bandwidths: expected `bandwidth` or `per_cycle`, got both", None
            if level.none <= level.full:
                yield f"{key}.none", f"expected more than `full` ({level.full:g}), got {level.none:g}", None
            if before is not None and level.size < before.size and not level.victim:
                yield key, "the cache is smaller than the previous level", "list the levels from the core outwards"
            latencies = ((before.cycles, level.cycles), (before.latency, level.latency)) if before is not None else ()
            if any(previous is not None and current is not None and current < previous for previous, current in latencies):
                yield key, "the latency is lower than that of the previous level", "list the levels from the core outwards"
            before = level

    def sizes(self, used: int) -> tuple[float, ...]:
        """Return the total capacity (B) of each level for `used` busy cores next to each other.

        >>> Caches(levels={"L1": CacheLevel(size=32.0), "L3": CacheLevel(size=1000.0, shared_by=4)}).sizes(6)
        (192.0, 2000.0)
        """
        sizes: list[float] = []
        for level in self.levels.values():
            size = level.size * math.ceil(used / level.shared_by)
            sizes.append(size + sizes[-1] if level.victim and sizes else size)
        return tuple(sizes)

    def streamed(self, working_set: float | None, used: int) -> tuple[float, ...]:
        """Return the hit rate of sequential reuse in each level or a nearer one; non-decreasing."""
        if working_set is None:
            return (0.0,) * len(self.levels)
        levels = zip(self.levels.values(), self.sizes(used), strict=True)
        return _rising(hit_share(working_set, size, full=level.full, none=level.none) for level, size in levels)

    def scattered(self, working_set: float | None) -> tuple[float, ...]:
        """Return the hit rates as `streamed`, for random accesses; each core uses the whole working set."""
        if working_set is None:
            return (0.0,) * len(self.levels)
        ways = [level.ways for level in self.levels.values()]
        return _rising(random_share(working_set, size, way) for size, way in zip(self.sizes(1), ways, strict=True))

    def moving(
        self, reads: float, writes: float, in_place: float, served: Sequence[float], used: int, clock: float, near: float = 1.0
    ) -> tuple[float, ...]:
        """Return the time (s) for which each level occupies a core with its share of the bytes, all cores at once.

        Args:
            reads: bytes read.
            writes: bytes written.
            in_place: bytes written to addresses that are read as well.
            served: hit rate of each level, see `streamed`.
            used: number of busy cores.
            clock: clock of the cores (Hz).
            near: share of the bytes that the core requests; below 1 if it uses a part of each line.

        Beyond the first level, a stored line is read (`write_allocate`) and written back.
        """
        fetched = reads + (max(0.0, writes - in_place) if self.write_allocate else 0.0)
        missing = (1.0, *(1.0 - part for part in served[:-1]))
        times = []
        for index, (level, part) in enumerate(zip(self.levels.values(), missing, strict=True)):
            is_first = index == 0
            weight = near * (reads + level.write_cost * writes) if is_first else fetched + level.write_cost * writes
            times.append(part * weight / used / level.rate(clock, min(used, level.shared_by)))
        return tuple(times)

    def latency(
        self, working_set: float | None, clock: float, memory: float, chains: int = 1
    ) -> tuple[tuple[str, float, float], ...]:
        """Return (name, share of groups of `chains` accesses, extra seconds of a group) by level and TLB, outwards.

        working_set: bytes accessed at random; None: every line comes from memory, without TLB misses.
        """
        served = self.scattered(working_set)
        times = [*(level.time(clock) for level in self.levels.values()), memory]
        first, *names = [*self.levels, "memory"]
        steps = [(first, 1.0, times[0])]
        for name, part, before, after in zip(names, served, times[:-1], times[1:], strict=True):
            steps.append((name, 1.0 - part**chains, max(0.0, after - before)))
        if working_set is None:
            return tuple(steps)
        for name, tlb in self.tlbs.items():
            hit_rate = min(1.0, tlb.reach / working_set) if working_set > 0 else 1.0
            doublings = max(0.0, math.log2(working_set / tlb.reach)) if working_set > 0 else 0.0
            steps.append((f"TLB {name}", 1.0 - hit_rate**chains, tlb.miss + tlb.walk * doublings))
        return tuple(steps)

    def group_time(self, working_set: float | None, clock: float, memory: float, chains: int = 1) -> float:
        """Return the time (s) until `chains` parallel accesses of a core have all completed."""
        group = math.fsum(part * extra for _, part, extra in self.latency(working_set, clock, memory, chains))
        single = group if chains == 1 else math.fsum(part * extra for _, part, extra in self.latency(working_set, clock, memory))
        return max(group, chains * single / self.followed(chains))

    def followed(self, chains: int) -> float:
        """Return the misses in flight of a core with `chains` parallel chains: `paired` of every two, at most `in_flight`.

        >>> slow = Caches(levels={"L1": CacheLevel(size=32.0)}, paired=1.5)
        >>> [slow.followed(chains) for chains in (1, 2, 4, 100)]
        [1.0, 1.5, 3.0, 10.0]
        """
        return self.in_flight if self.paired is None else min(self.in_flight, max(1.0, self.paired / 2.0 * chains))


def random_share(working_set: float, size: float, ways: int = 0) -> float:
    """Return the hit rate of random accesses to `working_set` bytes in a cache of `size` bytes.

        E[min(N, ways)] / mean,  N ~ Poisson(mean = ways x working_set / size);  without ways: min(1, size / working_set)

    >>> random_share(200, 100), random_share(50, 100), round(random_share(100, 100, 16), 2)
    (0.5, 1.0, 0.9)
    """
    if working_set <= 0:
        return 1.0
    if ways == 0:
        return min(1.0, size / working_set)
    mean = ways * working_set / size
    if mean > 60 + 3 * ways:
        return size / working_set
    chance, few_lines, cached = math.exp(-mean), 0.0, 0.0
    for lines in range(ways):
        few_lines, cached = few_lines + chance, cached + lines * chance
        chance *= mean / (lines + 1)
    return min(1.0, (cached + ways * max(0.0, 1.0 - few_lines)) / mean)


def _rising(parts: Iterable[float]) -> tuple[float, ...]:
    """Return the running maximum, because a level serves at least the share of the levels nearer to the core."""
    maxima: list[float] = []
    for part in parts:
        maxima.append(max(part, maxima[-1]) if maxima else part)
    return tuple(maxima)


def hit_share(working_set: float, capacity: float, *, full: float = 0.8, none: float = 1.3) -> float:
    """Return the hit rate of a cache for `working_set` bytes that are used repeatedly.

    It is 1 up to `full` x capacity, 0 from `none` x capacity, and linear in between.

    >>> hit_share(50, 100), hit_share(200, 100), round(hit_share(105, 100), 2)
    (1.0, 0.0, 0.5)
    """
    if capacity <= 0:
        return 0.0
    return min(1.0, max(0.0, (none - working_set / capacity) / (none - full)))
