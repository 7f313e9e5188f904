"""The requests of a copy of a model: how they begin to answer, stop, and lose their blocks, and what a router sees of them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import field
from itertools import takewhile
from typing import NamedTuple

from hwsim.families.serving.actors.gathering import Groups
from hwsim.families.serving.actors.prefixes import Cache, Found, Key, Pool
from hwsim.families.serving.actors.promises import Promises
from hwsim.families.serving.actors.replica import Replica
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.slots import Slots
from hwsim.families.serving.actors.tiers import Tiers
from hwsim.families.serving.results.accounting import LOADING
from hwsim.families.serving.workload.settings import ANY
from hwsim.records import dataclass


class Load(NamedTuple):
    """Pieces of a prompt that a request waits for; counts: blocks of them from each tier."""

    sequence: Sequence
    pieces: tuple[tuple[Key, int], ...]
    counts: tuple[int, ...]


@dataclass(slots=True)
class Batch(Replica):
    """The requests of a copy, and the blocks and places for adapters that they hold.

    Requests whose prompts are in part below the GPUs wait for the pieces with room for all of their prompt, while others go on.
    Then they stand in a line of their own and join before those that wait for a place. Who plays the copy says how long a load
    takes.

    Args:
        lower: tiers below its GPUs. slots: for adapters.
        loads: loads that the last decision began, for who plays it. loading: requests that wait for one.
        loaded: requests whose pieces have come, in the order in which they came.
        count: steps of decoding so far; context: tokens of all answers under way, their prompts included.
    """

    loads: list[Load] = field(default_factory=list)
    loading: list[Sequence] = field(default_factory=list)
    loaded: deque[Sequence] = field(default_factory=deque)
    partial: list[Sequence] = field(default_factory=list)
    lower: Tiers | None = None
    slots: Slots | None = None
    pool: Pool = field(init=False)
    cache: Cache = field(init=False)
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
        self._promises = Promises(self.settings, self.growth.need)
        if self.settings.gather:
            self._groups = Groups(self.settings.groups, self.settings.gather)

    @property
    def requests(self) -> int:
        """Requests that wait or are worked on."""
        return self.in_line + len(self.loading) + len(self.partial) + self.answers

    @property
    def in_line(self) -> int:
        """Requests that wait."""
        return len(self.waiting) + len(self.loaded) + (0 if self.slots is None else len(self.slots.held))

    @property
    def head(self) -> Sequence | None:
        """The first to be seen of those that wait."""
        if not self.loaded:
            return self.waiting[0] if self.waiting else None
        return min((line[0] for line in (self.loaded, self.waiting) if line), key=lambda each: each.at)

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

    # ------------------------------------------------------------ requests whose pieces come back from its tiers

    def first_line(self, door: int) -> deque[Sequence]:
        """The line whose head is next: requests whose pieces were brought back have waited already."""
        return self.loaded if self.loaded and self.loaded[0].at <= door else self.waiting

    def after(self, door: int) -> Iterable[int]:
        """Instants of requests of both lines that came after one, the last of each line first."""
        for line in (self.waiting, self.loaded):
            yield from (each.at for each in takewhile(lambda one: one.at > door, reversed(line)))

    def _asks(self, sequence: Sequence, reused: Found, blocks: int, instant: int) -> None:
        """A request waits for pieces of its prompt; blocks: of all of it, which it has from now on."""
        assert self.lower is not None
        counts = self.lower.brings(reused.below)
        self.cache.begins(sequence, reused)
        self.cache.grows(sequence, blocks)
        self.loads.append(Load(sequence, reused.below, counts))
        self.loading.append(sequence)
        self.log.holds(instant, sequence.number, [count * self.settings.block for count in counts])

    def comes(self, load: Load, instant: int) -> None:
        """Pieces of a prompt have come: its request is seen again at this instant."""
        sequence = load.sequence
        self.cache.loaded(sequence, load.pieces)
        sequence.read = sequence.cached = self.cache.spared(
            sequence, sequence.hit + sum(count for _, count in load.pieces)
        )  # integers
        sequence.at = instant
        self.loading.remove(sequence)
        self.loaded.append(sequence)
        self.log.frees(instant, sequence.number, LOADING)

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
        sequence.put_off += 1
        sequence.read = sequence.hit = 0
        sequence.kept = begun  # its own piece begins there
        sequence.to_read = sequence.prompt + sequence.written
        self.waiting.appendleft(sequence)
        self.log.puts_off(instant, sequence.number, length)
