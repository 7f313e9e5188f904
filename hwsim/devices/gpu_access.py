"""Times of a GPU's memory and caches for the reads and writes of a kernel.

    moving = L1 + L2 + memory                      each: bytes it serves / sustained bandwidth
    time   = (waiting^p + moving^p)^(1/p)          waiting: too few threads in flight, see `Occupancy`

A repeatedly used working set is served by the level that holds it. As it outgrows a level, the next level gradually takes over
(`Ramp`), so the time per byte is a weighted average.
"""

from __future__ import annotations

import math

from hwsim.demand import Term, soft_max
from hwsim.devices.accesses import Accesses, lines_touched
from hwsim.devices.gpu_memory import SECTOR, Hierarchy, Level2, SharedReads, ThreadStream
from hwsim.devices.line_errors import doubts
from hwsim.devices.roofline import WORKLOAD, CapacityDraw, Input, source_of
from hwsim.formats import precise
from hwsim.origins import IDEAL, UncertaintySource
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The memory time and the minimum duration of a stream."""

    draw: CapacityDraw
    floor: float
    terms: tuple[Term, ...]


def stream(name: str, parts: Hierarchy, streamed: ThreadStream) -> StreamTimes:
    """Return the times of a stream on the GPU called `name`."""
    l1 = _level1(name, parts, streamed)
    l1_misses = streamed.reads * (1.0 - l1.hits)
    l2 = _level2(name, parts, streamed, l1_misses)
    draw = _memory(name, parts, l1_misses * l2.missed, streamed.writes * l2.missed, l2.missed)
    moving = l1.seconds + l2.seconds + draw.amount
    terms = [term for term in (l1.term, l2.term) if term is not None]
    total = moving
    if terms:
        unsure = tuple(doubt for term in (*terms, draw.why) for doubt in term.doubts)
        terms = [*terms, _sum_term(name, l1.seconds, l2.seconds, draw.amount, moving, unsure)]
    waiting = _waiting_time(parts, streamed, l1.hits, l2.missed)
    if waiting > 0 and parts.occupancy is not None:
        total = soft_max(waiting, moving, parts.occupancy.sharpness)
        terms.append(_rounded_term(name, parts, waiting, moving, total))
    if streamed.blocks > 0 and parts.occupancy is not None and parts.occupancy.blocks is not None:
        terms.append(_blocks(name, parts, streamed.blocks, parts.occupancy.blocks))
        total = max(total, terms[-1].seconds)
    return StreamTimes(draw, total if terms else 0.0, (*terms,))


def latency(parts: Hierarchy, working_set: float | None) -> float:
    """Return the latency (s) of a dependent read in a working set.

    **Source**: one thread that follows pointers through an array (te42kyfo/gpu-benches, gpu-latency).
    **Error**: see `docs/validation/components.md`.
    **Range**: pages within the reach of the TLBs; one reader.
    """
    size = math.inf if working_set is None else working_set
    l1, l2 = parts.l1, parts.l2
    latency_s = parts.memory.latency
    if l2 is not None:
        latency_s = l2.miss or latency_s
        hits = l2.chase.hits(size, l2.size)
        if l2.near is None:
            latency_s = hits * l2.latency + (1.0 - hits) * latency_s
        else:
            latency_s = hits * (l2.far or l2.latency) + (1.0 - hits) * latency_s
            near_hits = l2.near_chase.hits(size, l2.near)
            latency_s = near_hits * l2.latency + (1.0 - near_hits) * latency_s
    if l1 is None:
        return latency_s
    l1_hits = l1.chase.hits(size, l1.size)
    return l1_hits * l1.latency + (1.0 - l1_hits) * latency_s


def scattered_access(name: str, parts: Hierarchy, accesses: Accesses) -> StreamTimes:
    """Return the times of single accesses, which transfer whole sectors from memory.

    Adjacent accesses share sectors; random accesses do not, and a thread with random reads has one of them in flight.
    """
    touched = lines_touched(accesses, SECTOR) * SECTOR
    size = accesses.count * touched
    if accesses.pattern == "dependent":
        return _chains(name, parts, accesses, size)
    threads = None
    if accesses.scattered and parts.occupancy is not None and parts.sms is not None:
        threads = float(parts.sms * parts.occupancy.threads)
    reads, writes, sectors = size * (1.0 - accesses.write), size * accesses.write, touched or 1.0
    return stream(
        name, parts, ThreadStream(reads=reads, writes=writes, each=sectors, working_set=accesses.working_set, threads=threads)
    )


def _chains(name: str, parts: Hierarchy, accesses: Accesses, size: float) -> StreamTimes:
    """Return the times of dependent accesses in `chains` parallel chains."""
    latency_s = latency(parts, accesses.working_set)
    missed = miss_rate_of_caches(parts, accesses.working_set)
    draw = _memory(name, parts, missed * size * (1.0 - accesses.write), missed * size * accesses.write, missed)
    seconds = accesses.count * latency_s / accesses.chains
    over = "all of memory" if accesses.working_set is None else precise(accesses.working_set, "B")
    inputs: tuple[Input, ...] = (
        ("count", precise(accesses.count, "1"), WORKLOAD),
        ("latency", precise(latency_s, "s"), f"of the levels that contain {over}: " + source_of(parts.sources, "l2.miss")),
        ("chains", str(accesses.chains), WORKLOAD),
    )
    unsure = doubts("latency/gpu", name, source_of(parts.sources, "l2.miss"), seconds)
    term = Term("floor", "count x latency / chains", inputs, seconds, f"{name}.memory", kind="floor", doubts=unsure)
    return StreamTimes(draw, seconds, (term,))


def miss_rate_of_caches(parts: Hierarchy, working_set: float | None) -> float:
    """Return the share of random reads in a working set that misses all caches."""
    if working_set is None:
        return 1.0
    caches = (cache for cache in (parts.l1, parts.l2) if cache is not None)
    return 1.0 - max((cache.chase.hits(working_set, cache.size) for cache in caches), default=0.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of one cache: its hit rate, the remaining share, and its time."""

    hits: float
    missed: float
    seconds: float
    term: Term | None = None


