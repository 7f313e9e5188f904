"""Batches grouped into the fewest and shortest bodies of the graph.

A pipeline with identical batches is one body of one batch. With different batches (a first epoch without a cache, a checkpoint
after every thousandth) it has several bodies. An edge between bodies connects the last iteration of one with the first of the
other, so a repeated body then has as many batches as the longest edge spans.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from hwsim.records import dataclass

LONGEST: Final = 4096  # maximum number of batches between checkpoints in one body


@dataclass(frozen=True, slots=True)
class BatchKind:
    """A kind of batch: the epoch whose costs it has, and whether a checkpoint follows."""

    epoch: int = 0
    saves: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """A sequence of batches, and the number of its repetitions."""

    batches: tuple[BatchKind, ...]
    times: int = 1


def bodies(epochs: tuple[int, ...], batches: int, every: int, reach: int) -> tuple[Body, ...]:
    """Return the batches of a pipeline in order.

    Args:
        epochs: for each epoch, the epoch whose costs it has.
        batches: batches per epoch.
        every: batches per checkpoint; 0: none.
        reach: maximum number of batches that an edge spans.

    >>> bodies((0, 0), 10, 0, 3)
    (Body(batches=(BatchKind(epoch=0, saves=False),), times=20),)
    >>> [(len(body.batches), body.times) for body in bodies((0, 1), 10, 0, 3)]
    [(3, 3), (1, 1), (3, 3), (1, 1)]
    >>> sum(len(body.batches) * body.times for body in bodies((0, 1, 1), 1000, 7, 3))
    3000
    """
    runs = [(epoch, batches * len(list(same))) for epoch, same in groupby(epochs) if batches]
    total = sum(count for _, count in runs)
    if not every or every > total:
        if len(runs) == 1:
            return (Body((BatchKind(runs[0][0]),), total),)
        return tuple(body for epoch, count in runs for body in _alike(BatchKind(epoch), count, reach))
    saving: list[Body] = []
    done = 0
    for epoch, count in runs:
        saving += _saving(epoch, done, count, every, reach)
        done += count
    return tuple(saving)


def _alike(kind: BatchKind, count: int, reach: int) -> list[Body]:
    whole, rest = divmod(count, reach)
    if whole < 2:
        return [Body((kind,) * count)] if count else []
    return [Body((kind,) * reach, whole), *([Body((kind,) * rest)] if rest else [])]


def _saving(epoch: int, done: int, count: int, every: int, reach: int) -> list[Body]:
    """Return the batches of one epoch; a checkpoint follows every `every`-th batch of the run."""
    plain, saves = BatchKind(epoch), BatchKind(epoch, saves=True)
    head = min(count, -done % every)
    made: list[Body] = []
    if head:
        made = [*_alike(plain, head - 1, reach), Body((saves if (done + head) % every == 0 else plain,))]
    periods, tail = divmod(count - head, every)
    if every <= LONGEST:
        period = (*(plain,) * (every - 1), saves)
        together = -(-reach // every)
        full, rest = divmod(periods, together)
        made += [Body(period * together, full)] if full else []
        made += [Body(period * rest)] if rest else []
    else:
        for _ in range(periods):
            made += [*_alike(plain, every - 1, reach), Body((saves,))]
    return [*made, *_alike(plain, tail, reach)]
