"""Orders of forward and backward passes in a pipeline, stage by stage.

    gpipe         all forward, then all backward

    1f1b          one forward pass for each stage that follows, then one forward, one backward

    interleaved   1f1b over several virtual stages of each stage, micro-batches in groups of as many as there are stages

**Source**: Huang et al., arXiv:1811.06965; Narayanan et al., arXiv:2006.09503; Narayanan et al., arXiv:2104.04473.

Virtual stage v of stage s is number v x stages + s of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hwsim.models.plan import Schedule


class Pass(NamedTuple):
    """One micro-batch through one virtual stage (`chunk`) of a stage."""

    microbatch: int
    chunk: int
    forward: bool


def passes(schedule: Schedule, stage: int, stages: int, microbatches: int, chunks: int = 1) -> tuple[Pass, ...]:
    """The passes of one stage in a step, in order.

    >>> ["FB"[not each.forward] + str(each.microbatch) for each in passes("1f1b", 0, 2, 3)]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    >>> ["FB"[not each.forward] + str(each.microbatch) for each in passes("gpipe", 0, 2, 3)]
    ['F0', 'F1', 'F2', 'B2', 'B1', 'B0']
    """
    if schedule == "gpipe":
        ahead = [Pass(number, 0, True) for number in range(microbatches)]
        return (*ahead, *(Pass(number, 0, False) for number in reversed(range(microbatches))))
    total = microbatches * chunks
    warm = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
    warm = min(warm, total)
    order = [_numbered(number, stages, chunks, forward=True) for number in range(warm)]
    for number in range(total - warm):
        order.append(_numbered(warm + number, stages, chunks, forward=True))
        order.append(_numbered(number, stages, chunks, forward=False))
    return (*order, *(_numbered(number, stages, chunks, forward=False) for number in range(total - warm, total)))


def _numbered(number: int, stages: int, chunks: int, *, forward: bool) -> Pass:
    """Pass `number` in its direction."""
    if chunks == 1:
        return Pass(number, 0, forward)
    group, inside = divmod(number, stages * chunks)
    chunk, place = divmod(inside, stages)
    return Pass(group * stages + place, chunk if forward else chunks - 1 - chunk, forward)


def successor(stage: int, done: Pass, stages: int, chunks: int) -> tuple[int, Pass] | None:
    """(stage, pass) that takes the result of a pass; None after the last backward pass of a micro-batch."""
    place = done.chunk * stages + stage + (1 if done.forward else -1)
    if place < 0:
        return None
    if place == stages * chunks:
        return stage, done._replace(forward=False)
    chunk, target = divmod(place, stages)
    return target, done._replace(chunk=chunk)


def in_flight(line: Iterable[Pass]) -> int:
    """The most forward passes of a stage whose backward passes are still to come."""
    count = most = 0
    for current in line:
        count += 1 if current.forward else -1
        most = max(most, count)
    return most


def in_order(lines: list[tuple[Pass, ...]], chunks: int) -> Iterator[tuple[int, Pass]]:
    """(stage, pass) of all stages, each behind the pass that it waits for.  lines: the passes of each stage."""
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
