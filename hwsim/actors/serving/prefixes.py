"""The blocks of a copy's KV cache, shared by requests that begin alike.

Free blocks stand in one line, those that were given back longest ago first. A block given back keeps what it holds until it is
taken for something else (least recently used first), so that a later request with the same beginning need not read it again.

A piece is `count` blocks of a prompt that are known under one key (a hash of the prompt up to there). Blocks of no key hold
answers, and prompts that no other has.

    pool = Pool(100)
    pool.take(3)                 three blocks of no key
    pool.keeps(key, 2)           two of them hold a piece that others may use from now on
    pool.gives(1, [key])         the third one is free, then the piece's, once no request uses it

**Source**: vLLM 0.19, v1/core/kv_cache_manager.py: a chain of hashes, full blocks only, blocks of a request freed from its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from hwsim.records import dataclass

Key: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class Pool:
    """free: blocks that can be taken, some with pieces in them; evicted: blocks whose pieces were given up."""

    blocks: int
    free: int = field(init=False)
    evicted: int = 0
    _line: dict[Key | int, int] = field(default_factory=dict)  # free blocks by key, or by a number, in the order of giving back
    _used: dict[Key, list[int]] = field(default_factory=dict)  # [requests that use it, blocks] of pieces that are in use
    _last: int = 0  # the number at the end of the line, 0 if a key stands there
    _numbers: int = 1

    def __post_init__(self) -> None:
        self.free = self.blocks
        self._line[1] = self.blocks
        self._last = 1

    def take(self, count: int) -> None:
        """Take free blocks, from the front of the line."""
        if count <= 0:
            return
        if count > self.free:
            raise ValueError(f"{count} blocks of {self.free} that are free")
        self.free -= count
        line = self._line
        while count:
            key = next(iter(line))
            count_there = line[key]
            if count_there > count:
                line[key] = count_there - count
                count_here = count
            else:
                del line[key]
                count_here = count_there
                if key == self._last:
                    self._last = 0
            if not isinstance(key, int):
                self.evicted += count_here
            count -= count_here

    def held(self, key: Key) -> int:
        """Blocks of a piece that are there, used or free."""
        used = self._used.get(key)
        return used[1] if used is not None else self._line.get(key, 0)

    def waiting(self, key: Key) -> int:
        """Blocks of a piece that count as free now and will not once it is used."""
        return 0 if key in self._used else self._line.get(key, 0)

    def uses(self, key: Key) -> int:
        """Use a piece that is there; its blocks."""
        used = self._used.get(key)
        if used is not None:
            used[0] += 1
            return used[1]
        count = self._line.pop(key)
        self.free -= count
        self._used[key] = [1, count]
        return count

    def keeps(self, key: Key, count: int) -> bool:
        """Note that blocks that a request took hold a piece; False if there are others that do."""
        if key in self._used:
            return False
        stale = self._line.pop(key, 0)
        if stale:
            self._gives(stale)
        self._used[key] = [1, count]
        return True

    def gives(self, count: int, keys: Sequence[Key] = ()) -> None:
        """Give back blocks of no key, and stop using pieces: the last one is the first to be taken again."""
        if count:
            self.free += count
            self._gives(count)
        for key in reversed(keys):
            used = self._used[key]
            used[0] -= 1
            if not used[0]:
                del self._used[key]
                self._line[key] = used[1]
                self._last = 0
                self.free += used[1]

    def _gives(self, count: int) -> None:
        if self._last:
            self._line[self._last] += count
            return
        self._numbers += 1
        self._last = self._numbers
        self._line[self._last] = count
