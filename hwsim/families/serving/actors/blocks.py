"""The KV-cache blocks that running requests need in the next k iterations, computed at once.

A sequence needs a new block for its next token if its length is a multiple of the block size. Sequences are counted by
(length mod block): count 0 needs a block now, count block - 1 one iteration later, and so on. So k iterations need k // block
blocks per sequence, and the sum of the first k mod block counts. Layers with a sliding window keep fewer tokens; then the length
of each sequence determines its blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim.models.architectures.layer_parts import equivalent_cached_tokens
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.speculation import FractionalGrowth

KeptTokens: TypeAlias = tuple[tuple[float, int], ...]


@dataclass(slots=True)
class UniformGrowth:
    """The block needs of sequences whose model keeps all tokens.

    Args:
        block: tokens of a block.
        counts: number of sequences by length mod block, rotated as they grow.
        many: number of sequences.
    """

    block: int
    counts: list[int] = field(init=False)
    many: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * self.block

    def need(self, tokens: int) -> int:
        """Return the blocks of a sequence.

        >>> UniformGrowth(16).need(0), UniformGrowth(16).need(1), UniformGrowth(16).need(33)
        (0, 1, 3)
        """
        return -(-tokens // self.block)

    def add(self, tokens: int) -> None:
        """Add a sequence of this length."""
        self.many += 1
        self.counts[tokens % self.block] += 1

    def remove(self, tokens: int) -> None:
        """Remove a sequence of this length."""
        self.many -= 1
        self.counts[tokens % self.block] -= 1

    def wanted(self, iterations: int) -> int:
        """Return the new blocks that all sequences need in the next iterations.

        >>> even = UniformGrowth(4)
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
        """Return the new blocks of all sequences in each iteration after the first.

        >>> even = UniformGrowth(4)
        >>> even.add(4), even.add(7)
        (None, None)
        >>> even.later(6)
        [1, 0, 0, 1, 1]
        """
        if iterations <= self.block:
            return self.counts[:-iterations:-1]
        return (self.counts[::-1] * (iterations // self.block + 1))[: iterations - 1]

    def grow(self, iterations: int) -> None:
        """Grow all sequences by one token per iteration."""
        if shift := iterations % self.block:
            self.counts = self.counts[-shift:] + self.counts[:-shift]


@dataclass(slots=True)
class WindowedGrowth:
    """The block needs of sequences whose model has layers with a sliding window.

    Args:
        block: tokens of a block.
        held: (share of a token's bytes, maximum tokens kept) of each kind of layer.
        bases: number of sequences by length minus `grown`.
        grown: iterations so far.
    """

    block: int
    held: KeptTokens
    bases: dict[int, int] = field(default_factory=dict)
    grown: int = 0
    _table: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    def need(self, tokens: int) -> int:
        """Return the blocks of a sequence.

        >>> WindowedGrowth(16, ((0.5, 32), (0.5, 0))).need(320)
        11
        """
        return int(self.needs(tokens)[tokens])

    def needs(self, tokens: int) -> NDArray[np.int64]:
        """Return a table of blocks by length, at least up to `tokens`."""
        table = self._table
        if len(table) <= tokens:
            lengths = np.arange(len(table), 2 * tokens + 1)
            if len(self.held) <= 2:  # a sum of two numbers is rounded once, as of `equivalent_cached_tokens`
                parts = [share * (np.minimum(most, lengths) if most else lengths) for share, most in self.held]
                kept_tokens = np.sum(parts, axis=0)
            else:
                kept_tokens = np.array([equivalent_cached_tokens(length, self.held) for length in lengths.tolist()])
            self._table = table = np.concatenate([table, np.ceil(kept_tokens / self.block).astype(np.int64)])
        return table

    def add(self, tokens: int) -> None:
        """Add a sequence of this length."""
        base = tokens - self.grown
        self.bases[base] = self.bases.get(base, 0) + 1

    def remove(self, tokens: int) -> None:
        """Remove a sequence of this length."""
        base = tokens - self.grown
        self.bases[base] -= 1
        if not self.bases[base]:
            del self.bases[base]

    def wanted(self, iterations: int) -> int:
        """Return the new blocks that all sequences need in the next iterations."""
        now, counts = self._now()
        needs = self.needs(int(now.max(initial=0)) + iterations)
        return int(((needs[now + iterations] - needs[now]) * counts).sum())  # count

    def later(self, iterations: int) -> list[int]:
        """Return the new blocks of all sequences in each iteration after the first."""
        now, counts = self._now()
        needs = self.needs(int(now.max(initial=0)) + iterations)
        totals = needs[np.add.outer(np.arange(1, iterations + 1), now)] @ counts
        return list(np.diff(totals).tolist())

    def _now(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (lengths, number of sequences of each)."""
        count = len(self.bases)
        return np.fromiter(self.bases, np.int64, count) + self.grown, np.fromiter(self.bases.values(), np.int64, count)

    def grow(self, iterations: int) -> None:
        """Grow all sequences by one token per iteration."""
        self.grown += iterations


Growth: TypeAlias = "UniformGrowth | WindowedGrowth | FractionalGrowth"


def growth(block: int, held: KeptTokens) -> Growth:
    """Return the block counter of a model."""
    return WindowedGrowth(block, held) if held else UniformGrowth(block)


def max_iterations_within(wanted: Callable[[int], int], free: int, most: int) -> int:
    """Return the largest number of iterations, up to `most`, that need no more than `free` blocks.

    >>> max_iterations_within(lambda count: 3 * count, 10, 100)
    3
    """
    if wanted(most) <= free:
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wanted(middle) <= free else (low, middle)
    return low
