"""Many small accesses of one kind: what an op asks of caches and memory where it is not one long stream."""

from __future__ import annotations

import math

from hwsim.demand import Pattern
from hwsim.devices.work import Call
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """`count` loads and stores of `size` bytes each.

    Args:
        pattern: sequential: one after the other, each next to the last; strided: `stride` bytes apart; random: anywhere,
            independent of each other; dependent: anywhere, and each needs the one before it (a chain of pointers).
        stride: bytes from one to the next; 0 for `size`.
        offset: bytes that the first lies beyond a multiple of `size`: misaligned if not 0.
        working_set: bytes they use repeatedly; None: everything is used once, and comes from memory.
        write: part of them that store.
        cores: number of a cpu that do them, each its part; None for all.
        chains: dependent accesses that every core follows side by side.
        remote: part of them that goes to the memory of another domain or socket.
        banks, row_hit: banks of each channel that they go to (None: all), and the part that finds its row open; for a memory
            without caches before it.
        call: the call of a library that does them, for a machine whose calls were measured.
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
    call: Call | None = None

    @property
    def step(self) -> float:
        """Bytes from one access to the next where they follow each other."""
        return self.stride if self.pattern == "strided" and self.stride > 0 else self.size

    @property
    def scattered(self) -> bool:
        """Whether they go anywhere, so that no prefetcher and no open row helps."""
        return self.pattern in ("random", "dependent")


def crossings(size: float, step: float, offset: float, line: float) -> float:
    """Lines that one access touches beyond its first, on average over accesses `step` bytes apart.

    >>> crossings(8, 8, 0, 64), crossings(8, 8, 4, 64), crossings(8, 64, 60, 64), crossings(256, 256, 0, 64)
    (0.0, 0.125, 1.0, 3.0)
    """
    if size <= 0:
        return 0.0
    is_whole = all(float(each).is_integer() for each in (size, step, offset, line)) and step > 0
    if not is_whole:
        return (size - 1) / line if size > 1 else 0.0
    period = int(line) // math.gcd(int(step), int(line))
    begins = ((int(offset) + turn * int(step)) % int(line) for turn in range(min(period, 4096)))
    return sum((begin + int(size) - 1) // int(line) for begin in begins) / min(period, 4096)  # integers


def lines_touched(accesses: Accesses, line: float) -> float:
    """Lines that one access brings from the next level on average: neighbours share theirs, far ones do not.

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
