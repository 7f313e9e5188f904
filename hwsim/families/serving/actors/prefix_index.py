"""An index of the prefix caches of a service: the replicas that hold each piece of a prompt, as the bits of an integer.

A router that looks for cached prefixes walks the pieces of a prompt once for all replicas: the set of replicas that hold
all pieces so far only shrinks.

    index.sets(index.whole, key, 3, has=True)        replica 3 holds all blocks of a piece
    index.cached(pieces, held)                       cached blocks of a prompt on each replica
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from hwsim.records import dataclass

Key: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class PrefixIndex:
    """The replicas that hold each piece; bit n of an integer stands for replica n.

    Args:
        tiered: there are tiers below GPU memory; then some blocks of a piece cannot be reused without the others.
        whole: replicas with all blocks of a piece in GPU memory.
        below: replicas with the piece in a lower tier.
    """

    tiered: bool = False
    whole: dict[Key, int] = field(default_factory=dict)
    below: dict[Key, int] = field(default_factory=dict)

    def sets(self, holders: dict[Key, int], key: Key, replica: int, *, has: bool) -> None:
        """Record whether a replica is one of the `holders` of a piece."""
        holders[key] = mask = holders.get(key, 0) & ~(1 << replica) | has << replica
        if not mask:
            del holders[key]

    def cached(self, pieces: Sequence[tuple[Key, int]], held: Sequence[Callable[[Key], int]]) -> list[int]:
        """Return the blocks of the longest cached prefix on each replica: in GPU memory, and then in lower tiers.

        Args:
            pieces: (key, blocks) of each piece.
            held: for each replica, the function that returns the cached blocks of a piece, which may be only some of them.
        """
        blocks, hit, holders_of = [0] * len(held), 0, self.whole.get
        there, under = (1 << len(held)) - 1, 0  # replicas with all pieces so far; those whose last pieces are in lower tiers
        for key, count in pieces:
            kept = there & holders_of(key, 0)
            if kept != there or under:
                there, before = kept, there | under
                under = before & ~kept & self.below.get(key, 0)
                partly = count > 1 and not self.tiered
                if hit or partly:
                    for replica in _positions(before & ~(there | under)):
                        blocks[replica] = hit + (held[replica](key) if partly else 0)
                if not there | under:
                    return blocks
            hit += count
        for replica in _positions(there | under):
            blocks[replica] = hit
        return blocks


def _positions(mask: int) -> list[int]:
    """Return the positions of the bits of a number."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]
