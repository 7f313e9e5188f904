"""Routers choose the copy that a request goes to.

    least         the copy with the fewest requests, waiting or worked on
    waiting       4 x waiting + worked on, the least: vLLM's balance of data-parallel engines
    round robin   one after another
    scores        the highest sum of weights: tokens of the prompt that are cached, requests that wait, room of the cache

The first of equal copies is taken. A router knows the state of every copy at that instant, caches included: what real ones know
is some tens of milliseconds old.

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
    from hwsim.families.serving.actors.copy import Copy
    from hwsim.families.serving.actors.static import Static

WAITS: Final = {"least": 1, "waiting": 4}  # times that a request that waits counts, of one that is worked on


Router: TypeAlias = "Least | InTurn | Scores"  # looks: at the caches of all copies


@dataclass(slots=True)
class Least:
    """The copy with the fewest requests; one that waits counts as some that are worked on."""

    waits: int = 1
    looks: bool = False

    def choose(self, copies: Many[Copy | Static], _sequence: Sequence) -> int:
        """The number of the copy that a request goes to."""
        counts = [copy.requests + (self.waits - 1) * copy.in_line for copy in copies]
        return counts.index(min(counts))


@dataclass(slots=True)
class InTurn:
    """One copy after another."""

    last: int = -1
    looks: bool = False

    def choose(self, copies: Many[Copy | Static], _sequence: Sequence) -> int:
        """The number of the copy that a request goes to."""
        self.last = (self.last + 1) % len(copies)
        return self.last


@dataclass(slots=True)
class Scores:
    """The copy with the highest score."""

    weights: ScoreKeys = field(default_factory=ScoreKeys)
    looks: bool = True

    def choose(self, copies: Many[Copy | Static], sequence: Sequence) -> int:
        """The number of the copy that a request goes to."""
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
    """The router that a file names."""
    if isinstance(keys, ScoreKeys):
        return Scores(keys)
    return InTurn() if keys == "round robin" else Least(WAITS[keys])
