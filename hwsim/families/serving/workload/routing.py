"""`router:` the rule that chooses a replica for each request.

router: round robin
router: {choices: 2}                        of two replicas drawn at random, the one with fewer requests
router: {prefix: 2, queue: 1, room: 1}      the replica with the highest score, with the weights of llm-d's scheduler
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hwsim.records import dataclass
from hwsim.spec import Place, Problem, field, place_field

Routing = Literal["least", "waiting", "round robin"]


@dataclass(frozen=True, slots=True)
class ChoiceKeys:
    """A choice among replicas that are drawn at random for each request; the one with the fewest requests wins."""

    choices: int = field(
        "number of different replicas that are drawn; with as many as there are, `least`", minimum=1, example="2"
    )

    def problems(self) -> Iterator[Problem]:
        """Yield nothing: all values are valid."""
        yield from ()


@dataclass(frozen=True, slots=True)
class ScoreKeys:
    """Weights of the terms of a score. Each term is 1 for the best replica and 0 for the worst."""

    prefix: float = field(
        "weight of the prompt tokens that are already in the prefix cache of the replica", default=2.0, minimum=0.0
    )
    queue: float = field("weight of the queue depth; a shorter queue scores higher", default=1.0, minimum=0.0)
    room: float = field("weight of the free share of the replica's KV cache", default=1.0, minimum=0.0)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        if not (self.prefix or self.queue or self.room):
            yield "", "all weights are 0: expected at least one above 0", "{prefix: 2, queue: 1, room: 1}"
