"""Many small accesses of one kind: the demand of an op on caches and memory if it is not one long stream."""

from __future__ import annotations

import math

from hwsim.demand import Pattern
from hwsim.devices.work import LibraryCall
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """A set of `count` loads and stores of `size` bytes each.

    Args:
        count: number of accesses.
        size: size of one access (B).
        pattern: sequential: consecutive addresses; strided: addresses `stride` bytes apart; random: independent random addresses;
            dependent: random addresses, each known only after the access before it (pointer chasing).
        stride: distance from one access to the next (B); 0: `size`.
        offset: distance of the first access from a multiple of `size` (B); not 0: misaligned.
        working_set: bytes that are accessed repeatedly; None: every byte is used once and comes from memory.
        write: share of stores.
        cores: number of CPU cores that share the accesses; None: all.
        chains: dependent accesses in flight on each core.
        remote: share of accesses to the memory of another domain or socket.
        banks: number of banks of each channel that are accessed, for a memory without caches; None: all.
        row_hit: share of row hits, for a memory without caches.
        call: library call that makes the accesses, for a machine with measured calls.
    """

    count: float
    size: float = 8.0
    pattern: Pattern = "sequential"
    stride: float = 0.0
    offset: float = 0.0
    working_set: float | None = None
    write: float = 0.0
    cores: int | None = None
    chains: int = 1
    remote: float = 0.0
    banks: int | None = None
    row_hit: float = 0.0
    call: LibraryCall | None = None

    @property
    def step(self) -> float:
        """Distance between successive sequential or strided accesses (B)."""
        return self.stride if self.pattern == "strided" and self.stride > 0 else self.size

    @property
    def scattered(self) -> bool:
        """Whether the addresses are random, so that neither a prefetcher nor an open row helps."""
        return self.pattern in ("random", "dependent")


def crossings(size: float, step: float, offset: float, line: float) -> float:
    """Return the average number of cache lines of an access beyond its first, for accesses `step` bytes apart.

    >>> crossings(8, 8, 0, 64), crossings(8, 8, 4, 64), crossings(8, 64, 60, 64), crossings(256, 256, 0, 64)
    (0.0, 0.125, 1.0, 3.0)
    """
    if size <= 0:
        return 0.0
    is_whole = all(float(length).is_integer() for length in (size, step, offset, line)) and step > 0
    if not is_whole:
        return (size - 1) / line if size > 1 else 0.0
    period = int(line) // math.gcd(int(step), int(line))
    begins = ((int(offset) + turn * int(step)) % int(line) for turn in range(min(period, 4096)))
    return sum((begin + int(size) - 1) // int(line) for begin in begins) / min(period, 4096)  # integers


def lines_touched(accesses: Accesses, line: float) -> float:
    """Return the average number of cache lines that one access fetches; neighbouring accesses share lines, distant ones do not.

    >>> lines_touched(Accesses(count=1, size=8, pattern="strided", stride=16), 64)
    0.25
    >>> lines_touched(Accesses(count=1, size=8, pattern="random"), 64)
    1.0
    """
    lines = 1.0 + crossings(accesses.size, accesses.size, accesses.offset, line)
    if accesses.scattered:
        return lines
    lines = 1.0 + crossings(accesses.size, accesses.step, accesses.offset, line)
    return min(lines, accesses.step / line)
