"""The common state of replicas, with any batching: queue, log, and the properties that routers use."""

from __future__ import annotations

from collections import deque
from dataclasses import field

from hwsim.families.serving.actors.blocks import Growth, KeptTokens, growth
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.results.log import Log
from hwsim.families.serving.workload.settings import Settings
from hwsim.records import dataclass


class DoesNotFit(ValueError):
    """A request is larger than an empty KV cache."""


@dataclass(slots=True)
class Replica:
    """A replica of a model.

    Args:
        number: index of the replica.
        settings: settings of its server.
        blocks: capacity of its KV cache in blocks; None: unlimited.
        log: log of the service.
        held: (share of a token's bytes, maximum tokens kept) of each kind of layer; empty: all tokens are kept.
        waiting: queue of requests.
        growth: counter of the blocks that decode needs.
        iterations: number of completed iterations.
        put_off: number of preemptions.
        changed: numbers of the replicas whose state has changed since a router looked at it.
    """

    number: int
    settings: Settings
    blocks: int | None
    log: Log
    held: KeptTokens = ()
    waiting: deque[Sequence] = field(default_factory=deque)
    growth: Growth = field(init=False)
    iterations: int = 0
    put_off: int = 0
    changed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.growth = growth(self.settings.block, self.held)

    @property
    def in_line(self) -> int:
        """Number of queued requests."""
        return len(self.waiting)

    @property
    def head(self) -> Sequence | None:
        """Queued request that is scheduled next; None if the queue is empty."""
        return self.waiting[0] if self.waiting else None

    def first_at(self, instant: int) -> Sequence | None:
        """Return the head of the queue if it was queued at this instant."""
        head = self.waiting[0] if self.waiting else None
        return head if head is not None and head.at == instant else None

    def forgets(self) -> None:
        """Clear all caches, as after a restart."""

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        self.waiting.append(sequence)
        self.changed.add(self.number)
