"""Orders of forward and backward in a pipeline: what each stage does, one micro-batch after another.

    gpipe         all forward, then all backward                                          (Huang et al., arXiv:1811.06965)
    1f1b          as many forward as stages follow, then one forward, one backward        (Narayanan et al., arXiv:2006.09503)
    interleaved   1f1b over `chunks` pieces of each stage, micro-batches in groups of as many as there are stages
                  (Narayanan et al., arXiv:2104.04473)

A piece of a stage is called by its place in the model: chunk c of stage s is number c x stages + s.
"""

from __future__ import annotations

from typing import NamedTuple

from hwsim.models.plan import Schedule


class Turn(NamedTuple):
    """One micro-batch through one piece of a stage."""

    microbatch: int
    chunk: int
    forward: bool


def turns(schedule: Schedule, stage: int, stages: int, microbatches: int, chunks: int = 1) -> tuple[Turn, ...]:
    """What one stage does in a step, in order.

    >>> ["FB"[not each.forward] + str(each.microbatch) for each in turns("1f1b", 0, 2, 3)]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    >>> ["FB"[not each.forward] + str(each.microbatch) for each in turns("gpipe", 0, 2, 3)]
    ['F0', 'F1', 'F2', 'B2', 'B1', 'B0']
    """
    if schedule == "gpipe":
        ahead = [Turn(each, 0, True) for each in range(microbatches)]
        return (*ahead, *(Turn(each, 0, False) for each in reversed(range(microbatches))))
    total = microbatches * chunks
    warm = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
    warm = min(warm, total)
    found = [_turn(each, stages, chunks, forward=True) for each in range(warm)]
    for each in range(total - warm):
        found.append(_turn(warm + each, stages, chunks, forward=True))
        found.append(_turn(each, stages, chunks, forward=False))
    return (*found, *(_turn(each, stages, chunks, forward=False) for each in range(total - warm, total)))


def _turn(number: int, stages: int, chunks: int, *, forward: bool) -> Turn:
    """The turn of that number among those of its direction."""
    if chunks == 1:
        return Turn(number, 0, forward)
    group, inside = divmod(number, stages * chunks)
    chunk, place = divmod(inside, stages)
    return Turn(group * stages + place, chunk if forward else chunks - 1 - chunk, forward)
