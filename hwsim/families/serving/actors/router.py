"""Routers, which choose the replica for each request.

    least         the replica with the fewest requests, queued or running
    waiting       the replica with the smallest 4 x queued + running, as vLLM balances data-parallel engines
    round robin   each replica in turn
    scores        the replica with the highest weighted sum of cached prompt tokens, queue depth and free KV cache

Ties go to the replica with the lowest index. **Range**: a router knows the exact state of every replica, including its cache; the
state that a real router knows is some tens of milliseconds old.

**Source**: vllm 0.19.0, v1/engine/core_client.py (`DPLBAsyncMPClient`); llm-d's default weights by
inference-sim/inference-sim: docs/guide/routing.md at f90a1e3a.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import field
from typing import TYPE_CHECKING, Final, TypeAlias

from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.workload.routing import Routing, ScoreKeys
from hwsim.records import dataclass

if TYPE_CHECKING:
    from hwsim.families.serving.actors.continuous import ContinuousReplica
    from hwsim.families.serving.actors.static import StaticReplica

WAITS: Final = {"least": 1, "waiting": 4}  # weight of a queued request; a running one counts 1


Router: TypeAlias = "LeastRequestsRouter | RoundRobinRouter | ScoreRouter"  # `looks`: needs the state of all caches


@dataclass(slots=True)
class LeastRequestsRouter:
    """A router to the replica with the fewest requests, where a queued request counts as `waits` running ones."""

    waits: int = 1
    looks: bool = False

    def choose(self, copies: Many[ContinuousReplica | StaticReplica], _sequence: Sequence) -> int:
        """Return the index of the replica for a request."""
        counts = [copy.requests + (self.waits - 1) * copy.in_line for copy in copies]
        return counts.index(min(counts))


@dataclass(slots=True)
class RoundRobinRouter:
    """A router to each replica in turn."""

    last: int = -1
    looks: bool = False

    def choose(self, copies: Many[ContinuousReplica | StaticReplica], _sequence: Sequence) -> int:
        """Return the index of the replica for a request."""
        self.last = (self.last + 1) % len(copies)
        return self.last


@dataclass(slots=True)
class ScoreRouter:
    """A router to the replica with the highest score."""

    weights: ScoreKeys = field(default_factory=ScoreKeys)
    looks: bool = True

    def choose(self, copies: Many[ContinuousReplica | StaticReplica], sequence: Sequence) -> int:
        """Return the index of the replica for a request."""
        if len(copies) == 1:
            return 0
        weights = self.weights
        parts = (
            (weights.prefix, [float(copy.cached(sequence)) for copy in copies] if weights.prefix else []),
            (weights.queue, [-float(copy.in_line) for copy in copies]),
            (weights.room, [copy.room for copy in copies]),
        )
        scores = [0.0] * len(copies)
        for weight, values in parts:
            if weight and (spread := max(values) - (least := min(values))) > 0:
                scores = [score + weight * (value - least) / spread for score, value in zip(scores, values, strict=True)]
        return scores.index(max(scores))


def router_of(keys: ScoreKeys | Routing) -> Router:
    """Return the router of a file."""
    if isinstance(keys, ScoreKeys):
        return ScoreRouter(keys)
    return RoundRobinRouter() if keys == "round robin" else LeastRequestsRouter(WAITS[keys])
