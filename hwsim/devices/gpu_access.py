"""How long a GPU's memory, and the caches before it, take for what a kernel reads and writes.

    moving = level 1 + level 2 + memory            each: bytes it serves / what it sustains
    time   = (waiting^p + moving^p)^(1/p)          waiting: too few threads in flight, see `Occupancy`

A set that is gone over again and again is served by the level that holds it; what outgrows a level is served by the
next one bit by bit (`Ramp`), so that the time per byte is a weighted mean.
"""

from __future__ import annotations

import math

from hwsim.demand import Term, soft_max
from hwsim.devices.accesses import Accesses, lines_touched
from hwsim.devices.gpu_memory import SECTOR, Hierarchy, Stream
from hwsim.devices.roofline import WORKLOAD, Draw, Input, source_of
from hwsim.records import dataclass
from hwsim.units import precise


@dataclass(frozen=True, slots=True)
class Served:
    """What a stream takes: of the memory, and in all."""

    draw: Draw
    floor: float
    terms: tuple[Term, ...]


def stream(name: str, parts: Hierarchy, asked: Stream) -> Served:
    """What a stream takes of the memory called `name`, and at least in all."""
    near = _level1(name, parts, asked)
    read_on = asked.reads * (1.0 - near.hits)
    beyond = _level2(name, parts, asked, read_on)
    draw = _memory(name, parts, read_on * beyond.missed, asked.writes * beyond.missed, beyond.missed)
    moving = near.seconds + beyond.seconds + draw.amount
    lines = [term for term in (near.term, beyond.term) if term is not None]
    total = moving
    if lines:
        lines = [*lines, _sum(name, near.seconds, beyond.seconds, draw.amount, moving)]
    waiting = _waiting(parts, asked, near.hits, beyond.missed)
    if waiting > 0 and parts.occupancy is not None:
        total = soft_max(waiting, moving, parts.occupancy.sharpness)
        lines.append(_soft(name, parts, waiting, moving, total))
    starting = _starting(parts, asked)
    if starting > 0 and parts.occupancy is not None:
        total = max(total, starting)
        lines.append(_blocks(name, parts, asked, starting))
    return Served(draw, total if lines else 0.0, (*lines,))


def latency(parts: Hierarchy, working_set: float | None) -> float:
    """Seconds of one read that waits for the one before it, somewhere in a set of that many bytes.

    **Source**: one thread that follows pointers through an array (te42kyfo/gpu-benches, gpu-latency).
    **Error**: see `docs/validation/components.md`.
    **Range**: pages that the TLBs reach; one reader.
    """
    size = math.inf if working_set is None else working_set
    first, second = parts.l1, parts.l2
    beyond = parts.memory.latency
    if second is not None:
        beyond = second.miss or beyond
        held = second.chase.hits(size, second.size)
        if second.near is None:
            beyond = held * second.latency + (1.0 - held) * beyond
        else:
            beyond = held * (second.far or second.latency) + (1.0 - held) * beyond
            close = second.near_chase.hits(size, second.near)
            beyond = close * second.latency + (1.0 - close) * beyond
    if first is None:
        return beyond
    here = first.chase.hits(size, first.size)
    return here * first.latency + (1.0 - here) * beyond


def scattered(name: str, parts: Hierarchy, asked: Accesses) -> Served:
    """What single accesses take: whole sectors cross from memory, whatever part of them is asked for.

    Neighbours share their sectors; random ones do not, and a thread that reads at random has one of them in flight.
    """
    touched = lines_touched(asked, SECTOR) * SECTOR
    size = asked.count * touched
    if asked.pattern == "dependent":
        return _chased(name, parts, asked, size)
    threads = None
    if asked.scattered and parts.occupancy is not None and parts.sms is not None:
        threads = float(parts.sms * parts.occupancy.threads)
    reads, writes, each = size * (1.0 - asked.write), size * asked.write, touched or 1.0
    return stream(name, parts, Stream(reads=reads, writes=writes, each=each, working_set=asked.working_set, threads=threads))


