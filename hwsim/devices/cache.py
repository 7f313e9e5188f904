"""Caches: which level serves a working set, how fast, and how long one access takes.

Gone over in order, again and again: level l serves hit(W / C), a ramp (see `curves.hit_share`); bytes that miss it
cross from the next. A core takes, per op,

    bytes / b1 + sum of (bytes that miss l - 1) / b_l       one transfer at a time (Intel: not overlapping)
    max(bytes / b1, (bytes that miss l - 1) / b_l)           all at once (AMD Zen)

Anywhere, at random: every line is as likely as any other, so a level that holds C of W bytes serves C / W of them. Pages
of random colour crowd lines out of a set of `ways` lines, and leave E[min(N, ways)] / mean, N ~ Poisson(mean = ways W / C).
One access takes the latencies of the levels it misses, and a walk of the page tables beyond the reach of the TLB:

    latency = first level + sum (1 - hit_l^k) (latency_l+1 - latency_l) + sum (1 - reach_t^k) miss_t + walk_t log2(W / reach_t)

for k chains side by side (the slowest of k counts); never less than k accesses through `in_flight`, or through `paired` / 2
of the chains where that was measured.

Source: composition: Treibig and Hager, "Introducing a performance model for bandwidth-limited loop kernels", PPAM 2009
(execution-cache-memory model). Page colours: Kessler and Hill, ACM TOCS 10(4), 1992.
Error: docs/validation/components.md: in-cache streams against likwid-bench, latency against tinymembench.
Range: least recently used or random replacement, uniform accesses; a stream that a prefetcher sees. No inclusion
effects, no stencils (layer conditions), no cache that other programs use too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class Level:
    """One level of cache, as one core sees it."""

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
        """Seconds of one access that it serves."""
        return self.latency if self.latency is not None else (self.cycles or 0.0) / clock

    def rate(self, clock: float, sharing: int) -> float:
        """Bytes per second that each of `sharing` cores reads from it; infinite if not given."""
        own = self.bandwidth if self.bandwidth is not None else math.inf if self.per_cycle is None else self.per_cycle * clock
        return own if self.together is None else min(own, self.together / max(sharing, 1))


@dataclass(frozen=True, slots=True)
class Tlb:
    """Pages whose place is known without looking into the page tables."""

    entries: int = field("number of TLB entries (pages)", minimum=1)
    page: Bytes = field("page size", default=4096.0, exclusive_minimum=0.0)
    miss: Seconds = field("extra time of an access that misses this TLB", default=0.0)
    walk: Seconds = field("extra time for each doubling of the working set beyond the TLB's reach", default=0.0)

    @property
    def reach(self) -> float:
        """Bytes it covers."""
        return self.entries * self.page


@dataclass(frozen=True, slots=True)
class Caches:
    """The caches of a socket, from the core outwards, and its TLBs."""

    levels: Mapping[str, Level] = field("cache levels from the core outwards: {L1: ..., L2: ..., L3: ...}")
    tlbs: Mapping[str, Tlb] = field("TLBs from the core outwards", default_factory=dict)
    line: Bytes = field("size of a cache line", default=64.0, exclusive_minimum=0.0)
    overlap: bool = field("true: levels transfer concurrently (AMD Zen); false: one after another (Intel)", default=False)
    write_allocate: bool = field("whether a cache line is read before it is written", default=True)
    in_flight: float = field("number of cache misses that one core keeps in flight in random access", default=10.0, minimum=1.0)
    paired: float | None = field("chains of dependent accesses that progress at once if a core follows two; both if omitted",
                                 default=None, minimum=1.0, maximum=2.0)  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if not self.levels:
            yield "caches.levels", "no cache level is defined", "such as {L1: {size: 32 KiB, cycles: 4}}"
        before: Level | None = None
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
            waits = ((before.cycles, level.cycles), (before.latency, level.latency)) if before is not None else ()
            if any(near is not None and far is not None and far < near for near, far in waits):
                yield key, "the latency is lower than that of the previous level", "list the levels from the core outwards"
            before = level

    def sizes(self, used: int) -> tuple[float, ...]:
        """Bytes that each level holds for `used` busy cores that sit next to each other, all such caches together.

        >>> Caches(levels={"L1": Level(size=32.0), "L3": Level(size=1000.0, shared_by=4)}).sizes(6)
        (192.0, 2000.0)
        """
        sizes: list[float] = []
        for level in self.levels.values():
            size = level.size * math.ceil(used / level.shared_by)
            sizes.append(size + sizes[-1] if level.victim and sizes else size)
        return tuple(sizes)

    def streamed(self, working_set: float | None, used: int) -> tuple[float, ...]:
        """Part of the bytes that each level serves itself or from nearer the core, read in order; rising."""
        if working_set is None:
            return (0.0,) * len(self.levels)
        levels = zip(self.levels.values(), self.sizes(used), strict=True)
        return _rising(hit_share(working_set, size, full=each.full, none=each.none) for each, size in levels)

    def scattered(self, working_set: float | None) -> tuple[float, ...]:
        """As `streamed`, for accesses to any line at random: every core uses the whole working set."""
        if working_set is None:
            return (0.0,) * len(self.levels)
        ways = [level.ways for level in self.levels.values()]
        return _rising(random_share(working_set, size, way) for size, way in zip(self.sizes(1), ways, strict=True))

    def moving(
        self, reads: float, writes: float, in_place: float, served: Sequence[float], used: int, clock: float, near: float = 1.0
    ) -> tuple[float, ...]:
        """Seconds for which each level keeps a core busy with its part of these bytes, all cores at once.

        near: part of these bytes that the core itself asks for: less than 1 where it uses a part of each line.
        Beyond the first level a line that is stored to comes in (`write_allocate`) and goes out again.
        """
        fetched = reads + (max(0.0, writes - in_place) if self.write_allocate else 0.0)
        missing = (1.0, *(1.0 - part for part in served[:-1]))
        times = []
        for at, (level, part) in enumerate(zip(self.levels.values(), missing, strict=True)):
            first = at == 0
            weight = near * (reads + level.write_cost * writes) if first else fetched + level.write_cost * writes
            times.append(part * weight / used / level.rate(clock, min(used, level.shared_by)))
        return tuple(times)

    def latency(
        self, working_set: float | None, clock: float, memory: float, chains: int = 1
    ) -> tuple[tuple[str, float, float], ...]:
        """(what, part of the groups of `chains` accesses that meet it, seconds more for them), from the core outwards.

        working_set: None: every line comes from memory, and every page is known.
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
            levels = min(1.0, tlb.reach / working_set) if working_set > 0 else 1.0
            beyond = max(0.0, math.log2(working_set / tlb.reach)) if working_set > 0 else 0.0
            steps.append((f"TLB {name}", 1.0 - levels**chains, tlb.miss + tlb.walk * beyond))
        return tuple(steps)

    def group_time(self, working_set: float | None, clock: float, memory: float, chains: int = 1) -> float:
        """Seconds until `chains` accesses that a core makes side by side have all ended."""
        together = math.fsum(part * more for _, part, more in self.latency(working_set, clock, memory, chains))
        alone = together if chains == 1 else math.fsum(part * more for _, part, more in self.latency(working_set, clock, memory))
        return max(together, chains * alone / self.followed(chains))

    def followed(self, chains: int) -> float:
        """Lines that a core waits for at once, of `chains` side by side: `paired` of every two, at most `in_flight`.

        >>> slow = Caches(levels={"L1": Level(size=32.0)}, paired=1.5)
        >>> [slow.followed(chains) for chains in (1, 2, 4, 100)]
        [1.0, 1.5, 3.0, 10.0]
        """
        return self.in_flight if self.paired is None else min(self.in_flight, max(1.0, self.paired / 2.0 * chains))


def random_share(working_set: float, size: float, ways: int = 0) -> float:
    """Part of random accesses to `working_set` bytes that a cache of `size` bytes serves.

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
    chance, below, held = math.exp(-mean), 0.0, 0.0
    for lines in range(ways):
        below, held = below + chance, held + lines * chance
        chance *= mean / (lines + 1)
    return min(1.0, (held + ways * max(0.0, 1.0 - below)) / mean)


def _rising(parts: Iterable[float]) -> tuple[float, ...]:
    """No level serves less than one nearer the core."""
    found: list[float] = []
    for part in parts:
        found.append(max(part, found[-1]) if found else part)
    return tuple(found)


def hit_share(working_set: float, capacity: float, *, full: float = 0.8, none: float = 1.3) -> float:
    """Part of the accesses that a cache serves when `working_set` bytes are used repeatedly.

    1 up to `full` x capacity, 0 from `none` x capacity, linear between.

    >>> hit_share(50, 100), hit_share(200, 100), round(hit_share(105, 100), 2)
    (1.0, 0.0, 0.5)
    """
    if capacity <= 0:
        return 0.0
    return min(1.0, max(0.0, (none - working_set / capacity) / (none - full)))
