"""Tiers below the GPU memory of a replica, with KV-cache blocks of prompts: host memory, then a disk.

A piece of a prompt is stored in the first tier when it is computed, or when the GPUs evict it. A full tier evicts its least
recently used pieces to the tier below; the last tier drops them. A loaded piece also stays in its tier. A piece loaded from a
disk passes through host memory and is stored there, too.

    tiers = OffloadTiers((OffloadTier("host", 100), OffloadTier("disk", 1000)))
    tiers.stores(key, 2)
    tiers.brings([(key, 2)])            number of blocks loaded from each tier

**Source**: vllm 0.32, docs/features/kv_offloading_usage.md (a first tier in host memory, and lower tiers reached through it);
sglang 0.5.9, docs/advanced_features/hicache_design.md (write-through, or write-back on eviction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from hwsim.families.serving.actors.prefix_index import Key, PrefixIndex
from hwsim.records import dataclass

TIERS: Final = ("host", "disk")


@dataclass(slots=True)
class OffloadTier:
    """A tier with an LRU cache of pieces.

    Args:
        name: name of the tier.
        blocks: capacity in blocks.
        used: blocks in use.
        most: maximum of `used` so far.
        stored: total blocks written.
        brought: total blocks loaded.
        held: blocks of each piece, least recently used first.
    """

    name: str
    blocks: int
    used: int = 0
    most: int = 0
    stored: int = 0
    brought: int = 0
    held: dict[Key, int] = field(default_factory=dict)

    def touches(self, key: Key, count: int) -> bool:
        """Mark a piece as used; False if the tier does not have it."""
        if self.held.get(key, 0) < count:
            return False
        self.held[key] = self.held.pop(key)
        return True

    def stores(self, key: Key, count: int) -> list[tuple[Key, int]]:
        """Store a piece; return the evicted pieces, or the piece itself if it is larger than the tier."""
        if self.touches(key, count):
            return []
        if count > self.blocks:
            return [(key, count)]
        evicted: list[tuple[Key, int]] = []
        self.used -= self.held.pop(key, 0)
        while self.used + count > self.blocks:
            old = next(iter(self.held))
            old_count = self.held.pop(old)
            self.used -= old_count
            evicted.append((old, old_count))
        self.held[key] = count
        self.used += count
        self.stored += count
        self.most = max(self.most, self.used)
        return evicted


@dataclass(slots=True)
class OffloadTiers:
    """The tiers of a replica, fastest first; the last tier drops what it evicts."""

    tiers: tuple[OffloadTier, ...]
    index: PrefixIndex | None = None
    replica: int = 0

    def has(self, key: Key, count: int) -> bool:
        """Whether any tier has a piece."""
        return any(tier.held.get(key, 0) >= count for tier in self.tiers)

    def stores(self, key: Key, count: int) -> None:
        """Store a piece in the first tier."""
        evicted = moved = [(key, count)]
        for tier in self.tiers:
            evicted = [pair for piece in evicted for pair in tier.stores(*piece)]
            moved = moved + evicted
        if self.index is not None:
            for key, count in moved:
                self.index.sets(self.index.below, key, self.replica, has=self.has(key, count))

    def brings(self, pieces: Sequence[tuple[Key, int]]) -> tuple[int, ...]:
        """Load pieces; return the number of blocks from each tier."""
        counts = [0] * len(self.tiers)
        levels = [next(level for level, tier in enumerate(self.tiers) if tier.held.get(key, 0) >= count) for key, count in pieces]
        for level, (key, count) in zip(levels, pieces, strict=True):
            counts[level] += count
            self.tiers[level].brought += count
            self.tiers[level].touches(key, count)
            if level:
                self.stores(key, count)
        return tuple(counts)

    def forgets(self) -> None:
        """Empty all tiers, as after a restart."""
        if self.index is not None:
            for key in {key for tier in self.tiers for key in tier.held}:
                self.index.sets(self.index.below, key, self.replica, has=False)
        for tier in self.tiers:
            tier.used = 0
            tier.held.clear()
