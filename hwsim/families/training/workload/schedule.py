"""Pipeline schedules: the order of forward and backward passes of each stage.

    gpipe         all forward passes, then all backward passes

    1f1b          one forward pass for each later stage, then one forward and one backward pass in turn

    interleaved   1f1b with several virtual stages per stage; groups of microbatches are at least as large as the number of
                  stages, if there are enough microbatches

**Source**: Huang et al., arXiv:1811.06965; Narayanan et al., arXiv:2006.09503; Narayanan et al., arXiv:2104.04473.

Virtual stage v of stage s is part v x stages + s of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hwsim.models.plan import Schedule, groups


class MicrobatchPass(NamedTuple):
    """The pass of one microbatch through one virtual stage (`chunk`) of a stage."""

    microbatch: int
    chunk: int
    forward: bool


def passes(schedule: Schedule, stage: int, stages: int, microbatches: int, chunks: int = 1) -> tuple[MicrobatchPass, ...]:
    """Return the passes of one stage in a step, in order.

    >>> ["FB"[not part.forward] + str(part.microbatch) for part in passes("1f1b", 0, 2, 3)]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    >>> ["FB"[not part.forward] + str(part.microbatch) for part in passes("gpipe", 0, 2, 3)]
    ['F0', 'F1', 'F2', 'B2', 'B1', 'B0']
    """
    if schedule == "gpipe":
        ahead = [MicrobatchPass(number, 0, True) for number in range(microbatches)]
        return (*ahead, *(MicrobatchPass(number, 0, False) for number in reversed(range(microbatches))))
    grouped = groups(microbatches, stages)
    ahead, back = _numbered(grouped, chunks, forward=True), _numbered(grouped, chunks, forward=False)
    warm = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * grouped[0]
    warm = min(warm, len(ahead))
    order = ahead[:warm]
    for forward, backward in zip(ahead[warm:], back, strict=False):
        order += (forward, backward)
    return (*order, *back[len(ahead) - warm :])


def _numbered(grouped: Sequence[int], chunks: int, *, forward: bool) -> list[MicrobatchPass]:
    """Return the passes of a stage in one direction, in order."""
    if chunks == 1:
        return [MicrobatchPass(number, 0, forward) for number in range(sum(grouped))]
    order, first = [], 0
    for size in grouped:
        for chunk in range(chunks) if forward else reversed(range(chunks)):
            order += [MicrobatchPass(number, chunk, forward) for number in range(first, first + size)]
        first += size
    return order


def successor(stage: int, done: MicrobatchPass, stages: int, chunks: int) -> tuple[int, MicrobatchPass] | None:
    """Return (stage, pass) that receives the result of a pass; None after the last backward pass of a microbatch."""
    place = done.chunk * stages + stage + (1 if done.forward else -1)
    if place < 0:
        return None
    if place == stages * chunks:
        return stage, done._replace(forward=False)
    chunk, target = divmod(place, stages)
    return target, done._replace(chunk=chunk)


def in_order(lines: list[tuple[MicrobatchPass, ...]], chunks: int) -> Iterator[tuple[int, MicrobatchPass]]:
    """Yield (stage, pass) of all stages, each after the pass that it waits for.

    Args:
        lines: passes of each stage.
        chunks: virtual stages per stage.
    """
    position = [0] * len(lines)
    ready = {(0, begin) for begin in lines[0] if begin.forward and begin.chunk == 0}
    while any(position[stage] < len(line) for stage, line in enumerate(lines)):
        for stage, line in enumerate(lines):
            while position[stage] < len(line) and (stage, line[position[stage]]) in ready:
                current = line[position[stage]]
                yield stage, current
                if (following := successor(stage, current, len(lines), chunks)) is not None:
                    ready.add(following)
                position[stage] += 1
