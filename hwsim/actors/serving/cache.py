"""The KV cache of a replica of a model: blocks of `block` tokens, none of them shared (paged attention).

**Source**: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
**Range**: no prefixes in common, nothing swapped to the host.
"""

from __future__ import annotations

import math

from hwsim.models.architectures.layer_parts import parts_held
from hwsim.records import dataclass


@dataclass(slots=True)
class Cache:
    """blocks: number of blocks (None: no limit); used: blocks that sequences have.

    held: (part of a token's bytes, most tokens of a sequence that are kept) of each kind of layer; empty: all tokens.
    """

    block: int
    blocks: int | None
    used: int = 0
    held: tuple[tuple[float, int], ...] = ()

    def need(self, tokens: int) -> int:
        """Blocks for `tokens` tokens.

        >>> Cache(16, 100).need(0), Cache(16, 100).need(1), Cache(16, 100).need(33)
        (0, 1, 3)
        >>> Cache(16, 100, held=((0.5, 32), (0.5, 0))).need(320)
        11
        """
        if self.held:
            return math.ceil(parts_held(tokens, self.held) / self.block)
        return -(-tokens // self.block)

    def free(self) -> int:
        """Free blocks."""
        return 1 << 60 if self.blocks is None else self.blocks - self.used

    def take(self, blocks: int) -> None:
        """Take free blocks.

        Raises:
            ValueError: there are not as many.
        """
        if blocks > self.free():
            raise ValueError(f"{blocks} blocks of a cache with {self.free()} free")
        self.used += blocks

    def give(self, blocks: int) -> None:
        """Give blocks back."""
        self.used -= blocks
