"""The KV cache of a replica of a model: blocks of `block` tokens, none of them shared (paged attention).

**Source**: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
**Range**: no prefixes in common, nothing swapped to the host.
"""

from __future__ import annotations

from hwsim.records import dataclass


@dataclass(slots=True)
class Cache:
    """blocks: number of blocks (None: no limit); used: blocks that sequences have."""

    block: int
    blocks: int | None
    used: int = 0

    def need(self, tokens: int) -> int:
        """Blocks for `tokens` tokens.

        >>> Cache(16, 100).need(0), Cache(16, 100).need(1), Cache(16, 100).need(33)
        (0, 1, 3)
        """
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