def _level1(name: str, parts: Hierarchy, streamed: ThreadStream) -> _Part:
    cache = parts.l1
    if cache is None or cache.bandwidth is None or parts.sms is None or streamed.working_set is None or not streamed.together:
        return _Part(0.0, 1.0, 0.0)  # blocks run on any SM, so the L1 of one rarely holds data of its next block
    hits = cache.ramp.hits(streamed.working_set, cache.size)
    if hits * streamed.reads <= 0:
        return _Part(0.0, 1.0, 0.0)
    seconds = hits * streamed.reads / (cache.bandwidth * parts.sms)
    inputs: tuple[Input, ...] = (
        ("reads", precise(streamed.reads, "B"), WORKLOAD),
        ("hits", precise(hits, "%"), f"{precise(streamed.working_set, 'B')} of {precise(cache.size, 'B')}"),
        ("multiprocessors", str(parts.sms), "sms: " + source_of(parts.sources, "sms")),
        ("bandwidth", precise(cache.bandwidth, "B/s"), "l1.bandwidth: " + source_of(parts.sources, "l1.bandwidth")),
    )
    formula = "reads x hits / (multiprocessors x bandwidth)"
    unsure = doubts("cache/gpu", name, source_of(parts.sources, "l1.bandwidth"), seconds)
    return _Part(hits, 1.0 - hits, seconds, Term("level 1", formula, inputs, seconds, f"{name}.memory", doubts=unsure))


def _level2(name: str, parts: Hierarchy, streamed: ThreadStream, reads: float) -> _Part:
    cache, traffic = parts.l2, reads + streamed.writes
    if cache is None or streamed.working_set is None or traffic <= 0:
        return _Part(0.0, 1.0, 0.0)
    hits = cache.ramp.hits(streamed.working_set, cache.size)
    if streamed.together and cache.together is not None:
        return _shared_reads(name, parts, cache, cache.together, streamed.working_set, traffic, hits)
    if cache.bandwidth is None or hits <= 0:
        return _Part(0.0, 1.0, 0.0)
    part = cache.sustained.part(reads, streamed.writes)
    seconds = hits * traffic / (cache.bandwidth * part)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(traffic, "B"), WORKLOAD),
        ("hits", precise(hits, "%"), f"{precise(streamed.working_set, 'B')} of {precise(cache.size, 'B')}"),
        ("bandwidth", precise(cache.bandwidth, "B/s"), "l2.bandwidth: " + source_of(parts.sources, "l2.bandwidth")),
        ("efficiency", precise(part, "%"), "l2.sustained, at this share of writes"),
    )
    formula = "traffic x hits / (bandwidth x efficiency)"
    unsure = doubts("cache/gpu", name, source_of(parts.sources, "l2.bandwidth"), seconds)
    return _Part(hits, 1.0 - hits, seconds, Term("level 2", formula, inputs, seconds, f"{name}.memory", doubts=unsure))


