"""An index of the prefix caches of a service: the replicas that hold each piece of a prompt, as the bits of an integer.

A router that looks for cached prefixes walks the pieces of a prompt once for all replicas: the set of replicas that hold
all pieces so far only shrinks.

    index.sets(index.whole, key, 3, has=True)        replica 3 holds all blocks of a piece
    index.cached(pieces, pools)                      cached blocks of a prompt on each replica
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.prefix_cache import BlockPool, Key


@dataclass(slots=True)
class PrefixIndex:
    """The replicas that hold each piece; bit n of a number stands for replica n.

    Args:
        whole: replicas with all blocks of a piece in GPU memory.
        part: replicas with some of its blocks in GPU memory, which can be reused if there is no lower tier.
        below: replicas with the piece in a lower tier.
    """

    whole: dict[Key, int] = field(default_factory=dict)
    part: dict[Key, int] = field(default_factory=dict)
    below: dict[Key, int] = field(default_factory=dict)

    def sets(self, holders: dict[Key, int], key: Key, replica: int, *, has: bool) -> None:
        """Record whether a replica is one of the `holders` of a piece."""
        mask = holders.get(key, 0)
        mask = mask | 1 << replica if has else mask & ~(1 << replica)
        if mask:
            holders[key] = mask
        else:
            holders.pop(key, None)

    def cached(self, pieces: Sequence[tuple[Key, int]], pools: Sequence[BlockPool]) -> list[int]:
        """Return the blocks of the longest cached prefix on each replica: in GPU memory, and then in lower tiers."""
        blocks, hit, holders_of = [0] * len(pools), 0, self.whole.get
        there, under = (1 << len(pools)) - 1, 0  # replicas with all pieces so far; those whose last pieces are in lower tiers
        for key, count in pieces:
            kept = there & holders_of(key, 0)
            if kept != there or under:
                there, gone = kept, there & ~kept
                found = (gone | under) & self.below.get(key, 0)
                partly = gone & self.part.get(key, 0)
                for replica in replicas((gone | under) & ~found) if hit or partly else ():
                    blocks[replica] = hit + (pools[replica].held(key) if partly >> replica & 1 else 0)
                under = found
                if not there | under:
                    return blocks
            hit += count
        for replica in replicas(there | under):
            blocks[replica] = hit
        return blocks


def replicas(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of a number.

    >>> list(replicas(0b1011))
    [0, 1, 3]
    """
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
