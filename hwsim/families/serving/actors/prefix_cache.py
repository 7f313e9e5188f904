"""The KV-cache blocks of a replica with automatic prefix caching: shared blocks, reference counts and LRU eviction.

Free blocks are in one queue, least recently freed first. A freed block keeps its content until it is allocated again, so a later
request with the same beginning can reuse it.

A piece is a number of blocks of a prompt under one key (a hash of the prompt up to there). Blocks without a key contain outputs,
and prompts that are not shared.

    pool = BlockPool(100)
    pool.take(3)                 allocate three blocks without a key
    pool.keeps(key, 2)           two of them become a piece that others may reuse
    pool.gives(1, [key])         free the third block, and release the piece, which is free once no request uses it

    cache = PrefixCache(settings, pool)
    found = cache.found(sequence)       prefix-cache hits of its prompt, here and in lower tiers
    cache.shares(sequence)              let others reuse the pieces computed so far
    cache.gives(sequence)               free all of its blocks

**Source**: vLLM 0.19, v1/core/kv_cache_manager.py: a chain of hashes, full blocks only, blocks of a request freed from its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from hwsim.families.serving.actors.prefix_index import Key, PrefixIndex
from hwsim.families.serving.workload.settings import Settings
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors import run
    from hwsim.families.serving.actors.tiers import OffloadTiers

Pieces: TypeAlias = tuple[Sequence[tuple[Key, int]], int]  # ((key, blocks) of each piece, total blocks)
OWN: Final = -1  # first part of the key of a preempted request's own blocks


@dataclass(slots=True)
class BlockPool:
    """The block allocator of a replica.

    Args:
        blocks: total number of blocks.
        free: number of blocks that can be allocated, including blocks with reusable pieces.
        leaves: function called with (key, blocks) of an evicted piece, before any of its blocks is allocated.
        index: index in which the pieces of replica `replica` are recorded for a router; None without one.
    """

    blocks: int
    free: int = field(init=False)
    leaves: Callable[[Key, int], None] | None = None
    index: PrefixIndex | None = None
    replica: int = 0
    _blank: int = 0  # free blocks of evicted pieces, which are allocated first
    _line: dict[Key | int, int] = field(default_factory=dict)  # free blocks by key, or number; in order of freeing
    _used: dict[Key, list[int]] = field(default_factory=dict)  # [reference count, blocks] of pieces in use
    _last: int = 0  # number of the last entry of `_line`; 0 if that is a piece
    _numbers: int = 1

    def __post_init__(self) -> None:
        self.free = self.blocks
        self._line[1] = self.blocks
        self._last = 1

    def clears(self) -> None:
        """Clear all pieces; no block may be in use."""
        for key in self._line:
            self._records(key, has=False)
        self.free, self._blank = self.blocks, 0
        self._line, self._last, self._numbers = {1: self.blocks}, 1, 1

    def take(self, count: int) -> None:
        """Allocate free blocks, least recently freed first."""
        if count <= 0:
            return
        if count > self.free:
            raise ValueError(f"{count} blocks are needed, but {self.free} are free")
        self.free -= count
        line, last = self._line, self._last
        if last and len(line) == 1 and line[last] > count and not self._blank:  # all free blocks are without a key
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
            if self.index is not None:
                self._records(key, has=False)
            count -= count_here

    def beginning(self, pieces: Iterable[tuple[Key, int]], *, whole: bool) -> tuple[list[Key], int, int]:
        """Return (keys, blocks, blocks that are free now) of the longest cached prefix; `whole`: complete pieces only."""
        used, line = self._used.get, self._line.get
        keys: list[Key] = []
        hit = stale = 0
        for key, count in pieces:
            in_use = used(key)
            if in_use is None:
                count_there = line(key, 0)
                stale += count_there if count_there >= count or not whole else 0
            else:
                count_there = in_use[1]
            if not count_there or (whole and count_there < count):
                break
            keys.append(key)
            hit += count_there
            if count_there < count:
                break
        return keys, hit, stale

    def held(self, key: Key) -> int:
        """Return the cached blocks of a piece, in use or free."""
        used = self._used.get(key)
        return used[1] if used is not None else self._line.get(key, 0)

    def uses(self, keys: Iterable[Key]) -> None:
        """Add a reference to each of these cached pieces."""
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
        """Register allocated blocks as a piece in use; False if the piece is already in use elsewhere."""
        if key in self._used:
            return False
        stale = self._line.pop(key, 0)
        if stale:
            self._append_free(stale)
        self._used[key] = [1, count]
        if self.index is not None:
            self._records(key, has=True)
        return True

    def gives(self, count: int, keys: Sequence[Key] = ()) -> None:
        """Free blocks without a key, and release pieces in reverse order, so that the last one is evicted first."""
        if count:
            self.free += count
            self._append_free(count)
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

    def _records(self, key: Key | int, *, has: bool) -> None:
        """Record in the index whether all blocks of a piece are cached."""
        if self.index is not None and not isinstance(key, int):
            self.index.sets(self.index.whole, key, self.replica, has=has)

    def _append_free(self, count: int) -> None:
        if self._last:
            self._line[self._last] += count
            return
        self._numbers += 1
        self._last = self._numbers
        self._line[self._last] = count


class PrefixHits(NamedTuple):
    """The prefix-cache hits of a prompt.

    Args:
        blocks: number of blocks found in GPU memory.
        keys: keys of their pieces.
        stale: number of these blocks that are free now.
        below: (key, blocks) of the next pieces, found in lower tiers.
    """

    blocks: int
    keys: list[Key]
    stale: int
    below: tuple[tuple[Key, int], ...] = ()


@dataclass(slots=True)
class PrefixCache:
    """The prefix cache of a replica.

    Args:
        settings: settings of the server.
        pool: block allocator.
        lower: tiers below GPU memory; None without `offload:`.
        late: pieces are stored in the lower tiers when they are evicted, not when they are computed.
    """

    settings: Settings
    pool: BlockPool
    lower: OffloadTiers | None = None
    late: bool = False

    def __post_init__(self) -> None:
        if self.lower is not None and self.late:
            self.pool.leaves = self._store_evicted

    def records_in(self, index: PrefixIndex, replica: int) -> Callable[[Key], int]:
        """Record the pieces of a replica in an index; return the function of the cached blocks of a piece."""
        self.pool.index, self.pool.replica = index, replica
        if self.lower is not None:
            self.lower.index, self.lower.replica, index.tiered = index, replica, True
        return self.pool.held

    def found(self, sequence: run.Sequence) -> PrefixHits:
        """Return the cache hits of a prompt; the block of its last token is recomputed in place even if it is cached."""
        if not self.settings.prefixes or not (sequence.ids or sequence.put_off):
            return PrefixHits(0, [], 0)
        pool, (pieces, blocks) = self.pool, self.pieces(sequence)
        keys, hit, stale = pool.beginning(pieces, whole=self.lower is not None)
        if hit < blocks:
            return PrefixHits(hit, keys, stale, () if self.lower is None else tuple(self._below(pieces[len(keys) :])))
        own_key = (OWN, sequence.number)
        if sequence.put_off and hit == sequence.kept and (count_there := pool.held(own_key)):
            return PrefixHits(hit + count_there, [*keys, own_key], stale + count_there)
        return PrefixHits(hit, keys, stale)

    def _below(self, rest: Sequence[tuple[Key, int]]) -> Iterable[tuple[Key, int]]:
        for key, count in rest:
            if self.lower is None or not self.lower.has(key, count):
                return
            yield key, count

    def pieces(self, sequence: run.Sequence) -> Pieces:
        """Return the pieces of a prompt and their blocks, computed once per request."""
        of_block, listed = sequence.listed
        if of_block != self.settings.block:
            pieces = sequence.pieces(self.settings.block)
            listed = pieces, sum(map(itemgetter(1), pieces))  # integers
            sequence.listed = self.settings.block, listed
        return listed

    def begins(self, sequence: run.Sequence, found: PrefixHits) -> None:
        """Assign the cache hits in GPU memory to a request."""
        self.pool.uses(found.keys)
        sequence.keys, sequence.hit, sequence.own, sequence.kept = found.keys, found.blocks, 0, 0

    def spared(self, sequence: run.Sequence, blocks: int) -> int:
        """Return the prompt tokens saved by cached blocks; the block of the last token is always computed."""
        block = self.settings.block
        return min(blocks * block, (sequence.to_read - 1) // block * block)

    def grows(self, sequence: run.Sequence, blocks: int) -> None:
        """Allocate blocks to a request until it has this number."""
        more = blocks - sequence.hit - sequence.kept - sequence.own
        if more > 0:
            self.pool.take(more)
            sequence.own += more

    def shares(self, sequence: run.Sequence, written: int = 0) -> None:
        """Let others reuse the computed pieces of a request; `written`: tokens of prompt and output, once it is complete."""
        full_blocks = (written or sequence.read) // self.settings.block
        pieces: Iterable[tuple[Key, int]]
        if written:
            pieces = sequence.pieces(self.settings.block, written)
        else:
            pieces, blocks = self.pieces(sequence)
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
        """Register pieces loaded from lower tiers into blocks of a request."""
        for key, count in below:
            if key not in sequence.keys and self.pool.keeps(key, count):
                sequence.own -= count
                sequence.kept += count
                sequence.keys.append(key)

    def keeps_own(self, sequence: run.Sequence, tokens: int) -> int:
        """Keep the whole blocks of a preempted request cached; return the number of blocks before them."""
        begun = sequence.hit + sequence.kept
        full_blocks = tokens // self.settings.block - begun
        own_key = (OWN, sequence.number)
        if self.settings.prefixes and full_blocks > 0 and own_key not in sequence.keys and self.pool.keeps(own_key, full_blocks):
            sequence.own -= full_blocks
            sequence.keys.append(own_key)
        return begun

    def gives(self, sequence: run.Sequence) -> None:
        """Free all blocks of a request."""
        self.pool.gives(sequence.own, sequence.keys)
        sequence.own, sequence.keys = 0, []

    def _store_evicted(self, key: Key, count: int) -> None:
        if self.lower is not None and key[0] != OWN:
            self.lower.stores(key, count)