def _shared_reads(
    name: str, parts: Hierarchy, cache: Level2, ways: SharedReads, working_set: float, traffic: float, hits: float
) -> _Part:
    """Return the part of a cache whose lines all SMs read; each line leaves the memory once."""
    near_hits = ways.ramp.hits(working_set, cache.near or cache.size)
    seconds = traffic * (near_hits / ways.near + (1.0 - near_hits) / ways.far)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(traffic, "B"), WORKLOAD),
        ("close", precise(near_hits, "%"), f"{precise(working_set, 'B')} of {precise(cache.near or cache.size, 'B')}"),
        ("near", precise(ways.near, "B/s"), "l2.together.near: " + source_of(parts.sources, "l2.together.near")),
        ("far", precise(ways.far, "B/s"), "l2.together.far: " + source_of(parts.sources, "l2.together.far")),
    )
    unsure = doubts("cache/gpu", name, source_of(parts.sources, "l2.together.near"), seconds)
    formula = "traffic x (close / near + (1 - close) / far)"
    term = Term("level 2", formula, inputs, seconds, f"{name}.memory", doubts=unsure)
    return _Part(hits, (1.0 - hits) / (parts.sms or 1), seconds, term)


def _memory(name: str, parts: Hierarchy, reads: float, writes: float, missed: float) -> CapacityDraw:
    traffic, capacity = reads + writes, f"{name}.memory"
    label = "traffic" if missed >= 1.0 else "missed"
    part = parts.sustained.part(reads, writes)
    seconds = parts.sustained.bytes_at_peak(reads, writes) / parts.memory.bandwidth
    inputs: tuple[Input, ...] = (
        (label, precise(traffic, "B"), WORKLOAD if missed >= 1.0 else "bytes that miss all caches"),
        ("bandwidth", precise(parts.memory.bandwidth, "B/s"), source_of(parts.sources, "memory.bandwidth")),
    )
    formula, origin = f"{label} / bandwidth", IDEAL
    if part != 1.0:
        keys = [key for key in ("read", "copy", "write") if f"sustained.{key}" in parts.sources]
        origin = source_of(parts.sources, f"sustained.{keys[0]}" if keys else "sustained")
        share = f"{writes / traffic:.0%} written" if traffic > 0 else ""
        inputs = (*inputs, ("efficiency", precise(part, "%"), f"sustained, {share}: " + origin))
        formula = f"{label} / (bandwidth x efficiency)"
    unsure = doubts("stream/gpu", name, origin, seconds)
    return CapacityDraw(capacity, seconds, 1.0, traffic, "B", Term("memory", formula, inputs, seconds, capacity, doubts=unsure))


def _waiting_time(parts: Hierarchy, streamed: ThreadStream, hits: float, missed: float) -> float:
    """Return the time (s) that threads wait for their reads; 0 if there are enough threads."""
    occupancy = parts.occupancy
    if occupancy is None or streamed.threads is None:
        return 0.0
    cached = parts.l2.latency if parts.l2 is not None else 0.0
    miss_s = missed * occupancy.read + (1.0 - missed) * cached
    wait = (hits * parts.l1.latency if parts.l1 is not None else 0.0) + (1.0 - hits) * miss_s
    rounds = streamed.reads / streamed.each / streamed.in_flight
    return (
        streamed.begun * occupancy.start + rounds * wait + streamed.writes / streamed.each * occupancy.write
    ) / streamed.threads


def _sum_term(name: str, l1_s: float, l2_s: float, memory: float, moving: float, unsure: tuple[UncertaintySource, ...]) -> Term:
    parts = [("nearest", l1_s, "level 1"), ("shared", l2_s, "level 2"), ("memory", memory, "memory")]
    inputs = [(key, precise(seconds, "s"), source) for key, seconds, source in parts if seconds > 0]
    formula = " + ".join(key for key, _, _ in inputs)
    return Term("floor", formula, tuple(inputs), moving, f"{name}.memory", kind="floor", doubts=unsure)


def _rounded_term(name: str, parts: Hierarchy, waiting: float, moving: float, total: float) -> Term:
    sharpness = parts.occupancy.sharpness if parts.occupancy is not None else math.inf
    inputs: tuple[Input, ...] = (
        ("waiting", precise(waiting, "s"), "occupancy: " + source_of(parts.sources, "occupancy.read")),
        ("moving", precise(moving, "s"), "the lines above"),
    )
    if math.isinf(sharpness) or min(waiting, moving) <= 0:
        return Term("floor", "max(waiting, moving)", inputs, total, f"{name}.memory", kind="floor")
    inputs = (*inputs, ("p", precise(sharpness, "1"), "occupancy: " + source_of(parts.sources, "occupancy.sharpness")))
    return Term("floor", "(waiting ** p + moving ** p) ** (1 / p)", inputs, total, f"{name}.memory", kind="floor")


def _blocks(name: str, parts: Hierarchy, blocks: float, rate: float) -> Term:
    inputs: tuple[Input, ...] = (
        ("blocks", precise(blocks, "1"), WORKLOAD),
        ("rate", precise(rate, "1/s"), "occupancy.blocks: " + source_of(parts.sources, "occupancy.blocks")),
    )
    return Term("floor", "blocks / rate", inputs, blocks / rate, f"{name}.compute", kind="floor")