def _chased(name: str, parts: Hierarchy, asked: Accesses, size: float) -> Served:
    """Each access waits for the one before it, in `chains` chains side by side."""
    each = latency(parts, asked.working_set)
    held = missing(parts, asked.working_set)
    draw = _memory(name, parts, held * size * (1.0 - asked.write), held * size * asked.write, held)
    seconds = asked.count * each / asked.chains
    over = "all of memory" if asked.working_set is None else precise(asked.working_set, "B")
    inputs: tuple[Input, ...] = (
        ("count", precise(asked.count, "1"), WORKLOAD),
        ("latency", precise(each, "s"), f"of the levels that hold {over}: {source_of(parts.sources, 'l2.miss')}"),
        ("chains", str(asked.chains), WORKLOAD),
    )
    term = Term("floor", "count x latency / chains", inputs, seconds, f"{name}.memory", kind="floor")
    return Served(draw, seconds, (term,))


def missing(parts: Hierarchy, working_set: float | None) -> float:
    """Part of the reads scattered over that many bytes that no cache holds."""
    if working_set is None:
        return 1.0
    return 1.0 - max((each.chase.hits(working_set, each.size) for each in (parts.l1, parts.l2) if each is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one cache serves: the part of the reads it finds, what it leaves, how long it takes."""

    hits: float
    missed: float
    seconds: float
    term: Term | None = None


def _level1(name: str, parts: Hierarchy, asked: Stream) -> _Part:
    cache = parts.l1
    if cache is None or cache.bandwidth is None or parts.sms is None or asked.working_set is None or not asked.together:
        return _Part(0.0, 1.0, 0.0)  # blocks go to any multiprocessor: what one has read, another asks for the next time
    hits = cache.ramp.hits(asked.working_set, cache.size)
    if hits * asked.reads <= 0:
        return _Part(0.0, 1.0, 0.0)
    seconds = hits * asked.reads / (cache.bandwidth * parts.sms)
    inputs: tuple[Input, ...] = (
        ("reads", precise(asked.reads, "B"), WORKLOAD),
        ("hits", precise(hits, "%"), f"{precise(asked.working_set, 'B')} of {precise(cache.size, 'B')}"),
        ("multiprocessors", str(parts.sms), f"sms: {source_of(parts.sources, 'sms')}"),
        ("bandwidth", precise(cache.bandwidth, "B/s"), f"l1.bandwidth: {source_of(parts.sources, 'l1.bandwidth')}"),
    )
    formula = "reads x hits / (multiprocessors x bandwidth)"
    return _Part(hits, 1.0 - hits, seconds, Term("level 1", formula, inputs, seconds, f"{name}.memory"))


def _level2(name: str, parts: Hierarchy, asked: Stream, reads: float) -> _Part:
    cache, traffic = parts.l2, reads + asked.writes
    if cache is None or asked.working_set is None or traffic <= 0:
        return _Part(0.0, 1.0, 0.0)
    held = cache.ramp.hits(asked.working_set, cache.size)
    if asked.together and cache.together is not None:
        return _together(name, parts, asked.working_set, traffic, held)
    if cache.bandwidth is None or held <= 0:
        return _Part(0.0, 1.0, 0.0)
    part = cache.sustained.part(reads, asked.writes)
    seconds = held * traffic / (cache.bandwidth * part)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(traffic, "B"), WORKLOAD),
        ("hits", precise(held, "%"), f"{precise(asked.working_set, 'B')} of {precise(cache.size, 'B')}"),
        ("bandwidth", precise(cache.bandwidth, "B/s"), f"l2.bandwidth: {source_of(parts.sources, 'l2.bandwidth')}"),
        ("efficiency", precise(part, "%"), "l2.sustained, for this share of writes"),
    )
    formula = "traffic x hits / (bandwidth x efficiency)"
    return _Part(held, 1.0 - held, seconds, Term("level 2", formula, inputs, seconds, f"{name}.memory"))


def _together(name: str, parts: Hierarchy, working_set: float, traffic: float, held: float) -> _Part:
    """All multiprocessors read the same: each line leaves the memory once."""
    cache = parts.l2
    if cache is None or cache.together is None:
        return _Part(0.0, 1.0, 0.0)
    ways = cache.together
    near = ways.ramp.hits(working_set, cache.near or cache.size)
    seconds = traffic * (near / ways.near + (1.0 - near) / ways.far)
    inputs: tuple[Input, ...] = (
        ("traffic", precise(traffic, "B"), WORKLOAD),
        ("close", precise(near, "%"), f"{precise(working_set, 'B')} of {precise(cache.near or cache.size, 'B')}"),
        ("near", precise(ways.near, "B/s"), f"l2.together.near: {source_of(parts.sources, 'l2.together.near')}"),
        ("far", precise(ways.far, "B/s"), f"l2.together.far: {source_of(parts.sources, 'l2.together.far')}"),
    )
    term = Term("level 2", "traffic x (close / near + (1 - close) / far)", inputs, seconds, f"{name}.memory")
    return _Part(held, (1.0 - held) / (parts.sms or 1), seconds, term)


def _memory(name: str, parts: Hierarchy, reads: float, writes: float, missed: float) -> Draw:
    """What memory itself serves."""
    traffic, capacity = reads + writes, f"{name}.memory"
    what = "traffic" if missed >= 1.0 else "missed"
    part = parts.sustained.part(reads, writes)
    seconds = parts.sustained.bytes_at_peak(reads, writes) / parts.memory.bandwidth
    inputs: tuple[Input, ...] = (
        (what, precise(traffic, "B"), WORKLOAD if missed >= 1.0 else "bytes that no cache holds"),
        ("bandwidth", precise(parts.memory.bandwidth, "B/s"), source_of(parts.sources, "memory.bandwidth")),
    )
    formula = f"{what} / bandwidth"
    if part != 1.0:
        keys = [key for key in ("read", "copy", "write") if f"sustained.{key}" in parts.sources]
        origin = source_of(parts.sources, f"sustained.{keys[0]}" if keys else "sustained")
        share = f"{writes / traffic:.0%} written" if traffic > 0 else ""
        inputs = (*inputs, ("efficiency", precise(part, "%"), f"sustained, {share}: {origin}"))
        formula = f"{what} / (bandwidth x efficiency)"
    return Draw(capacity, seconds, 1.0, traffic, "B", Term("memory", formula, inputs, seconds, capacity))


def _waiting(parts: Hierarchy, asked: Stream, hits: float, missed: float) -> float:
    """Seconds that threads spend waiting for what they asked for; 0 where there are enough of them."""
    some = parts.occupancy
    if some is None or asked.threads is None:
        return 0.0
    cached = parts.l2.latency if parts.l2 is not None else 0.0
    beyond = missed * some.read + (1.0 - missed) * cached
    wait = (hits * parts.l1.latency if parts.l1 is not None else 0.0) + (1.0 - hits) * beyond
    rounds = asked.reads / asked.each / asked.in_flight
    return (asked.begun * some.start + rounds * wait + asked.writes / asked.each * some.write) / asked.threads


def _starting(parts: Hierarchy, asked: Stream) -> float:
    some = parts.occupancy
    return asked.blocks / some.blocks if some is not None and some.blocks is not None else 0.0


def _sum(name: str, first: float, second: float, memory: float, moving: float) -> Term:
    given = [("nearest", first, "level 1"), ("shared", second, "level 2"), ("memory", memory, "memory")]
    used = [(key, precise(seconds, "s"), source) for key, seconds, source in given if seconds > 0]
    return Term("floor", " + ".join(key for key, _, _ in used), tuple(used), moving, f"{name}.memory", kind="floor")


def _soft(name: str, parts: Hierarchy, waiting: float, moving: float, total: float) -> Term:
    sharpness = parts.occupancy.sharpness if parts.occupancy is not None else math.inf
    inputs: tuple[Input, ...] = (
        ("waiting", precise(waiting, "s"), f"occupancy: {source_of(parts.sources, 'occupancy.read')}"),
        ("moving", precise(moving, "s"), "the lines above"),
    )
    if math.isinf(sharpness) or min(waiting, moving) <= 0:
        return Term("floor", "max(waiting, moving)", inputs, total, f"{name}.memory", kind="floor")
    inputs = (*inputs, ("p", precise(sharpness, "1"), f"occupancy: {source_of(parts.sources, 'occupancy.sharpness')}"))
    return Term("floor", "(waiting ** p + moving ** p) ** (1 / p)", inputs, total, f"{name}.memory", kind="floor")


def _blocks(name: str, parts: Hierarchy, asked: Stream, starting: float) -> Term:
    rate = parts.occupancy.blocks if parts.occupancy is not None and parts.occupancy.blocks is not None else math.inf
    inputs: tuple[Input, ...] = (
        ("blocks", precise(asked.blocks, "1"), WORKLOAD),
        ("rate", precise(rate, "1/s"), f"occupancy.blocks: {source_of(parts.sources, 'occupancy.blocks')}"),
    )
    return Term("floor", "blocks / rate", inputs, starting, f"{name}.compute", kind="floor")


__all__ = ["Served", "latency", "missing", "scattered", "stream"]
