"""Blocks that answers under way will want: for many iterations at once.

A sequence of a length that is a multiple of the block wants a block for its next token. Of sequences counted by (length mod
block), those at 0 want one now, those at `block` - 1 one later, and so on: k iterations want k // block of each and the first
k mod block counts. Where layers keep a window of tokens only, a sequence wants fewer, and its length decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures.layer_parts import parts_held
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.speculating import Leaps

Held: TypeAlias = tuple[tuple[float, int], ...]


@dataclass(slots=True)
class Even:
    """Sequences of a model that keeps all tokens."""

    block: int
    counts: list[int] = field(init=False)
    many: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * self.block

    def need(self, tokens: int) -> int:
        """Blocks of a sequence.

        >>> Even(16).need(0), Even(16).need(1), Even(16).need(33)
        (0, 1, 3)
        """
        return -(-tokens // self.block)

    def add(self, tokens: int) -> None:
        """A sequence begins to answer."""
        self.many += 1
        self.counts[tokens % self.block] += 1

    def remove(self, tokens: int) -> None:
        """A sequence stops."""
        self.many -= 1
        self.counts[tokens % self.block] -= 1

    def wanted(self, iterations: int) -> int:
        """Blocks that all want for a number of iterations from now.

        >>> even = Even(4)
        >>> even.add(4), even.add(7)
        (None, None)
        >>> [even.wanted(count) for count in range(6)]
        [0, 1, 2, 2, 2, 3]
        """
        counts, block = self.counts, self.block
        if iterations == 1:
            return counts[0]
        turns, rest = divmod(iterations, block)
        return turns * self.many + (counts[0] + sum(counts[block - rest + 1 :]) if rest else 0)  # integers

    def later(self, iterations: int) -> list[int]:
        """Blocks that all want in each iteration after the first.

        >>> even = Even(4)
        >>> even.add(4), even.add(7)
        (None, None)
        >>> even.later(6)
        [1, 0, 0, 1, 1]
        """
        if iterations <= self.block:
            return self.counts[:-iterations:-1]
        return (self.counts[::-1] * (iterations // self.block + 1))[: iterations - 1]

    def grow(self, iterations: int) -> None:
        """All grow by a number of tokens."""
        if shift := iterations % self.block:
            self.counts = self.counts[-shift:] + self.counts[:-shift]


@dataclass(slots=True)
class Windowed:
    """Sequences of a model some of whose layers keep the last tokens only; held: (part, most tokens) of each kind of layer."""

    block: int
    held: Held
    bases: dict[int, int] = field(default_factory=dict)  # sequences by their length less `grown`
    grown: int = 0
    _table: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    def need(self, tokens: int) -> int:
        """Blocks of a sequence.

        >>> Windowed(16, ((0.5, 32), (0.5, 0))).need(320)
        11
        """
        return int(self.needs(tokens)[tokens])

    def needs(self, tokens: int) -> NDArray[np.int64]:
        """Blocks of a sequence by its length, up to this one or beyond."""
        table = self._table
        if len(table) <= tokens:
            more = np.arange(len(table), 2 * tokens + 1)
            if len(self.held) <= 2:  # a sum of two numbers is rounded once, as of `parts_held`
                parts = [share * (np.minimum(most, more) if most else more) for share, most in self.held]
                held = np.sum(parts, axis=0)
            else:
                held = np.array([parts_held(length, self.held) for length in more.tolist()])
            self._table = table = np.concatenate([table, np.ceil(held / self.block).astype(np.int64)])
        return table

    def add(self, tokens: int) -> None:
        """A sequence begins to answer."""
        base = tokens - self.grown
        self.bases[base] = self.bases.get(base, 0) + 1

    def remove(self, tokens: int) -> None:
        """A sequence stops."""
        base = tokens - self.grown
        self.bases[base] -= 1
        if not self.bases[base]:
            del self.bases[base]

    def wanted(self, iterations: int) -> int:
        """Blocks that all want for a number of iterations from now."""
        now, counts = self._now()
        needs = self.needs(int(now.max(initial=0)) + iterations)
        return int(((needs[now + iterations] - needs[now]) * counts).sum())  # count

    def later(self, iterations: int) -> list[int]:
        """Blocks that all want in each iteration after the first."""
        now, counts = self._now()
        needs = self.needs(int(now.max(initial=0)) + iterations)
        every = needs[np.add.outer(np.arange(1, iterations + 1), now)] @ counts
        return list(np.diff(every).tolist())

    def _now(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lengths of sequences, and how many have each."""
        many = len(self.bases)
        return np.fromiter(self.bases, np.int64, many) + self.grown, np.fromiter(self.bases.values(), np.int64, many)

    def grow(self, iterations: int) -> None:
        """All grow by a number of tokens."""
        self.grown += iterations


Growth: TypeAlias = "Even | Windowed | Leaps"  # blocks that answers want


def growth(block: int, held: Held) -> Growth:
    """Counters for a model."""
    return Windowed(block, held) if held else Even(block)


def most_within(wanted: Callable[[int], int], free: int, most: int) -> int:
    """The largest number of iterations, up to `most`, that want no more than `free` blocks.

    >>> most_within(lambda count: 3 * count, 10, 100)
    3
    """
    if wanted(most) <= free:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wanted(middle) <= free else (low, middle)
    return low
