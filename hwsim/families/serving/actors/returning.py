"""Requests whose prompts are in part below the GPUs: those that wait for the pieces, and those whose pieces have come.

    returning.asks(sequence, reused, blocks, instant)      it waits from now on, with room for all of its prompt
    returning.comes(load, instant)                        its pieces are there: it is seen again at this instant
    returning.line(waiting, door)                         the line whose head is next

Others go on meanwhile. Requests that have waited for their pieces stand in a line of their own and join before those that
wait for a place. No time passes here: who plays the copy says how long a load takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import field
from itertools import takewhile
from typing import NamedTuple

from hwsim.families.serving.actors.prefixes import Cache, Found, Key
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.tiers import Tiers
from hwsim.families.serving.results.accounting import LOADING
from hwsim.families.serving.results.log import Log
from hwsim.records import dataclass


class Load(NamedTuple):
    """Pieces of a prompt that a request waits for; counts: blocks of them from each tier."""

    sequence: Sequence
    pieces: tuple[tuple[Key, int], ...]
    counts: tuple[int, ...]


@dataclass(slots=True)
class Returning:
    """The requests of a copy whose pieces come back from its tiers.

    Args:
        loads: loads that the last decision began, for who plays it. loading: requests that wait for one.
        loaded: requests whose pieces have come, in the order in which they came.
    """

    cache: Cache
    tiers: Tiers | None
    log: Log
    loads: list[Load] = field(default_factory=list)
    loading: list[Sequence] = field(default_factory=list)
    loaded: deque[Sequence] = field(default_factory=deque)

    def line(self, waiting: deque[Sequence], door: int) -> deque[Sequence]:
        """The line whose head is next: requests whose pieces were brought back have waited already."""
        return self.loaded if self.loaded and self.loaded[0].at <= door else waiting

    def head(self, waiting: deque[Sequence]) -> Sequence | None:
        """The first to be seen of both lines."""
        if not self.loaded:
            return waiting[0] if waiting else None
        return min((line[0] for line in (self.loaded, waiting) if line), key=lambda each: each.at)

    def after(self, waiting: deque[Sequence], door: int) -> Iterable[int]:
        """Instants of requests of both lines that came after one, the last of each line first."""
        for line in (waiting, self.loaded):
            yield from (each.at for each in takewhile(lambda one: one.at > door, reversed(line)))

    def asks(self, sequence: Sequence, reused: Found, blocks: int, instant: int) -> None:
        """A request waits for pieces of its prompt; blocks: of all of it, which it has from now on."""
        assert self.tiers is not None
        counts = self.tiers.brings(reused.below)
        self.cache.begins(sequence, reused)
        self.cache.grows(sequence, blocks)
        self.loads.append(Load(sequence, reused.below, counts))
        self.loading.append(sequence)
        self.log.holds(instant, sequence.number, [count * self.cache.settings.block for count in counts])

    def comes(self, load: Load, instant: int) -> None:
        """Pieces of a prompt have come."""
        sequence = load.sequence
        self.cache.loaded(sequence, load.pieces)
        sequence.read = sequence.cached = self.cache.spared(
            sequence, sequence.hit + sum(count for _, count in load.pieces)
        )  # integers
        sequence.at = instant
        self.loading.remove(sequence)
        self.loaded.append(sequence)
        self.log.frees(instant, sequence.number, LOADING)
