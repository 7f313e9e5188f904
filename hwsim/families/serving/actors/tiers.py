"""Tiers below the GPUs of a copy that hold pieces of prompts: memory of the host, then a disk.

A piece is stored in the first tier when it is read, or when the GPUs give it up. A tier that is full gives up what was used
longest ago to the tier below it; the last one drops it. A piece that is brought back stays where it was. One from a disk
passes through the host, which then has it, too.

    tiers = Tiers((Tier("host", 100), Tier("disk", 1000)))
    tiers.stores(key, 2)
    tiers.brings([(key, 2)])            blocks that come from each tier

**Source**: vllm 0.32, docs/features/kv_offloading_usage.md (a first tier of host memory, and tiers behind it by way of the
host); sglang 0.5.9, docs/advanced_features/hicache_design.md (writing through, or when pieces are given up).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final

from hwsim.families.serving.actors.prefixes import Key
from hwsim.records import dataclass

TIERS: Final = ("host", "disk")


@dataclass(slots=True)
class Tier:
    """A tier with room for a number of blocks.

    Args:
        used: blocks that it has; most: at any time.
        stored: blocks that were written to it; brought: read back.
    """

    name: str
    blocks: int
    used: int = 0
    most: int = 0
    stored: int = 0
    brought: int = 0
    held: dict[Key, int] = field(default_factory=dict)  # in the order of use

    def touches(self, key: Key, count: int) -> bool:
        """Use a piece, if it is there."""
        if self.held.get(key, 0) < count:
            return False
        self.held[key] = self.held.pop(key)
        return True

    def stores(self, key: Key, count: int) -> list[tuple[Key, int]]:
        """Store a piece; those that made room for it, or itself if there is none."""
        if self.touches(key, count):
            return []
        if count > self.blocks:
            return [(key, count)]
        out: list[tuple[Key, int]] = []
        self.used -= self.held.pop(key, 0)
        while self.used + count > self.blocks:
            old = next(iter(self.held))
            many = self.held.pop(old)
            self.used -= many
            out.append((old, many))
        self.held[key] = count
        self.used += count
        self.stored += count
        self.most = max(self.most, self.used)
        return out


@dataclass(slots=True)
class Tiers:
    """The tiers of a copy, the fastest first; what the last one gives up is gone."""

    tiers: tuple[Tier, ...]

    def has(self, key: Key, count: int) -> bool:
        """Whether a tier has a piece."""
        return any(tier.held.get(key, 0) >= count for tier in self.tiers)

    def stores(self, key: Key, count: int) -> None:
        """Store a piece in the first tier."""
        falling = [(key, count)]
        for tier in self.tiers:
            falling = [pair for each in falling for pair in tier.stores(*each)]
            if not falling:
                return

    def brings(self, pieces: Sequence[tuple[Key, int]]) -> tuple[int, ...]:
        """Read pieces back; blocks that come from each tier."""
        counts = [0] * len(self.tiers)
        levels = [next(at for at, tier in enumerate(self.tiers) if tier.held.get(key, 0) >= count) for key, count in pieces]
        for level, (key, count) in zip(levels, pieces, strict=True):
            counts[level] += count
            self.tiers[level].brought += count
            self.tiers[level].touches(key, count)
            if level:
                self.stores(key, count)
        return tuple(counts)

    def forgets(self) -> None:
        """The copy is stopped: nothing of it stays."""
        for tier in self.tiers:
            tier.used = 0
            tier.held.clear()
