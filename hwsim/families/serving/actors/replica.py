"""The parts that every copy of a model has, whatever its rules: its line, its books, and what a router sees of it."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from hwsim.families.serving.actors.blocks import Growth, Held, growth
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.workload.settings import Settings
from hwsim.records import dataclass


class DoesNotFit(ValueError):
    """A request that an empty cache has no room for."""


@dataclass(slots=True)
class Replica:
    """A copy.

    Args:
        blocks: size of its KV cache in blocks, None without bound; held: parts of a token's bytes that layers with a window keep.
        iterations: that have ended; put_off: times a request lost its blocks.
    """

    number: int
    settings: Settings
    blocks: int | None
    log: Log
    held: Held = ()
    waiting: deque[Sequence] = field(default_factory=deque)
    growth: Growth = field(init=False)
    iterations: int = 0
    put_off: int = 0

    def __post_init__(self) -> None:
        self.growth = growth(self.settings.block, self.held)

    @property
    def in_line(self) -> int:
        """Requests that wait."""
        return len(self.waiting)

    @property
    def head(self) -> Sequence | None:
        """The first to be seen of those that wait."""
        return self.waiting[0] if self.waiting else None

    def first_at(self, instant: int) -> Sequence | None:
        """Return the first of those that wait if it stands in the line from this instant on."""
        head = self.waiting[0] if self.waiting else None
        return head if head is not None and head.at == instant else None

    def forgets(self) -> None:
        """It is started anew: nothing is in its cache."""

    def add(self, sequence: Sequence) -> None:
        """A request stands in the line."""
        self.waiting.append(sequence)
