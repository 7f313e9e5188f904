"""The requests of a copy of a model: how they begin to answer, stop, and lose their blocks, and what a router sees of them."""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import field

from hwsim.families.serving.actors.gathering import Groups
from hwsim.families.serving.actors.prefixes import Cache, Pool
from hwsim.families.serving.actors.promises import Promises
from hwsim.families.serving.actors.replica import Replica
from hwsim.families.serving.actors.returning import Returning
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.slots import Slots
from hwsim.families.serving.actors.tiers import Tiers
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass


@dataclass(slots=True)
class Batch(Replica):
    """The requests of a copy, and the blocks and places for adapters that they hold.

    Args:
        lower: tiers below its GPUs. slots: for adapters.
        loaded: requests whose pieces have come from a tier, which join before those that wait.
        count: steps of decoding so far; context: tokens of all answers under way, their prompts included.
    """

    loaded: deque[Sequence] = field(init=False)
    partial: list[Sequence] = field(default_factory=list)
    lower: Tiers | None = None
    slots: Slots | None = None
    pool: Pool = field(init=False)
    cache: Cache = field(init=False)
    returning: Returning = field(init=False)
    answers: int = 0
    count: int = 0
    context: int = 0
    _groups: Groups | None = None
    _ends: list[tuple[int, int, int, Sequence]] = field(default_factory=list)
    _order: list[tuple[Sequence, int]] = field(default_factory=list)
    _places: int = 0
    _promises: Promises = field(init=False)
    _hold: int = 0  # the iteration at which a request that a ratio refused is looked at again, unless one ends before

    def __post_init__(self) -> None:
        Replica.__post_init__(self)
        self.pool = Pool(ANY if self.blocks is None else self.blocks)
        self.cache = Cache(self.settings, self.pool, self.lower, self.settings.late)
        self.returning = Returning(self.cache, self.lower, self.log)
        self.loaded = self.returning.loaded
        self._promises = Promises(self.settings, self.growth.need)
        if self.settings.gather:
            self._groups = Groups(self.settings.groups, self.settings.gather)

    @property
    def requests(self) -> int:
        """Requests that wait or are worked on."""
        return self.in_line + len(self.returning.loading) + len(self.partial) + self.answers

    @property
    def in_line(self) -> int:
        """Requests that wait."""
        return len(self.waiting) + len(self.loaded) + (0 if self.slots is None else len(self.slots.held))

    @property
    def head(self) -> Sequence | None:
        """The first to be seen of those that wait."""
        if not self.loaded:
            return self.waiting[0] if self.waiting else None
        return self.returning.head(self.waiting)

    def first_at(self, instant: int) -> Sequence | None:
        """Return the first of a line that stands in it from this instant on."""
        loaded = self.loaded[0] if self.loaded else None
        return loaded if loaded is not None and loaded.at == instant else Replica.first_at(self, instant)

    @property
    def room(self) -> float:
        """Part of the blocks that is free."""
        return self.pool.free / self.pool.blocks

    def cached(self, sequence: Sequence) -> int:
        """Tokens of its prompt that need not be read here."""
        found = self.cache.found(sequence)
        return (found.blocks + sum(count for _, count in found.below)) * self.settings.block  # integers

    @property
    def is_idle(self) -> bool:
        """Nothing is worked on."""
        return not (self.answers or self.partial)

    def forgets(self) -> None:
        """It is started anew: nothing is in its cache."""
        self.pool.clears()
        if self.slots is not None:
            self.slots.forgets()
        if self.lower is not None:
            self.lower.forgets()

    def add(self, sequence: Sequence) -> None:
        """A request stands in the line."""
        if self._groups is not None:
            self._groups.add(sequence)
        Replica.add(self, sequence)

    # ------------------------------------------------------------ requests that answer, stop, and lose their blocks

    def _starts(self, sequence: Sequence) -> None:
        """A sequence begins to answer, or goes on with it."""
        if self._groups is not None:
            self._groups.writes(sequence, 1)
        sequence.joined = self.count
        self._places += 1
        heapq.heappush(self._ends, (self.count + self._steps(sequence), self._places, sequence.put_off, sequence))
        self.answers += 1
        self.context += sequence.read
        self.growth.add(sequence.read)

    def _steps(self, sequence: Sequence) -> int:
        """Steps of decoding until its answer is written."""
        return sequence.output - sequence.written

    def _stops(self, sequence: Sequence) -> int:
        """A sequence answers no more; its tokens in the cache."""
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
        """Give its place for an adapter and its blocks back."""
        if self.slots is not None:
            self.slots.gives(sequence)
        self._frees(sequence)

    def _frees(self, sequence: Sequence) -> None:
        sequence.is_over = True
        if self._groups is not None:
            self._groups.remove(sequence)
        self.cache.gives(sequence)

    def _last(self) -> Sequence:
        """The request that joined last."""
        order = self._order
        while order[-1][0].put_off != order[-1][1] or order[-1][0].is_over:
            order.pop()
        return order[-1][0]

    def _puts_off(self, sequence: Sequence, instant: int) -> None:
        """A request loses its blocks and waits at the head of the line."""
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
        self.lost += length
        sequence.put_off += 1
        sequence.read = sequence.hit = 0
        sequence.kept = begun  # its own piece begins there
        sequence.to_read = sequence.prompt + sequence.written
        self.waiting.appendleft(sequence)
        self.log.puts_off(instant, sequence.number, length)
