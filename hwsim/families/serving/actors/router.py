"""Routers, which choose the replica for each request.

    least         the replica with the fewest requests, queued or running
    waiting       the replica with the smallest 4 x queued + running, as vLLM balances data-parallel engines
    round robin   each replica in turn
    choices       of some replicas drawn at random, the replica with the fewest requests ("power of two choices")
    scores        the replica with the highest weighted sum of cached prompt tokens, queue depth and free KV cache

Ties go to the replica with the lowest index. Replicas whose state changes tell their router, which reads only their state again.
**Range**: a router knows the exact state of every replica, including its cache; the state that a real router knows is some tens
of milliseconds old.

**Source**: vllm 0.19.0, v1/engine/core_client.py (`DPLBAsyncMPClient`); llm-d's default weights by
inference-sim/inference-sim: docs/guide/routing.md at f90a1e3a; Mitzenmacher, "The power of two choices in randomized load
balancing", IEEE TPDS 12 (2001).
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hwsim.families.serving.actors.batch import ReplicaBatch
from hwsim.families.serving.actors.prefix_index import Key, PrefixIndex
from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.actors.static import StaticReplica
from hwsim.families.serving.workload.routing import ChoiceKeys, Routing, ScoreKeys
from hwsim.records import dataclass
from hwsim.workload.load.numbers import stream, uniform

WAITS: Final = {"least": 1, "waiting": 4}  # weight of a queued request; a running one counts 1


Router: TypeAlias = "LeastRequestsRouter | RoundRobinRouter | ScoreRouter"


@dataclass(slots=True)
class LeastRequestsRouter:
    """A router to the replica with the fewest requests, where a queued request counts as `waits` running ones.

    Args:
        copies: the replicas.
        waits: weight of a queued request.
        choices: number of replicas drawn at random for each request; 0: all.
        key: key of the random numbers.
    """

    copies: Many[ReplicaBatch | StaticReplica]
    waits: int = 1
    choices: int = 0
    key: int = 0
    _counts: list[int] = field(init=False)
    _changed: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._counts, self._changed = [0] * len(self.copies), watch(self.copies)

    def choose(self, sequence: Sequence, open_to: Many[int]) -> int:
        """Return the replica for a request, one of `open_to`."""
        first = self.copies[0].number
        if 0 < self.choices < len(open_to):
            open_to = [open_to[place] for place in drawn(self.key, sequence.number, self.choices, len(open_to))]
        while self._changed:
            copy = self.copies[self._changed.pop() - first]
            self._counts[copy.number - first] = copy.requests + (self.waits - 1) * copy.in_line
        return min(open_to, key=self._counts.__getitem__)


@dataclass(slots=True)
class RoundRobinRouter:
    """A round-robin router."""

    last: int = -1

    def choose(self, _sequence: Sequence, open_to: Many[int]) -> int:
        """Return the replica for a request, one of `open_to`."""
        self.last = (self.last + 1) % len(open_to)
        return open_to[self.last]


@dataclass(slots=True)
class ScoreRouter:
    """A router to the replica with the highest score."""

    copies: Many[ReplicaBatch | StaticReplica]
    weights: ScoreKeys = field(default_factory=ScoreKeys)
    _state: NDArray[np.float64] = field(init=False)  # rows: queue depth with a minus sign, free share of the KV cache
    _changed: set[int] = field(init=False)
    _index: PrefixIndex = field(default_factory=PrefixIndex)
    _held: list[Callable[[Key], int]] = field(init=False)

    def __post_init__(self) -> None:
        self._state, self._changed = np.zeros((2, len(self.copies))), watch(self.copies)
        caching = [copy for copy in self.copies if isinstance(copy, ReplicaBatch) and copy.settings.prefixes]
        self._held = [copy.cache.records_in(self._index, number) for number, copy in enumerate(caching)]

    def choose(self, sequence: Sequence, open_to: Many[int]) -> int:
        """Return the replica for a request, one of `open_to`."""
        if len(open_to) == 1:
            return open_to[0]
        weights, first = self.weights, self.copies[0].number
        while self._changed:
            copy = self.copies[self._changed.pop() - first]
            self._state[:, copy.number - first] = -copy.in_line, copy.room
        columns, scores = (self._cached(sequence), *self._state), np.zeros(len(open_to))
        for weight, column in zip((weights.prefix, weights.queue, weights.room), columns, strict=True):
            values = column if len(open_to) == len(column) else column[np.array(open_to)]
            least = values.min()
            if weight and (spread := values.max() - least) > 0:
                scores += weight * (values - least) / spread
        return open_to[int(scores.argmax())]

    def _cached(self, sequence: Sequence) -> NDArray[np.float64]:
        """Return the prompt tokens found in the caches of each replica; 0 without prefix caches."""
        copy, block = self.copies[0], self.copies[0].settings.block
        if not isinstance(copy, ReplicaBatch) or not self._held:
            return np.zeros(len(self.copies))
        return np.array(self._index.cached(copy.cache.pieces(sequence)[0], self._held), np.float64) * block


def watch(copies: Many[ReplicaBatch | StaticReplica]) -> set[int]:
    """Return a set to which these replicas add their number when their state changes."""
    changed = {copy.number for copy in copies}
    for copy in copies:
        copy.changed = changed
    return changed


def drawn(key: int, request: int, count: int, most: int) -> list[int]:
    """Return `count` different numbers below `most`, drawn for a request and in ascending order (Floyd's algorithm).

    >>> drawn(1, 0, 3, 3), len(set(drawn(1, 7, 2, 64)))
    ([0, 1, 2], 2)
    """
    places = set[int]()
    for last in range(most - count, most):
        place = int(uniform(key, request, last) * (last + 1))
        places.add(last if place in places else place)
    return sorted(places)


def router_of(keys: ChoiceKeys | ScoreKeys | Routing, copies: Many[ReplicaBatch | StaticReplica], seed: int = 0) -> Router:
    """Return the router of a file to these replicas, which have successive numbers."""
    if isinstance(keys, ScoreKeys):
        return ScoreRouter(copies, keys)
    if isinstance(keys, ChoiceKeys):
        return LeastRequestsRouter(copies, choices=keys.choices, key=stream(seed, "router"))
    return RoundRobinRouter() if keys == "round robin" else LeastRequestsRouter(copies, WAITS[keys])
