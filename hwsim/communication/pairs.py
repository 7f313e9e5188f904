"""Pairs of a step as columns: sender, receiver and share of the bytes. A single pair is a tuple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from hwsim.graph.opgraph import Floats, Ints

Pair = tuple[int, int, float]  # source, target, share of the bytes in one step


class SendPairs(Sequence[Pair]):
    """Pairs in columns; equal to the same pairs as tuples.

    >>> pairs = SendPairs(np.array([0, 1]), np.array([1, 0]), np.array([0.5, 0.5]))
    >>> pairs[1], pairs == ((0, 1, 0.5), (1, 0, 0.5))
    ((1, 0, 0.5), True)
    """

    __slots__ = ("shares", "sources", "targets")

    def __init__(self, sources: Ints, targets: Ints, shares: Floats) -> None:
        self.sources, self.targets, self.shares = sources, targets, shares

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[Pair]:
        return zip(self.sources.tolist(), self.targets.tolist(), self.shares.tolist(), strict=True)

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> SendPairs: ...
    def __getitem__(self, place: int | slice) -> Pair | SendPairs:
        if isinstance(place, slice):
            return SendPairs(self.sources[place], self.targets[place], self.shares[place])
        return int(self.sources[place]), int(self.targets[place]), float(self.shares[place])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SendPairs):
            return same_ends(self, other) and np.array_equal(self.shares, other.shares)
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


def pairs_in_columns(pairs: Sequence[Pair]) -> SendPairs:
    """Return the pairs in columns."""
    if isinstance(pairs, SendPairs):
        return pairs
    sources, targets, shares = zip(*pairs, strict=True) if pairs else ((), (), ())
    return SendPairs(np.array(sources, np.int64), np.array(targets, np.int64), np.array(shares, np.float64))  # count


def same_ends(first: Sequence[Pair], second: Sequence[Pair]) -> bool:
    """Return whether senders and receivers are equal, regardless of the bytes."""
    if len(first) != len(second):
        return False
    if isinstance(first, SendPairs) and isinstance(second, SendPairs):
        return np.array_equal(first.sources, second.sources) and np.array_equal(first.targets, second.targets)
    return first == second or all(a[:2] == b[:2] for a, b in zip(first, second, strict=True))
