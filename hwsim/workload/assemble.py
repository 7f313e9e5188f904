"""Conversion of emitted chunks to blocks, edges and buffers of the graph, and of barriers between programs to ties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from hwsim.graph.builder import GraphBuilder, OpRef, block
from hwsim.graph.opgraph import LAST, PAIRED, Buffer, Mark
from hwsim.records import dataclass
from hwsim.workload.emit import Emitter, Loop
from hwsim.workload.thread import Chunk, Ref


@dataclass(frozen=True, slots=True)
class Meeting:
    """A barrier of one group of programs: its arrival and release, `times` times."""

    arrive: OpRef
    release: OpRef
    times: int


def add_blocks(builder: GraphBuilder, emitter: Emitter) -> dict[str, list[Meeting]]:
    """Append the blocks and buffers of one group; return its shared barriers in program order."""
    numbers: dict[int, int] = {}  # chunk -> block
    for number, chunk in enumerate(emitter.chunks):
        loop = emitter.loops.get(number)
        if loop is not None and number != loop.first:
            numbers[number] = numbers[loop.first]
        elif loop is not None:
            numbers[number] = _add_loop(builder, numbers, number, chunk, emitter.chunks[number + 1], loop)
        elif chunk.rows:
            numbers[number] = _add_chunk(builder, numbers, number, chunk)
    for number, chunk in enumerate(emitter.chunks):
        _add_buffers(builder, emitter, numbers, number, chunk)
    return {name: list(_meetings(emitter, numbers, arrivals)) for name, arrivals in emitter.barriers.items()}


def _add_chunk(builder: GraphBuilder, numbers: dict[int, int], number: int, chunk: Chunk) -> int:
    """Append a chunk that runs once."""
    inside = [(ref[1], to, 0) for to, refs in enumerate(chunk.after) for ref in refs if ref[0] == number]
    block_number = _add(builder, chunk, inside, 1)
    _tie(builder, numbers, number, block_number, chunk)
    return block_number


def _add_loop(builder: GraphBuilder, numbers: dict[int, int], number: int, chunk: Chunk, again: Chunk, loop: Loop) -> int:
    """Append a loop: `chunk` is its first iteration, and `again` represents all later iterations."""
    inside = [(ref[1], to, number + 1 - ref[0]) for to, refs in enumerate(again.after) for ref in refs if ref[0] >= number]
    if not chunk.rows:
        return -1
    block_number = _add(builder, chunk, inside, loop.times, loop.turns)
    _tie(builder, numbers, number, block_number, chunk)
    return block_number


def _add(builder: GraphBuilder, chunk: Chunk, edges: list[tuple[int, int, int]], times: int, turns: int = 1) -> int:
    label, cost, size, time, queue, insert, pool = zip(*chunk.rows, strict=True)
    placed: dict[str, Any] = {"queue": queue, "insert": insert, "take": pool, "give": pool}
    columns = block(label, cost=cost, size=size, time=time, **placed, edges=sorted(edges), times=times)
    return builder.add(replace(columns, turns=turns, turn=np.array(chunk.turns, np.int64) if any(chunk.turns) else None))


def _tie(builder: GraphBuilder, numbers: dict[int, int], number: int, block_number: int, chunk: Chunk) -> None:
    for to, refs in enumerate(chunk.after):
        for ref in refs:
            if ref[0] < number:
                builder.tie(OpRef(numbers[ref[0]], ref[1]), OpRef(block_number, to))


def _add_buffers(builder: GraphBuilder, emitter: Emitter, numbers: dict[int, int], number: int, chunk: Chunk) -> None:
    """Append the buffers that are replaced in a chunk; the second iteration of a loop represents all later ones."""
    block_number, loop = numbers.get(number, -1), emitter.loops.get(number)
    later = loop is not None and loop.first != number

    def mark(ref: Ref) -> Mark:
        block = numbers[ref[0]]
        return Mark(block, ref[1], number - ref[0] if block == block_number else 0)

    for freed in chunk.freed:
        builder.buffer(
            Buffer(
                value=freed.value,
                op=freed.bound.op,
                device=freed.bound.memory,
                bytes=freed.bound.bytes,
                free="last-use" if freed.bound.inner else emitter.free,
                made=mark(freed.bound.ref),
                users=tuple(mark(ref) for ref in freed.users),
                renamed=None if freed.renamed is None else mark(freed.renamed),
                block=block_number,
                first=1 if later else 0,
                times=loop.times - 1 if loop is not None and later else 1,
            )
        )


def _meetings(emitter: Emitter, numbers: dict[int, int], arrivals: Iterable[tuple[int, int, int]]) -> Iterable[Meeting]:
    for chunk, arrival, release in arrivals:
        loop = emitter.loops.get(chunk)
        if loop is None or loop.first == chunk:
            times = 1 if loop is None else loop.times
            yield Meeting(OpRef(numbers[chunk], arrival), OpRef(numbers[chunk], release), times)


def tie_meetings(builder: GraphBuilder, groups: list[list[Meeting]]) -> None:
    """Tie the k-th arrival of every group to the k-th release of every group, through the release of the first group."""
    for meeting in zip(*groups, strict=True):
        hub, *members = meeting
        mode = PAIRED if hub.times > 1 else LAST
        for member in members:
            builder.tie(member.arrive, hub.release, mode)
            builder.tie(hub.release, member.release, mode)
