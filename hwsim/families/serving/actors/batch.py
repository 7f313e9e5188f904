"""The requests of a replica: the transitions between queue, prefill, decode and preemption, and the state that routers see."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import field
from itertools import takewhile
from typing import NamedTuple

from hwsim.families.serving.actors.admission import Reservations
from hwsim.families.serving.actors.balanced_prefill import Groups
from hwsim.families.serving.actors.prefix_cache import BlockPool, PrefixCache, PrefixHits
from hwsim.families.serving.actors.prefix_index import Key
from hwsim.families.serving.actors.replica import Replica
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.slots import Slots
from hwsim.families.serving.actors.tiers import OffloadTiers
from hwsim.families.serving.results.accounting import KV_LOAD
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass


class KvLoad(NamedTuple):
    """A load of KV-cache blocks from the tiers below GPU memory.

    Args:
        sequence: request that waits for the blocks.
        pieces: (key, blocks) of its prompt.
        counts: number of blocks from each tier.
    """

    sequence: Sequence
    pieces: tuple[tuple[Key, int], ...]
    counts: tuple[int, ...]


@dataclass(slots=True)
class ReplicaBatch(Replica):
    """The requests of a replica, with their KV-cache blocks and adapter slots.

    If part of a prompt is in a tier below the GPUs, its request reserves blocks for the entire prompt and waits for the load,
    while other requests continue. It then joins a queue of its own, which is served before the queue of new requests. The caller
    decides how long a load takes.

    Args:
        loads: loads started by the last decision, for the caller.
        loading: requests that wait for a load.
        loaded: requests whose load has ended, in this order.
        partial: requests in prefill.
        lower: tiers below GPU memory.
        slots: adapter slots.
        pool: KV-cache blocks.
        cache: prefix cache.
        answers: number of requests in decode.
        count: decode iterations so far.
        context: tokens of all requests in decode, including their prompts.
    """

    loads: list[KvLoad] = field(default_factory=list)
    loading: list[Sequence] = field(default_factory=list)
    loaded: deque[Sequence] = field(default_factory=deque)
    partial: list[Sequence] = field(default_factory=list)
    lower: OffloadTiers | None = None
    slots: Slots | None = None
    pool: BlockPool = field(init=False)
    cache: PrefixCache = field(init=False)
    answers: int = 0
    count: int = 0
    context: int = 0
    _groups: Groups | None = None
    _ends: list[tuple[int, int, int, Sequence]] = field(default_factory=list)
    _order: list[tuple[Sequence, int]] = field(default_factory=list)
    _places: int = 0
    _promises: Reservations = field(init=False)
    _hold: int = 0  # iteration at which a request refused by `admit: ratio` is tried again

    def __post_init__(self) -> None:
        Replica.__post_init__(self)
        self.pool = BlockPool(ANY if self.blocks is None else self.blocks)
        self.cache = PrefixCache(self.settings, self.pool, self.lower, self.settings.late)
        self._promises = Reservations(self.settings, self.growth.need)
        if self.settings.gather:
            self._groups = Groups(self.settings.groups, self.settings.gather)

    @property
    def requests(self) -> int:
        """Number of requests, queued or running."""
        return self.in_line + len(self.loading) + len(self.partial) + self.answers

    @property
    def in_line(self) -> int:
        """Number of queued requests."""
        return len(self.waiting) + len(self.loaded) + (0 if self.slots is None else len(self.slots.held))

    @property
    def head(self) -> Sequence | None:
        """Queued request that is scheduled next; None if the queue is empty."""
        if not self.loaded:
            return self.waiting[0] if self.waiting else None
        return min((line[0] for line in (self.loaded, self.waiting) if line), key=lambda sequence: sequence.at)

    def first_at(self, instant: int) -> Sequence | None:
        """Return the head of a queue if it was queued at this instant."""
        loaded = self.loaded[0] if self.loaded else None
        return loaded if loaded is not None and loaded.at == instant else Replica.first_at(self, instant)

    @property
    def room(self) -> float:
        """Share of KV-cache blocks that are free."""
        return self.pool.free / self.pool.blocks

    @property
    def is_idle(self) -> bool:
        """Whether no request is running."""
        return not (self.answers or self.partial)

    def forgets(self) -> None:
        """Clear all caches, as after a restart."""
        self.changed.add(self.number)
        self.pool.clears()
        if self.slots is not None:
            self.slots.forgets()
        if self.lower is not None:
            self.lower.forgets()

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        if self._groups is not None:
            self._groups.add(sequence)
        Replica.add(self, sequence)

    # ------------------------------------------------------------ requests that load blocks from lower tiers

    def first_line(self, door: int) -> deque[Sequence]:
        """Return the queue whose head is next: loaded requests are served before new ones."""
        return self.loaded if self.loaded and self.loaded[0].at <= door else self.waiting

    def after(self, door: int) -> Iterable[int]:
        """Yield the queueing times later than `door` of both queues, the latest of each queue first."""
        for line in (self.waiting, self.loaded):
            yield from (sequence.at for sequence in takewhile(lambda sequence: sequence.at > door, reversed(line)))

    def _asks(self, sequence: Sequence, reused: PrefixHits, blocks: int, instant: int) -> None:
        """Start to load the lower-tier part of a prompt, and allocate `blocks` for the entire prompt."""
        assert self.lower is not None
        counts = self.lower.brings(reused.below)
        self.cache.begins(sequence, reused)
        self.cache.grows(sequence, blocks)
        self.loads.append(KvLoad(sequence, reused.below, counts))
        self.loading.append(sequence)
        self.log.holds(instant, sequence.number, [count * self.settings.block for count in counts])

    def comes(self, load: KvLoad, instant: int) -> None:
        """End a load: its request is queued again at this instant."""
        sequence = load.sequence
        self.cache.loaded(sequence, load.pieces)
        sequence.read = sequence.cached = self.cache.spared(
            sequence, sequence.hit + sum(count for _, count in load.pieces)
        )  # integers
        sequence.at = instant
        self.loading.remove(sequence)
        self.loaded.append(sequence)
        self.changed.add(self.number)
        self.log.frees(instant, sequence.number, KV_LOAD)

    # ------------------------------------------------------------ decode, completion and preemption

    def _starts(self, sequence: Sequence) -> None:
        """Start, or resume, the decode of a request."""
        if self._groups is not None:
            self._groups.writes(sequence, 1)
        sequence.joined = self.count
        self._places += 1
        heapq.heappush(self._ends, (self.count + self._steps(sequence), self._places, sequence.put_off, sequence))
        self.answers += 1
        self.context += sequence.read
        self.growth.add(sequence.read)

    def _steps(self, sequence: Sequence) -> int:
        """Return the decode iterations until the output is complete."""
        return sequence.output - sequence.written

    def _stops(self, sequence: Sequence) -> int:
        """End the decode of a request; return its tokens in the KV cache."""
        if self._groups is not None:
            self._groups.writes(sequence, -1)
        steps = self.count - sequence.joined
        length = sequence.read + steps
        sequence.written += steps
        sequence.own += self.growth.need(length) - self.growth.need(sequence.read)
        self.answers -= 1
        self.context -= length
        self.growth.remove(length)
        return length

    def _gives(self, sequence: Sequence) -> None:
        """Release the adapter slot and the blocks of a request."""
        if self.slots is not None:
            self.slots.gives(sequence)
        self._frees(sequence)

    def _frees(self, sequence: Sequence) -> None:
        sequence.is_over = True
        if self._groups is not None:
            self._groups.remove(sequence)
        self.cache.gives(sequence)

    def _last(self) -> Sequence:
        """Return the running request that joined last."""
        order = self._order
        while order[-1][0].put_off != order[-1][1] or order[-1][0].is_over:
            order.pop()
        return order[-1][0]

    def _puts_off(self, sequence: Sequence, instant: int) -> None:
        """Preempt a request: free its blocks and put it at the head of the queue."""
        if sequence in self.partial:
            self.partial.remove(sequence)
            length = sequence.read
        else:
            length = self._stops(sequence)
        self._promises.counts(sequence, -1)
        self._promises.breaks(self.answers, self.count)
        begun = self.cache.keeps_own(sequence, length)
        self.cache.gives(sequence)
        if self.slots is not None:
            self.slots.gives(sequence)
        self._hold = 0
        self.put_off += 1
        sequence.put_off += 1
        sequence.read = sequence.hit = 0
        sequence.kept = begun  # its own blocks begin there
        sequence.to_read = sequence.prompt + sequence.written
        self.waiting.appendleft(sequence)
        self.log.puts_off(instant, sequence.number, length)
