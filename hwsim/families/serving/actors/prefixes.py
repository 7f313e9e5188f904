"""The blocks of a copy's KV cache, shared by requests that begin alike, and what each request holds of them.

Free blocks stand in one line, those that were given back longest ago first. A block given back keeps what it holds until it is
taken for something else (least recently used first), so that a later request with the same beginning need not read it again.

A piece is `count` blocks of a prompt that are known under one key (a hash of the prompt up to there). Blocks of no key hold
answers, and prompts that no other has.

    pool = Pool(100)
    pool.take(3)                 three blocks of no key
    pool.keeps(key, 2)           two of them hold a piece that others may use from now on
    pool.gives(1, [key])         the third one is free, then the piece's, once no request uses it

    cache = Cache(settings, pool)
    found = cache.found(sequence)       what its prompt need not read: here, and in tiers below
    cache.shares(sequence)              pieces that are read are there for others
    cache.gives(sequence)               all of its blocks are given back

**Source**: vLLM 0.19, v1/core/kv_cache_manager.py: a chain of hashes, full blocks only, blocks of a request freed from its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hwsim.families.serving.workload.settings import Settings
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors import run
    from hwsim.families.serving.actors.tiers import Tiers

Key: TypeAlias = tuple[int, int]
Pieces: TypeAlias = tuple[Sequence[tuple[Key, int]], int]  # with their blocks, and the blocks of all
OWN: Final = -1  # first part of the key of a sequence's own blocks


@dataclass(slots=True)
class Pool:
    """free: blocks that can be taken, some with pieces in them.

    leaves: called with a piece that is given up, whole, before any of its blocks is taken.
    """

    blocks: int
    free: int = field(init=False)
    leaves: Callable[[Key, int], None] | None = None
    _blank: int = 0  # free blocks of pieces that were given up, which are the first to be taken
    _line: dict[Key | int, int] = field(default_factory=dict)  # free blocks by key, or by a number, in the order of giving back
    _used: dict[Key, list[int]] = field(default_factory=dict)  # [requests that use it, blocks] of pieces that are in use
    _last: int = 0  # the number at the end of the line, 0 if a key stands there
    _numbers: int = 1

    def __post_init__(self) -> None:
        self.free = self.blocks
        self._line[1] = self.blocks
        self._last = 1

    def clears(self) -> None:
        """Forget all pieces; no block may be in use."""
        self.free, self._blank = self.blocks, 0
        self._line, self._last, self._numbers = {1: self.blocks}, 1, 1

    def take(self, count: int) -> None:
        """Take free blocks, from the front of the line."""
        if count <= 0:
            return
        if count > self.free:
            raise ValueError(f"{count} blocks of {self.free} that are free")
        self.free -= count
        line, last = self._line, self._last
        if last and len(line) == 1 and line[last] > count and not self._blank:  # no piece is free
            line[last] -= count
            return
        if self._blank:
            blank = min(self._blank, count)
            self._blank -= blank
            count -= blank
        while count:
            key = next(iter(line))
            count_there = line[key]
            if self.leaves is not None and not isinstance(key, int):
                self.leaves(key, count_there)
                del line[key]
                self._blank += max(0, count_there - count)
                count_here = min(count, count_there)
            elif count_there > count:
                line[key] = count_there - count
                count_here = count
            else:
                del line[key]
                count_here = count_there
                if key == self._last:
                    self._last = 0
            count -= count_here

    def beginning(self, pieces: Iterable[tuple[Key, int]], *, whole: bool) -> tuple[list[Key], int, int]:
        """Keys of the first pieces that are there, their blocks, and those that count as free now; whole: no piece in part."""
        used, line = self._used, self._line
        keys, hit, stale = [], 0, 0
        for key, count in pieces:
            in_use = used.get(key)
            count_there = line.get(key, 0) if in_use is None else in_use[1]
            if not count_there or (whole and count_there < count):
                break
            if in_use is None:
                stale += count_there
            keys.append(key)
            hit += count_there
            if count_there < count:
                break
        return keys, hit, stale

    def held(self, key: Key) -> int:
        """Blocks of a piece that are there, used or free."""
        used = self._used.get(key)
        return used[1] if used is not None else self._line.get(key, 0)

    def uses(self, keys: Iterable[Key]) -> None:
        """Use pieces that are there."""
        every, line, taken = self._used, self._line, 0
        for key in keys:
            used = every.get(key)
            if used is not None:
                used[0] += 1
                continue
            count = line.pop(key)
            taken += count
            every[key] = [1, count]
        self.free -= taken

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
        every, line, given = self._used, self._line, 0
        for key in reversed(keys):
            used = every[key]
            if used[0] > 1:
                used[0] -= 1
            else:
                del every[key]
                line[key] = used[1]
                given += used[1]
        if given:
            self._last = 0
            self.free += given

    def _gives(self, count: int) -> None:
        if self._last:
            self._line[self._last] += count
            return
        self._numbers += 1
        self._last = self._numbers
        self._line[self._last] = count


class Found(NamedTuple):
    """The part of a prompt's beginning that the cache has.

    Args:
        blocks: here; keys: of their pieces; stale: how many of them count as free now.
        below: pieces that follow in tiers below, with their blocks.
    """

    blocks: int
    keys: list[Key]
    stale: int
    below: tuple[tuple[Key, int], ...] = ()


@dataclass(slots=True)
class Cache:
    """The cache of a copy; lower: tiers below it, which have a piece from when it is read, or (late) from when it is given up."""

    settings: Settings
    pool: Pool
    lower: Tiers | None = None
    late: bool = False

    def __post_init__(self) -> None:
        if self.lower is not None and self.late:
            self.pool.leaves = self._leaves

    def found(self, sequence: run.Sequence) -> Found:
        """The part of a prompt that it has. The last token is always computed, and its block with it, in place."""
        if not self.settings.prefixes or not (sequence.ids or sequence.put_off):
            return Found(0, [], 0)
        pool, (pieces, blocks) = self.pool, self._pieces(sequence)
        keys, hit, stale = pool.beginning(pieces, whole=self.lower is not None)
        if hit < blocks:
            return Found(hit, keys, stale, () if self.lower is None else tuple(self._below(pieces[len(keys) :])))
        own_key = (OWN, sequence.number)
        if sequence.put_off and hit == sequence.kept and (count_there := pool.held(own_key)):
            return Found(hit + count_there, [*keys, own_key], stale + count_there)
        return Found(hit, keys, stale)

    def _below(self, rest: Sequence[tuple[Key, int]]) -> Iterable[tuple[Key, int]]:
        for key, count in rest:
            if self.lower is None or not self.lower.has(key, count):
                return
            yield key, count

    def _pieces(self, sequence: run.Sequence) -> Pieces:
        """The pieces of a prompt, and their blocks, made once for a request that is looked at again and again."""
        of_block, listed = sequence.listed
        if of_block != self.settings.block:
            pieces = sequence.pieces(self.settings.block)
            listed = pieces, sum([count for _, count in pieces])  # integers
            sequence.listed = self.settings.block, listed
        return listed

    def begins(self, sequence: run.Sequence, found: Found) -> None:
        """A request holds what was found here."""
        self.pool.uses(found.keys)
        sequence.keys, sequence.hit, sequence.own, sequence.kept = found.keys, found.blocks, 0, 0

    def spared(self, sequence: run.Sequence, blocks: int) -> int:
        """Tokens of a prompt that a number of blocks spare it; the last token is always computed, and its block with it."""
        block = self.settings.block
        return min(blocks * block, (sequence.to_read - 1) // block * block)

    def grows(self, sequence: run.Sequence, blocks: int) -> None:
        """A request takes blocks until it has this number."""
        more = blocks - sequence.hit - sequence.kept - sequence.own
        if more > 0:
            self.pool.take(more)
            sequence.own += more

    def shares(self, sequence: run.Sequence, written: int = 0) -> None:
        """Others may use the pieces of its prompt that are read; written: tokens of prompt and answer, once it has ended."""
        full_blocks = (written or sequence.read) // self.settings.block
        pieces: Iterable[tuple[Key, int]]
        if written:
            pieces = sequence.pieces(self.settings.block, written)
        else:
            pieces, blocks = self._pieces(sequence)
            if blocks <= sequence.hit + sequence.kept:
                return
        start, had, has = 0, sequence.hit + sequence.kept, set[Key]()
        for key, count in pieces:
            start += count
            if start > full_blocks:
                return
            if start <= had or count > sequence.own:
                continue
            has = has or set(sequence.keys)
            if key not in has:
                if not self.pool.keeps(key, count):
                    return
                sequence.own -= count
                sequence.kept += count
                had += count
                sequence.keys.append(key)
                has.add(key)
                if self.lower is not None and not self.late:
                    self.lower.stores(key, count)

    def loaded(self, sequence: run.Sequence, below: Iterable[tuple[Key, int]]) -> None:
        """Pieces came from below into blocks that a request has."""
        for key, count in below:
            if key not in sequence.keys and self.pool.keeps(key, count):
                sequence.own -= count
                sequence.kept += count
                sequence.keys.append(key)

    def keeps_own(self, sequence: run.Sequence, tokens: int) -> int:
        """Whole blocks of a request that is put off are kept for it, as far as there is room; blocks before them."""
        begun = sequence.hit + sequence.kept
        full_blocks = tokens // self.settings.block - begun
        own_key = (OWN, sequence.number)
        if self.settings.prefixes and full_blocks > 0 and own_key not in sequence.keys and self.pool.keeps(own_key, full_blocks):
            sequence.own -= full_blocks
            sequence.keys.append(own_key)
        return begun

    def gives(self, sequence: run.Sequence) -> None:
        """Give its blocks back."""
        self.pool.gives(sequence.own, sequence.keys)
        sequence.own, sequence.keys = 0, []

    def _leaves(self, key: Key, count: int) -> None:
        if self.lower is not None and key[0] != OWN:
            self.lower.stores(key, count)
